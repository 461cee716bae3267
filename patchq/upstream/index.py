"""The package index: finding a release file, and fetching it so that a cut-off download costs nothing."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.errors import EnvironmentLacksError, InputError
from patchq.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from pypi_simple import DistributionPackage

CHUNK = 1 << 16
"""Bytes that are written at a time; of what came, less than this is lost when the connection closes."""
TIMEOUT = (10, 60)
"""Seconds to connect, and between two bytes."""


@dataclass(frozen=True)
class Release:
    """A file on the index."""

    filename: str
    url: str
    sha256: str
    size: int | None


def _packages(project: str) -> list[DistributionPackage]:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT, NoSuchProjectError, PyPISimple, UnsupportedRepoVersionError
    from requests import RequestException

    endpoint = os.environ.get("PIP_INDEX_URL") or PYPI_SIMPLE_ENDPOINT
    try:
        with PyPISimple(endpoint=endpoint) as client:
            return client.get_project_page(project, timeout=TIMEOUT).packages
    except NoSuchProjectError:
        raise EnvironmentLacksError(
            f"the package index has no project {project}.",
            "Check PIP_INDEX_URL, then run this again.",
        ) from None
    except (RequestException, ValueError, UnsupportedRepoVersionError) as error:
        raise unreachable(error) from None


def _release(package: DistributionPackage) -> Release:
    return Release(package.filename, package.url, (package.digests or {}).get("sha256", ""), package.size)


def unreachable(error: Exception) -> EnvironmentLacksError:
    """The one sentence for an index that does not answer."""
    reason = _without_secrets(str(error).split("(Caused by", 1)[-1].strip(" ()"))[:160]
    return EnvironmentLacksError(
        f"the package index cannot be reached ({type(error).__name__}: {reason}).",
        "Check the network and PIP_INDEX_URL, then run the same command again; what was downloaded is kept.",
    )


def _without_secrets(text: str) -> str:
    """A message without the name and password that a url in it may carry."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", text)


def find_sdist(project: str, version: str) -> Release:
    """The sdist of a version.

    Raises:
        EnvironmentLacksError: the index cannot be reached.
        InputError: it has no sdist of that version.
    """
    for package in _packages(project):
        if package.version == version and package.package_type == "sdist":
            return _release(package)
    raise InputError(f"the package index has no sdist of {project} {version}.", "Check the version number.")


def find_wheel(project: str, version: str, platform: str) -> Release | None:
    """The wheel of a version whose file name ends in `platform` (such as `x86_64`), or None.

    Raises:
        EnvironmentLacksError: the index cannot be reached.
    """
    for package in _packages(project):
        stem = package.filename.removesuffix(".whl")
        if package.version == version and package.package_type == "wheel" and stem.endswith(platform):
            return _release(package)
    return None


def download(release: Release, directory: Path, progress: Progress) -> Path:
    """Fetch a file, going on where an earlier try stopped, and check its hash.

    Args:
        release: what to fetch; `release.sha256` is what it must hash to.
        directory: where it is kept, under its hash.
        progress: told how far it is.

    Returns:
        The file, complete and with the right hash.

    Raises:
        EnvironmentLacksError: the transfer stopped (what came is kept), or the hash is wrong (nothing is kept).
    """
    directory.mkdir(parents=True, exist_ok=True)
    done = directory / release.sha256
    if done.is_file() and _sha256(done) == release.sha256:
        return done
    part = directory / f"{release.sha256}.part"
    have = part.stat().st_size if part.exists() else 0
    if have and _sha256(part) == release.sha256:
        part.replace(done)
        return done
    if release.size is not None and have >= release.size:
        have = 0
    _transfer(release, part, have, progress)
    digest = _sha256(part)
    if digest != release.sha256:
        part.unlink()
        raise EnvironmentLacksError(
            f"{release.filename} has sha256 {digest[:12]}…, not {release.sha256[:12]}… as wanted; "
            "the download was thrown away.",
            "Run the same command again; if it stays so, the index serves another file than upstream.lock names.",
        )
    part.replace(done)
    return done


def _transfer(release: Release, part: Path, have: int, progress: Progress) -> None:
    """Bring the rest of a file, after the `have` bytes that are there, or all of it where the server will have it so.

    Raises:
        EnvironmentLacksError: the transfer stopped; what came is kept.
    """
    import requests

    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    expected = None
    try:
        with requests.get(release.url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            beyond = have and response.status_code == requests.codes.requested_range_not_satisfiable
            if not beyond:
                response.raise_for_status()
                resumed = response.status_code == requests.codes.partial_content
                start = have if resumed else 0
                length = response.headers.get("Content-Length")
                expected = start + int(length) if length else release.size
                with (
                    part.open("ab" if resumed else "wb") as file,
                    progress.task(
                        f"downloading {release.filename}", total=expected, done=start, unit="bytes"
                    ) as step,
                ):
                    for chunk in response.iter_content(CHUNK):
                        file.write(chunk)
                        step(len(chunk))
    except requests.RequestException as error:
        if isinstance(error, (requests.ConnectionError, requests.Timeout)) and not part.exists():
            raise unreachable(error) from None
        broken = isinstance(error, requests.exceptions.ChunkedEncodingError)
        why = "the connection closed" if broken else _without_secrets(str(error))
        raise _stopped(release, part, expected, why) from None
    except OSError as error:
        raise _stopped(release, part, expected, error.strerror or str(error)) from None
    if beyond:
        _transfer(release, part, 0, progress)
    elif expected is not None and part.stat().st_size < expected:
        raise _stopped(release, part, expected, "the connection closed")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _stopped(release: Release, part: Path, expected: int | None, why: str) -> EnvironmentLacksError:
    have = part.stat().st_size if part.exists() else 0
    of = f" of {expected:,}" if expected else ""
    return EnvironmentLacksError(
        f"the download of {release.filename} stopped after {have:,}{of} bytes ({why[:120]}).",
        "Run the same command again; it goes on from there.",
    )
