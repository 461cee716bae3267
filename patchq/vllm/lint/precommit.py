"""The tree's own .pre-commit-config.yaml: which versions of which tools it pins, and its own checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patchq.errors import InputError
from patchq.vllm.rules import read_text

if TYPE_CHECKING:
    from patchq.git.objects import Objects

CONFIG = ".pre-commit-config.yaml"
TOOLS = {"astral-sh/ruff-pre-commit": "ruff", "crate-ci/typos": "typos"}
"""The index's project for a repository of hooks."""
_SUFFIXES = {
    "python": (".py", ".pyi"),
    "pyi": (".pyi",),
    "rust": (".rs",),
    "proto": (".proto",),
    "shell": (".sh",),
}
_WRITES = ("generate_",)


@dataclass(frozen=True)
class Hook:
    """A check of the tree's own.

    Attributes:
        id: its name.
        command: what to run after `python`, before the files.
        suffixes: of the files that it is for; all where empty.
        files: a pattern that their paths match.
        exclude: one that they do not.
        named: whether the files are named on its command line.
    """

    id: str
    command: tuple[str, ...]
    suffixes: tuple[str, ...] = ()
    files: str = ""
    exclude: str = "^$"
    named: bool = True

    def wants(self, path: str) -> bool:
        """Whether it is about a file."""
        return (
            (not self.suffixes or path.endswith(self.suffixes))
            and re.search(self.files, path) is not None
            and re.search(self.exclude, path) is None
        )


@dataclass(frozen=True)
class Config:
    """What a tree checks, and with what.

    Attributes:
        requirements: what to install for it, each pinned as the tree has it.
        tools: `ruff`, `ruff-format`, `typos`, `mypy`, as far as the tree uses them.
        hooks: the tree's own checks.
        mypy: the hook that runs mypy, with the Python version that it is for.
        exclude: a pattern of files that nothing is about.
    """

    requirements: tuple[str, ...]
    tools: frozenset[str]
    hooks: tuple[Hook, ...]
    mypy: Hook | None
    exclude: str


def read_config(objects: Objects, tree: str) -> Config:
    """What a tree checks; nothing where it has no configuration.

    Raises:
        InputError: the configuration cannot be read.
    """
    import yaml

    text = read_text(objects, tree, CONFIG)
    try:
        document: dict[str, Any] = yaml.safe_load(text or "{}") or {}
        return _read(document)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, re.error) as error:
        raise InputError(
            f"the tree's {CONFIG} cannot be read ({type(error).__name__}: {str(error)[:100]}).",
            "Lint on another base.",
        ) from None


def _read(document: dict[str, Any]) -> Config:
    wanted: dict[str, None] = {}
    tools: set[str] = set()
    hooks: list[Hook] = []
    mypy = None
    for repository in document.get("repos") or ():
        url = str(repository["repo"])
        tool = next((name for end, name in TOOLS.items() if url.removesuffix(".git").endswith(end)), None)
        if tool:
            wanted[f"{tool}=={str(repository['rev']).removeprefix('v')}"] = None
            ids = {h["id"] for h in repository["hooks"]}
            tools |= {"ruff" if i in {"ruff", "ruff-check"} else i for i in ids}
        for raw in repository["hooks"] if url == "local" else ():
            hook = _hook(raw)
            if hook is None:
                continue
            if hook.command[0].endswith("/mypy.py"):
                if mypy is not None or raw.get("stages") == ["manual"]:
                    continue
                mypy = hook
                tools.add("mypy")
            else:
                hooks.append(hook)
            wanted |= dict.fromkeys(raw.get("additional_dependencies") or ())
    return Config(tuple(wanted), frozenset(tools), tuple(hooks), mypy, str(document.get("exclude") or "^$"))


def _hook(raw: dict[str, Any]) -> Hook | None:
    """A hook that is a Python script of the tree's own and is about some files; None for any other."""
    words = str(raw.get("entry") or "").replace('"', "").split()
    if len(words) < 2 or words[0] != "python" or raw.get("always_run"):  # noqa: PLR2004
        return None
    if words[1].rpartition("/")[2].startswith(_WRITES) or not words[1].startswith("tools/"):
        return None
    types = [t for t in (*raw.get("types", ()), *raw.get("types_or", ())) if t in _SUFFIXES]
    return Hook(
        str(raw["id"]),
        tuple(words[1:]),
        tuple(dict.fromkeys(s for t in types for s in _SUFFIXES[t])),
        str(raw.get("files") or ""),
        str(raw.get("exclude") or "^$"),
        raw.get("pass_filenames") is not False,
    )
