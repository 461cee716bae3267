"""Fetching a revision from a git remote or another repository into the store."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from patchq.errors import EnvironmentLacksError, InputError
from patchq.git.commits import resolve
from patchq.git.run import NEUTRAL_CONFIG, clean_environment, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
"""A url that names a program of git's to run (`ext::`, gitremote-helpers(7)); a `::` further in is an IPv6 address."""
WHOLE = 2**31 - 1
"""The depth at which git gives all history, also to a repository that had cut it off (its manual, `--unshallow`)."""


def fetch_revision(
    git_dir: Path, url: str, revision: str, step: Callable[[int], None], *, history: bool = False
) -> str:
    """Fetch one commit, and give its id.

    GitPython reads the progress reports. Its own fetch is not used: it cannot read what git says of a bare commit id.

    Args:
        git_dir: the repository to fetch into.
        url: where from; anything git understands but a transport that runs a command (`ext::`).
        revision: a commit id, branch or tag there.
        step: called with the number of objects that have come since the last call.
        history: whether to fetch what it descends from as well.

    Raises:
        EnvironmentLacksError: the remote does not answer.
        InputError: it has no such revision, or the url may not be used.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git as gitpython
    from git.cmd import handle_process_output

    class Reports(gitpython.RemoteProgress):
        seen = 0

        def update(
            self,
            op_code: int,
            cur_count: str | float,
            max_count: str | float | None = None,
            message: str = "",
        ) -> None:
            if op_code & self.OP_MASK == self.RECEIVING:
                step(int(cur_count) - self.seen)
                self.seen = int(cur_count)

    if revision.startswith("-") or url.startswith("-") or _HELPER.match(url):
        raise InputError(
            f"{url!r} at {revision!r} is not a git source.", "Use a plain url and a commit, branch or tag."
        )
    incoming = f"refs/patchq/incoming/{os.getpid()}"
    repo = gitpython.Repo(git_dir)
    repo.git.update_environment(**clean_environment())
    repo.git.set_persistent_git_options(c=[*NEUTRAL_CONFIG, "protocol.ext.allow=never"])
    reports = Reports()
    depth = WHOLE if history else 1
    options = ["--progress", f"--depth={depth}", "--no-tags", "--no-write-fetch-head"]
    process = repo.git.fetch(*options, "--", url, f"+{revision}:{incoming}", as_process=True)
    try:
        handle_process_output(process, None, reports.new_message_handler(), None)
        process.wait()
    except gitpython.GitCommandError:
        said = [line.partition(": ")[2] for line in reports.error_lines] or ["git fetch failed"]
        if "couldn't find remote ref" in said[0] or "not our ref" in " ".join(said):
            raise InputError(
                f"{url} has no {revision!r}.", "Name a commit, branch or tag of that remote."
            ) from None
        raise EnvironmentLacksError(
            f"{revision[:12]} cannot be fetched from {url}: {said[0].rstrip('.')}.",
            "Check the network and the url, then run this again.",
        ) from None
    commit = resolve(git_dir, incoming)
    run(["update-ref", "-d", incoming], cwd=git_dir)
    if commit is None:
        raise InputError(
            f"{url} at {revision!r} is not a commit.", "Name a commit, branch or tag of that remote."
        )
    return commit
