"""Running git: one function, bytes in and out, in an environment that no user setting can bend.

`GIT_*` variables are stripped, global and system configuration are not read, and what a repository's own
configuration could change about plumbing (hooks, external diffs, filters, colours, quoting, signing) is overridden.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, write_atomically
from patchq.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KEPT_VARIABLES = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_PROXY_COMMAND",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
    },
)
"""How to reach a remote is the user's business; what plumbing means is not."""

NEUTRAL_CONFIG = (
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.splitIndex=false",
    "core.untrackedCache=keep",
    "color.ui=false",
    "commit.gpgSign=false",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.orderFile=/dev/null",
    "diff.renames=false",
    "diff.suppressBlankEmpty=false",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "log.showSignature=false",
    "maintenance.auto=false",
    "rerere.enabled=false",
    "status.renames=false",
    "submodule.recurse=false",
)
OLDEST_GIT = (2, 38)


class GitError(Exception):
    """A git command failed.

    Attributes:
        command: the arguments, without the neutralising ones.
        returncode: its exit status.
        stdout: what it printed.
        stderr: what it complained of, decoded for people.
    """

    def __init__(self, command: Sequence[str], returncode: int, stdout: bytes, stderr: bytes) -> None:
        self.command = tuple(command)
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr.decode("utf-8", "replace").strip()
        super().__init__(f"git {' '.join(command)} exited with {returncode}: {self.stderr}")

    @property
    def reason(self) -> str:
        """Its complaint in one line, for a sentence of ours."""
        said = next(
            (line for line in self.stderr.splitlines() if line.strip()), f"exit code {self.returncode}"
        )
        return said.strip().removeprefix("fatal: ").removeprefix("error: ").rstrip(".")


def reason_of(error: OSError | GitError) -> str:
    """Why something failed, in one line; of the file system's errors with the path where it is known."""
    if isinstance(error, GitError):
        return error.reason
    said = error.strerror or str(error)
    return f"{error.filename}: {said}" if error.filename else said


def clean_environment(extra: Mapping[str, str] | None = None, *, users: bool = False) -> dict[str, str]:
    """The process environment for git: no `GIT_*` but those that reach a remote, no user or system configuration.

    Args:
        extra: variables on top.
        users: whether user and system configuration are read all the same.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in KEPT_VARIABLES}
    env.update(
        GIT_ATTR_NOSYSTEM="1",
        GIT_NO_LAZY_FETCH="1",
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_OPTIONAL_LOCKS="0",
        GIT_TERMINAL_PROMPT="0",
        LC_ALL="C",
        TZ="UTC",
    )
    if not users:
        env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1")
    if extra:
        env.update(extra)
    return env


def strip_environment() -> None:
    """Take the `GIT_*` variables that bend git out of this process, for those who start git from it themselves."""
    for name in [n for n in os.environ if n.startswith("GIT_") and n not in KEPT_VARIABLES]:
        del os.environ[name]


def git_command(args: Sequence[str], config: Sequence[str] = ()) -> list[str]:
    """The full argument list: git, the neutral configuration, then `config` (which wins), then `args`."""
    command = ["git"]
    for setting in (*NEUTRAL_CONFIG, *config):
        command += ["-c", setting]
    return [*command, *args]


class Running:
    """A git command at work; left before its output was asked for, it is stopped."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        config: Sequence[str] = (),
        users: bool = False,
    ) -> None:
        """Start it; arguments as `run`, and `users` as `clean_environment`.

        Raises:
            GitError: there is no such directory.
            EnvironmentLacksError: there is no git on PATH.
        """
        self._args = args
        self._done = False
        try:
            self._process = subprocess.Popen(
                git_command(args, config),
                cwd=cwd,
                env=clean_environment(env, users=users),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            if cwd is not None and not cwd.is_dir():
                raise GitError(args, 128, b"", f"no such directory: {cwd}".encode()) from error
            raise no_git() from error

    def __enter__(self) -> Running:  # noqa: PYI034
        """It works already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it where nobody waited for it."""
        if not self._done:
            self._process.kill()
            self._process.communicate()

    def output(self, stdin: bytes | Iterable[bytes] = b"", *, check: bool = True) -> bytes:
        """Feed it, wait for its end, and give its standard output; once.

        Args:
            stdin: what to feed it; piece by piece only to one that says little before its end.
            check: whether a non-zero exit raises.

        Raises:
            GitError: it exited non-zero and `check` is set.
        """
        if not isinstance(stdin, bytes):
            with contextlib.suppress(BrokenPipeError):
                for piece in stdin:
                    self._process.stdin.write(piece)  # type: ignore[union-attr]
            stdin = b""
        said, complained = self._process.communicate(stdin)
        self._done = True
        if check and self._process.returncode:
            raise GitError(self._args, self._process.returncode, said, complained)
        return said


def run(
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes | Iterable[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    config: Sequence[str] = (),
    check: bool = True,
) -> bytes:
    """Run one git command and give its standard output.

    Args:
        args: the arguments after `git`.
        cwd: where to run it.
        stdin: what to feed it, see `Running.output`; nothing where None.
        env: variables on top of the clean environment (an index file, an object directory).
        config: further `name=value` settings.
        check: whether a non-zero exit raises.

    Raises:
        GitError: it exited non-zero and `check` is set.
        EnvironmentLacksError: there is no git on PATH.
    """
    with Running(args, cwd=cwd, env=env, config=config) as running:
        return running.output(b"" if stdin is None else stdin, check=check)


def no_git() -> EnvironmentLacksError:
    """What is said where there is no git."""
    return EnvironmentLacksError(
        "git is not on PATH.", f"Install git {'.'.join(map(str, OLDEST_GIT))} or newer and run this again."
    )


@functools.cache
def git_version() -> tuple[int, ...]:
    """The version of the git on PATH, as numbers."""
    found = re.search(rb"(\d+)\.(\d+)(?:\.(\d+))?", run(["--version"]))
    return tuple(int(part) for part in found.groups(b"0")) if found else (0,)


def require_git() -> None:
    """Refuse a git that cannot do what the engine asks of it (`merge-tree --write-tree` came with 2.38).

    One that was new enough is not asked again as long as its file stays the same.

    Raises:
        EnvironmentLacksError: git is older than `OLDEST_GIT`.
    """
    known = cache_dir() / "git"
    file = shutil.which("git")
    stamp = f"{file} {Path(file).stat().st_mtime_ns} {OLDEST_GIT}" if file else ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if stamp and known.read_text("utf-8") == stamp:
            return
    if git_version() < OLDEST_GIT:
        have, want = (".".join(map(str, v)) for v in (git_version(), OLDEST_GIT))
        raise EnvironmentLacksError(
            f"git {have} is too old.", f"Install git {want} or newer and run this again."
        )
    with contextlib.suppress(OSError):
        write_atomically(known, stamp.encode(), lasting=False)
