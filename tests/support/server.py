"""A package index on 127.0.0.1: a simple page and its files, with the troubles that a test asks for."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import tarfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Index:
    """What the server serves, and how; a test may change it between requests.

    Attributes:
        files: by name.
        ranges: whether it honours Range.
        cut: after how many bytes of a file it hangs up; None for never.
        status: what it answers to a file request instead of serving it.
        page_status: what it answers to the page request.
        meta: more for the page's head.
        asked: the Range header of each file request, in order; None where it had none.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cut: int | None = None
    status: int = 200
    page_status: int = 200
    meta: str = ""
    asked: list[str | None] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple"

    def page(self) -> bytes:
        rows = "".join(
            f'<a href="../../files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>\n'
            for name, data in self.files.items()
        )
        return f"<!DOCTYPE html><html><head>{self.meta}</head><body>{rows}</body></html>".encode()


def sdist(members: dict[str, bytes] | None = None, *extra: tarfile.TarInfo, top: str = "vllm-1.0/") -> bytes:
    """A gzipped tar of files, with further raw members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, data in (members or {}).items():
            info = tarfile.TarInfo(top + name)
            info.size = len(data)
            info.mode = 0o755 if name.endswith(".sh") else 0o644
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info, io.BytesIO(b"\0" * info.size))
    return out.getvalue()


@contextlib.contextmanager
def serving(index: Index) -> Iterator[Index]:
    """Serve an index on a free port of 127.0.0.1 while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            if self.path == "/simple/vllm/":
                self._send(index.page_status, index.page(), {"Content-Type": "text/html"})
            elif name in index.files:
                self._file(index.files[name])
            else:
                self._send(404, b"", {})

        def _file(self, data: bytes) -> None:
            asked = self.headers.get("Range")
            index.asked.append(asked)
            if index.status != 200:
                self._send(index.status, b"no", {})
                return
            start = int(re.findall(r"\d+", asked)[0]) if asked and index.ranges else 0
            if start >= len(data) > 0 and asked and index.ranges:
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            status = 206 if asked and index.ranges else 200
            self._send(
                status,
                data[start:],
                {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"},
                index.cut,
            )

        def _send(self, status: int, data: bytes, headers: dict[str, str], cut: int | None = None) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data if cut is None else data[:cut])
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
