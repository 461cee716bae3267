"""Git objects in memory: read through one `cat-file --batch`, made here, written to a repository in one go.

Everything the engine decides is decided on these; a repository is written only by `Objects.flush`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patchq.git.packs import write_objects
from patchq.git.run import clean_environment, git_command, no_git, require_git

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

REGULAR = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
SUBMODULE = 0o160000
DIRECTORY = 0o040000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
ZERO_OID = "0" * 40
_TREES = 4000
"""Trees that are kept in the form they are asked in."""
_TURN = 500
"""Objects that are asked for at once: their names fit the pipe to git, which waits while its answers are not read."""


class Entry(NamedTuple):
    """What stands at a path of a tree: file mode (as git's octal number) and object id (40 hex digits)."""

    mode: int
    oid: str


def object_id(kind: str, data: bytes) -> str:
    """The SHA-1 that git gives an object of this kind and content."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def parse_tree(data: bytes) -> dict[bytes, Entry]:
    """The entries of one raw tree object, by name."""
    entries = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        nul = data.index(b"\0", space)
        entries[data[space + 1 : nul]] = Entry(int(data[at:space], 8), data[nul + 1 : nul + 21].hex())
        at = nul + 21
    return entries


def format_tree(entries: Mapping[bytes, Entry]) -> bytes:
    """The raw tree object for these entries, in git's order (directories sort as if they ended in a slash)."""

    def order(name: bytes) -> bytes:
        return name + b"/" if entries[name].mode == DIRECTORY else name

    return b"".join(
        b"%o %s\0%s" % (entries[n].mode, n, bytes.fromhex(entries[n].oid)) for n in sorted(entries, key=order)
    )


class Objects:
    """An object database: one repository (and its alternates) below, new objects in memory on top."""

    def __init__(self, git_dir: Path, alternates: Sequence[Path] = ()) -> None:
        """Open a database.

        Args:
            git_dir: the repository that objects are read from.
            alternates: object directories (`.../objects`) of others that may be read as well.
        """
        self.git_dir = git_dir
        self.alternates = tuple(alternates)
        self._env = (
            {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(str, alternates))} if alternates else {}
        )
        self._new: dict[str, tuple[str, bytes]] = {}
        self._ahead: dict[str, tuple[str, bytes]] = {}
        self._trees: dict[str, dict[bytes, Entry]] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def directories(self) -> tuple[Path, ...]:
        """The object directories that are read, for another reader to read them as well."""
        return (self.git_dir / "objects", *self.alternates)

    def __enter__(self) -> Objects:  # noqa: PYI034
        """Nothing starts until the first read."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the reader."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def resolve(self, name: str) -> str | None:
        """The id of the object that a revision names, or None."""
        try:
            return self._read(name)[0]
        except KeyError:
            return None

    def get(self, name: str) -> tuple[str, bytes]:
        """The kind and content of an object.

        Args:
            name: an object id, or any revision that git resolves.

        Raises:
            KeyError: there is no such object.
        """
        if name in self._new:
            return self._new[name]
        return self._ahead.pop(name, None) or self._read(name)[1:]

    def read_ahead(self, tree: str, paths: Iterable[str]) -> None:
        """Read the files at some paths of a tree, and the trees on the way, in as few turns as there are levels.

        A file is kept until it is asked for, or this is called again; what is not there is passed over.
        """
        self._ahead.clear()
        below = [(tree, tuple(os.fsencode(path).split(b"/"))) for path in dict.fromkeys(paths)]
        while below:
            self._take_ahead({oid for oid, _ in below if oid not in self._trees})
            files, deeper = set(), []
            for oid, (name, *rest) in below:
                entry = self._trees.get(oid, {}).get(name)
                if entry is not None and entry.mode == DIRECTORY and rest:
                    deeper.append((entry.oid, tuple(rest)))
                elif entry is not None and entry.mode != SUBMODULE and not rest:
                    files.add(entry.oid)
            self._take_ahead(files)
            below = deeper

    def _take_ahead(self, oids: set[str]) -> None:
        wanted = sorted(oids - self._new.keys() - self._ahead.keys())
        for at in range(0, len(wanted), _TURN):
            turn = wanted[at : at + _TURN]
            try:
                self._ask(turn)
            except KeyError:
                return
            for oid in turn:
                with contextlib.suppress(KeyError):
                    self._ahead[oid] = self._answer(oid)[1:]
        for oid in oids:
            if oid not in self._trees and self._ahead.get(oid, ("",))[0] == "tree":
                self._keep(oid, parse_tree(self._ahead.pop(oid)[1]))

    def _read(self, name: str) -> tuple[str, str, bytes]:
        """The id, kind and content of an object that the repository has."""
        if "\n" in name:
            raise KeyError(name)
        self._ask([name])
        return self._answer(name)

    def _ask(self, names: Sequence[str]) -> None:
        """Ask the reader for objects; each is answered in turn, and what is asked at once fits its pipe."""
        if self._process is None:
            self._process = self._start()
        writer = self._process.stdin
        if writer is None:
            raise KeyError(names[0])
        try:
            writer.write("".join(f"{name}\n" for name in names).encode())
            writer.flush()
        except BrokenPipeError:
            raise KeyError(names[0]) from None

    def _answer(self, name: str) -> tuple[str, str, bytes]:
        reader = self._process.stdout if self._process is not None else None
        if reader is None:
            raise KeyError(name)
        header = reader.readline().split()
        if len(header) != 3 or header[1] not in {b"blob", b"tree", b"commit", b"tag"}:  # noqa: PLR2004
            raise KeyError(name)
        data = reader.read(int(header[2]))
        reader.read(1)
        return header[0].decode(), header[1].decode(), data

    def _start(self) -> subprocess.Popen[bytes]:
        require_git()
        try:
            return subprocess.Popen(
                git_command(["cat-file", "--batch"], ["protocol.allow=never"]),
                cwd=self.git_dir,
                env=clean_environment({"GIT_DIR": str(self.git_dir), **self._env}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError as error:
            if not self.git_dir.is_dir():
                raise
            raise no_git() from error

    def blob(self, oid: str) -> bytes:
        """The content of a blob.

        Raises:
            KeyError: there is no blob of that id.
        """
        kind, data = self.get(oid)
        if kind != "blob":
            raise KeyError(oid)
        return data

    def has(self, name: str) -> bool:
        """Whether the object can be read here."""
        try:
            self.get(name)
        except KeyError:
            return False
        return True

    def tree(self, oid: str) -> dict[bytes, Entry]:
        """The entries of a tree, by name; a fresh dictionary each time.

        Raises:
            KeyError: there is no tree of that id.
        """
        return dict(self._tree(oid))

    def _tree(self, oid: str) -> dict[bytes, Entry]:
        """The entries of a tree, as they are kept: not to be changed."""
        entries = self._trees.pop(oid, None) if oid != EMPTY_TREE else {}
        if entries is None:
            kind, data = self.get(oid)
            if kind != "tree":
                raise KeyError(oid)
            entries = parse_tree(data)
        self._keep(oid, entries)
        return entries

    def _keep(self, oid: str, entries: dict[bytes, Entry]) -> None:
        """Keep a tree that was read; those that were not asked for longest go."""
        self._trees[oid] = entries
        if len(self._trees) > _TREES:
            del self._trees[next(iter(self._trees))]

    def put(self, kind: str, data: bytes) -> str:
        """Make an object in memory and give its id."""
        oid = object_id(kind, data)
        self._new.setdefault(oid, (kind, data))
        return oid

    def lookup(self, tree: str, path: str) -> Entry | None:
        """What stands at `path` in `tree`, or None."""
        entry = Entry(DIRECTORY, tree)
        for part in os.fsencode(path).split(b"/"):
            if entry.mode != DIRECTORY:
                return None
            found = self._tree(entry.oid).get(part)
            if found is None:
                return None
            entry = found
        return entry

    def walk(self, tree: str, prefix: bytes = b"") -> Iterator[tuple[str, Entry]]:
        """Every file of a tree, as (path, entry), in git's order; submodules and links count as files."""
        for name, entry in self.tree(tree).items():
            if entry.mode == DIRECTORY:
                yield from self.walk(entry.oid, prefix + name + b"/")
            else:
                yield os.fsdecode(prefix + name), entry

    def edit_tree(self, tree: str, changes: Mapping[str, Entry | None]) -> str:
        """The id of `tree` with `changes` made: an entry is put at its path, None takes the file there away.

        Only the directories on the way are rewritten; one that becomes empty vanishes.

        Raises:
            ValueError: a file and a directory would have one path, which it names.
        """
        root = self._edit(tree, {tuple(os.fsencode(p).split(b"/")): e for p, e in changes.items()})
        return root if root is not None else self.put("tree", b"")

    def _edit(
        self, tree: str | None, changes: Mapping[tuple[bytes, ...], Entry | None], at: bytes = b""
    ) -> str | None:
        entries = self.tree(tree) if tree else {}
        below: dict[bytes, dict[tuple[bytes, ...], Entry | None]] = {}
        here: dict[bytes, Entry] = {}
        for parts, entry in changes.items():
            if len(parts) > 1:
                below.setdefault(parts[0], {})[parts[1:]] = entry
            elif entry is None:
                if parts[0] in entries and entries[parts[0]].mode != DIRECTORY:
                    del entries[parts[0]]
            else:
                here[parts[0]] = entry
        for name, deeper in below.items():
            old = entries.get(name)
            if old is not None and old.mode != DIRECTORY and any(deeper.values()):
                raise ValueError(os.fsdecode(at + name))
            oid = self._edit(
                old.oid if old and old.mode == DIRECTORY else None, deeper, b"%s%s/" % (at, name)
            )
            if oid is not None:
                entries[name] = Entry(DIRECTORY, oid)
            elif old is not None and old.mode == DIRECTORY:
                del entries[name]
        for name, entry in here.items():
            if name in entries and entries[name].mode == DIRECTORY:
                raise ValueError(os.fsdecode(at + name))
            entries[name] = entry
        if not entries:
            return None
        return self.put("tree", format_tree(entries))

    @property
    def made(self) -> Collection[tuple[str, bytes]]:
        """Kind and content of the objects that were made here."""
        return self._new.values()

    def flush(self, git_dir: Path) -> int:
        """Write the new objects to a repository and give their number; nothing becomes reachable by it.

        Raises:
            GitError: the repository refused them (read-only, no space left).
        """
        write_objects(git_dir, self.made)
        return len(self._new)
