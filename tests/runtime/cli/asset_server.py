"""A web server of zips on this machine that can be told to misbehave."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BLOCK = 1 << 14


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of these files, not compressed, so that its size follows from theirs."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@dataclass
class Served:
    """One file and how it is served."""

    content: bytes
    status: int = 200
    """Anything but 200 is all that comes."""
    kind: str = "application/zip"
    ranges: bool = True
    length: bool = True
    """Whether the length is told."""
    cuts: list[int] = field(default_factory=list)
    """How many bytes the next answers send before the connection is cut; none left: all."""
    hold_after: int | None = None
    """Bytes after which an answer stops until it is let go."""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The Range of each request; empty for none."""
    sent: threading.Event = field(default_factory=threading.Event)
    """Set when `hold_after` bytes are on their way."""
    go_on: threading.Event = field(default_factory=threading.Event)
    redirect: str = ""
    """Path or address where it is instead."""


@dataclass
class Server:
    """Where the files are."""

    url: str
    files: dict[str, Served]


@contextmanager
def serving(files: Mapping[str, Served]) -> Iterator[Server]:
    """Serve files while the block runs."""
    held = dict(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, held)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_address[1]}", held)
    finally:
        for served in held.values():
            served.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def answer(request: BaseHTTPRequestHandler, files: Mapping[str, Served]) -> None:
    """Send what the file's settings say."""
    served = files.get(request.path.lstrip("/"))
    if served is None:
        request.send_error(404)
        return
    wanted = request.headers.get("Range", "")
    served.asked.append(wanted)
    if served.redirect:
        request.send_response(302)
        request.send_header("Location", served.redirect)
        headers(request, served, 0)
        return
    if served.status != 200:
        request.send_error(served.status)
        return
    size, found = len(served.content), re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
    first, last = 0, size - 1
    if found and served.ranges:
        first = int(found.group(1))
        last = min(int(found.group(2) or last), last)
        if first > last:
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{size}")
            headers(request, served, 0)
            return
        request.send_response(206)
        request.send_header("Content-Range", f"bytes {first}-{last}/{size}")
    else:
        request.send_response(200)
    headers(request, served, last + 1 - first)
    probe = bool(found and found.group(2))
    body(request, served, served.content[first : last + 1], probe)


def headers(request: BaseHTTPRequestHandler, served: Served, length: int) -> None:
    request.send_header("Content-Type", served.kind)
    if served.length:
        request.send_header("Content-Length", str(length))
    for name, value in served.headers.items():
        request.send_header(name, value)
    request.end_headers()
    request.close_connection = True


def body(request: BaseHTTPRequestHandler, served: Served, content: bytes, probe: bool) -> None:
    most = served.cuts.pop(0) if served.cuts and not probe else len(content)
    try:
        for start in range(0, most, BLOCK):
            if served.hold_after is not None and start >= served.hold_after and not probe:
                request.wfile.flush()
                served.sent.set()
                served.go_on.wait(60)
            request.wfile.write(content[start : min(start + BLOCK, most)])
    except OSError:  # the other side has gone
        return
