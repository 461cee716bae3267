"""The store: one bare repository under the cache that holds every base as a commit."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import A_DAY, cache_dir
from patchq.errors import EnvironmentLacksError, InputError, RefusedError
from patchq.git.bare import init_bare
from patchq.git.commits import read_commit, resolve
from patchq.git.objects import Objects
from patchq.git.packs import share_pack
from patchq.git.run import GitError, clean_environment, git_command, require_git, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from patchq.series.lock import Base
    from patchq.upstream.archive import TreeFile

OWNER = "patchq maintainers <patchq@localhost>"
EPOCH = "2020-01-01"
"""The date of a base's commit where nothing better is known; a commit id is never an identity."""


class Store:
    """The bare repository, opened; made on first use."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}
        self.git_dir = cache_dir() / "store.git"
        if not (self.git_dir / "HEAD").is_file():
            require_git()
            try:
                init_bare(self.git_dir)
            except GitError as error:
                raise EnvironmentLacksError(
                    f"the store {self.git_dir} cannot be made: {error.reason}.",
                    "Set PATCHQ_CACHE to a directory of yours.",
                ) from None

    def objects(self, *alternates: Path) -> Objects:
        """The store's objects, with those of other repositories where named."""
        return Objects(self.git_dir, alternates)

    def objects_of(self, bases: Iterable[Base]) -> Objects:
        """The store's objects, with those of the clones among some bases' sources, for their history."""
        found = []
        for source in (base.source for base in bases if base.source.kind == "clone"):
            clone = Path(source.path).expanduser()
            with contextlib.suppress(GitError):
                where = os.fsdecode(run(["rev-parse", "--git-common-dir"], cwd=clone)).rstrip("\n")
                found.append((clone / where / "objects").resolve())
        return self.objects(*dict.fromkeys(found))

    def refs(self) -> dict[str, str]:
        """The commits of the bases that are here, by base name."""
        found = run(
            ["for-each-ref", "--format=%(refname) %(objectname)", "refs/patchq/bases/"], cwd=self.git_dir
        )
        pairs = (line.split(" ") for line in found.decode().splitlines())
        return {name.removeprefix("refs/patchq/bases/"): oid for name, oid in pairs}

    def commits(self, bases: Mapping[str, Base], objects: Objects) -> dict[str, str]:
        """The commits of those bases that are here, by name: as `commit` gives each, in one look.

        Raises:
            RefusedError: what is here is not the tree that the lock names.
        """
        found = {name: oid for name, oid in self.refs().items() if name in bases}
        for name, oid in found.items():
            self._check(name, bases[name], read_commit(objects, oid).tree)
        return found

    def commit(self, name: str, base: Base, objects: Objects | None = None) -> str | None:
        """The commit of a base, or None where it is not here.

        Args:
            name: the base's name.
            base: what the lock says of it.
            objects: the store's objects where they are open already.

        Raises:
            RefusedError: what is here is not the tree that the lock names.
        """
        if name not in self._known:
            with contextlib.nullcontext(objects) if objects is not None else self.objects() as reader:
                found = reader.resolve(f"refs/patchq/bases/{name}^{{commit}}")
                if found is None:
                    return None
                self._known[name] = found, read_commit(reader, found).tree
        commit, tree = self._known[name]
        self._check(name, base, tree)
        return commit

    @staticmethod
    def _check(name: str, base: Base, tree: str) -> None:
        if base.verified and tree != base.tree:
            raise RefusedError(
                f"the store's {name} is tree {tree[:12]}, upstream.lock says {base.tree[:12]}.",
                f"Restore upstream.lock from version control, or run patchq upstream fetch {name} --again.",
            )

    def require(self, name: str, base: Base, objects: Objects | None = None) -> str:
        """The commit of a base that must be here; arguments as `commit`.

        Raises:
            InputError: it has not been fetched.
        """
        commit = self.commit(name, base, objects)
        if commit is None:
            raise InputError(f"the base {name} is not in the store.", f"Run: patchq upstream fetch {name}")
        return commit

    def keep(self, name: str, commit: str) -> None:
        """Make a commit the one of a base."""
        run(["update-ref", f"refs/patchq/bases/{name}", commit], cwd=self.git_dir)
        self._known.pop(name, None)

    def tidy(self) -> None:
        """Take away what killed fetches left; under the store's lock.

        A ref of something incoming has no owner while the lock is held. A file that git was writing might still have
        one in a patchq that needs no lock, and goes when it is a day old.
        """
        left = run(["for-each-ref", "--format=delete %(refname)", "refs/patchq/incoming/"], cwd=self.git_dir)
        if left:
            run(["update-ref", "--stdin"], cwd=self.git_dir, stdin=left)
        for file in (self.git_dir / "objects").glob("*/tmp_*"):
            with contextlib.suppress(OSError):
                if time.time() - file.lstat().st_mtime > A_DAY:
                    file.unlink()

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit in the store."""
        with self.objects() as objects:
            return read_commit(objects, commit).tree

    def share_objects(self, git_dir: Path, commit: str) -> None:
        """Give another repository the objects of a commit: by hard links to the packs, else by a local fetch."""
        packs = sorted((self.git_dir / "objects" / "pack").glob("pack-*.*"))
        target = git_dir / "objects" / "pack"
        target.mkdir(parents=True, exist_ok=True)
        try:
            for file in packs:
                if file.suffix in {".pack", ".idx", ".rev"}:
                    os.link(file, target / file.name)
        except OSError:
            for file in packs:
                (target / file.name).unlink(missing_ok=True)
        with Objects(git_dir) as objects:
            shared = objects.has(commit)
        if not shared:
            run(
                ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(self.git_dir), commit],
                cwd=git_dir,
            )

    def take_files(self, files: Iterable[TreeFile], title: str, date: str) -> str:
        """Write a tree of files as one pack and one commit, reachable by nothing yet; under the store's lock.

        Args:
            files: in any order, each path once.
            title: the commit's message.
            date: `YYYY-MM-DD`, the commit's date.

        Returns:
            The commit's id, the same for the same files, title and date.

        Raises:
            EnvironmentLacksError: the store cannot be written.
        """
        import subprocess

        moment = datetime.datetime.fromisoformat(date or EPOCH).replace(tzinfo=datetime.timezone.utc)
        ref = "refs/heads/incoming"
        incoming = self._incoming()
        importer = subprocess.Popen(
            git_command(
                ["fast-import", "--quiet", "--force"], ["pack.compression=1", "fastimport.unpackLimit=0"]
            ),
            env=clean_environment({"GIT_DIR": str(incoming)}),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if importer.stdin is None:
            raise EnvironmentLacksError("git fast-import does not start.", "Check the git installation.")
        try:
            message = title.encode() + b"\n"
            importer.stdin.write(
                b"commit %s\ncommitter %s %d +0000\ndata %d\n%sdeleteall\n"
                % (ref.encode(), OWNER.encode(), int(moment.timestamp()), len(message), message),
            )
            for path, mode, data in files:
                quoted = (
                    os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
                )
                importer.stdin.write(b'M %o inline "%s"\ndata %d\n' % (mode, quoted, len(data)))
                importer.stdin.write(data)
                importer.stdin.write(b"\n")
            importer.stdin.write(b"done\n")
            _, errors = importer.communicate()
        except BrokenPipeError:
            _, errors = importer.communicate()
        except BaseException:
            importer.kill()
            importer.communicate()
            shutil.rmtree(incoming)
            raise
        commit = resolve(incoming, ref)
        if importer.returncode or commit is None:
            reason = errors.decode("utf-8", "replace").strip().split("\n")[0]
            shutil.rmtree(incoming)
            raise _unwritable(reason)
        try:
            for pack in (incoming / "objects/pack").glob("pack-*.idx"):
                share_pack(pack.stem, incoming / "objects", self.git_dir / "objects")
        except OSError as error:
            raise _unwritable(error.strerror) from None
        finally:
            shutil.rmtree(incoming)
        return commit

    def _incoming(self) -> Path:
        """A repository for what is not yet whole: whatever kills an import leaves it here and never in the store."""
        path = self.git_dir / "patchq-incoming"
        try:
            if path.exists():
                shutil.rmtree(path)
            init_bare(path)
            (path / "objects/info/alternates").write_bytes(os.fsencode(self.git_dir / "objects") + b"\n")
        except GitError as error:
            raise _unwritable(error.reason) from None
        except OSError as error:
            raise _unwritable(error.strerror) from None
        return path


def _unwritable(reason: str | None) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"the store cannot be written: {reason}.", "Make room in PATCHQ_CACHE.")
