"""Proving that what an interpreter imports as a package is the base plus given patches."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.engine import probe
from patchq.engine.lane import substack
from patchq.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.lane import Lane
    from patchq.git.objects import Objects

SECONDS = 300
"""For a look at a package: reading three thousand files from a cold disk takes well under a minute."""


@dataclass(frozen=True)
class Wanted:
    """What a package must be, to be a base with patches.

    Attributes:
        package: its name.
        base: the base's name.
        tree: the tree's id.
        ids: the patches.
        files: by path, the blob ids of the files that the lane touches; None where there must be none.
        others: by path, the blob ids of the package's other modules.
        version: of the base's release, empty for none.
        by: by path, the patches that touch it.
    """

    package: str
    base: str
    tree: str
    ids: tuple[str, ...]
    files: dict[str, str | None]
    others: dict[str, str]
    version: str
    by: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Installed:
    """What a look at an interpreter found.

    Attributes:
        wanted: what it was held against.
        python: the interpreter's version.
        places: every place that has the package, the one that is imported first: `path`, `how`, `plain`, `patched`.
        distributions: what is recorded as installed: `version`, `path`.
        wrong: each file that is not as it must be, and how.
        absent: files of the patches that an install does not hold, as tests.
        notes: what is harmless and worth knowing, by file.
    """

    wanted: Wanted
    python: str
    places: tuple[dict[str, Any], ...]
    distributions: tuple[dict[str, str], ...]
    wrong: tuple[tuple[str, str], ...]
    absent: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether the package is the wanted one."""
        return bool(self.places) and not self.wrong

    @property
    def checked(self) -> tuple[str, ...]:
        """The files of the patches that were compared."""
        return tuple(sorted(set(self.wanted.files) - set(self.absent)))


def wanted_package(
    objects: Objects, lane: Lane, ids: Sequence[str], package: str, version: str = ""
) -> Wanted:
    """What a package must be, to be the lane's base with exactly these patches."""
    stack = substack(objects, lane, tuple(ids))
    by: dict[str, list[str]] = {}
    for step in stack.steps:
        for path in step.changes:
            by.setdefault(path, []).append(step.id)
    entries = {path: objects.lookup(stack.tree, path) for path in lane.stack.changes}
    files = {path: entry.oid if entry is not None else None for path, entry in entries.items()}
    top = objects.lookup(stack.tree, package)
    inside = objects.walk(top.oid, package.encode() + b"/") if top is not None else ()
    others = {path: entry.oid for path, entry in inside if path.endswith(".py") and path not in files}
    return Wanted(
        package,
        lane.base,
        stack.tree,
        stack.ids,
        files,
        others,
        version,
        {path: tuple(who) for path, who in by.items()},
    )


def examine_python(python: Path, choices: Sequence[Wanted]) -> Installed:
    """Look at what an interpreter would import, from here and now, and hold it against the likeliest of some wanted packages.

    Args:
        python: the interpreter, or a script that starts one elsewhere with the same arguments and standard input.
        choices: what the package may be, of one package.

    Raises:
        InputError: it does not run as a Python interpreter.
    """
    package = choices[0].package
    paths = sorted({path for wanted in choices for path in wanted.files})
    seen = _look(python, package, paths)

    def likeness(wanted: Wanted) -> float:
        """Of whichever place is likest: what is imported may be a stray copy in front of the one that is meant."""
        everything = {**wanted.files, **wanted.others}
        same = (
            sum(place["files"].get(path) == oid for path, oid in everything.items())
            for place in seen["places"]
        )
        return max(same, default=0) / max(len(everything), 1)

    wanted = max(choices, key=likeness)
    verdict = probe.judge(seen, package, wanted.files, wanted.others, wanted.version)
    places = tuple(
        {
            **{key: place[key] for key in ("path", "how", "plain")},
            "patched": all(
                place["files"].get(p) == o for p, o in wanted.files.items() if p.startswith(f"{package}/")
            ),
        }
        for place in seen["places"]
    )
    return Installed(
        wanted,
        seen["python"],
        places,
        tuple(seen["distributions"]),
        tuple((path, problem) for path, problem in verdict["files"]),
        tuple(verdict["absent"]),
        tuple((path, note) for path, note in verdict["notes"]),
    )


def _look(python: Path, package: str, paths: Sequence[str]) -> dict[str, Any]:
    source = Path(probe.__file__).read_text(encoding="utf-8")
    asked = json.dumps({"package": package, "paths": list(paths)})
    try:
        done = subprocess.run(
            [python, "-c", source], input=asked.encode(), capture_output=True, check=True, timeout=SECONDS
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except OSError as error:
        raise InputError(f"{python} cannot be run: {error.strerror}.", "Name a Python interpreter.") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{python} did not answer in {SECONDS} s.", "Name a Python interpreter.") from None
    except (subprocess.CalledProcessError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", b"") or b"").decode("utf-8", "replace").strip().split("\n")[-1]
        raise InputError(
            f"{python} does not run as a Python interpreter ({said[:200] or error}).", "Name one."
        ) from None
    return found


SCRIPT_MARK = b"What an interpreter would import as a package, looked at from inside it"
"""What such a script begins with."""


def script_of(wanted: Wanted) -> str:
    """A script of its own, standard library alone, that proves the same in any interpreter that runs it: exit code 0 or 1."""
    source = Path(probe.__file__).read_text(encoding="utf-8").split("\nif __name__ ==", 1)[0]
    held = {
        "package": wanted.package,
        "files": wanted.files,
        "others": wanted.others,
        "version": wanted.version,
    }
    what = f"{wanted.base} with {', '.join(wanted.ids) or 'no patch'}, tree {wanted.tree}"
    return f"""{source}

WHAT = {what!r}
WANTED = json.loads({json.dumps(held, sort_keys=True)!r})


def main():
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = ""  # as for `python -c` and `python -m`: the current directory, not the script's
    package = WANTED["package"]
    seen = look(package, sorted(WANTED["files"]))
    found = judge(seen, package, WANTED["files"], WANTED["others"], WANTED["version"])
    for path, problem in found["files"]:
        print(problem + "\\t" + path)
    for place in seen["places"]:
        print(package + " in " + place["path"] + " (" + place["how"] + ")")
    ok = bool(seen["places"]) and not found["files"]
    print(("ok: " if ok else "not ") + WHAT)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
"""
