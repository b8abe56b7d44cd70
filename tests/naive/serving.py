"""A web server of one file, with the faults that real ones have."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@dataclasses.dataclass
class Server:
    """What to serve, how, and what was asked for.

    Parameters
    ----------
    content : bytes
        The file.
    path : str
        Where it is; everything else is 404.
    ranges : bool
        Whether parts can be asked for.
    etag : str
        Identifies this version of the file; none if empty.
    cut_after : list of int
        Bytes after which the next answers break off, one for each.
    statuses : list of int
        Answers that refuse, one for each of the next requests.
    lie_about_range : bool
        Answer a request for a part with another part.
    length : bool
        Whether the length is told.
    modified : str
        When the file was changed, in the words of HTTP; untold if empty.
    redirect : str
        Where everybody is sent to; nowhere if empty.
    """

    content: bytes
    path: str = "/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
    ranges: bool = True
    etag: str = '"one"'
    cut_after: list[int] = dataclasses.field(default_factory=list)
    statuses: list[int] = dataclasses.field(default_factory=list)
    lie_about_range: bool = False
    length: bool = True
    modified: str = ""
    redirect: str = ""
    requests: list[dict[str, str]] = dataclasses.field(default_factory=list)
    url: str = ""

    @property
    def asked(self) -> list[str]:
        """The Range of each request, empty where it had none."""
        return [request.get("Range", "") for request in self.requests]


def answer(server: Server, handler: http.server.BaseHTTPRequestHandler) -> None:
    server.requests.append(dict(handler.headers.items()))
    if server.statuses:
        handler.send_error(server.statuses.pop(0))
        return
    if server.redirect:
        handler.send_response(302)
        handler.send_header("Location", server.redirect)
        handler.end_headers()
        return
    if handler.path != server.path:
        handler.send_error(404)
        return
    size = len(server.content)
    wanted = handler.headers.get("Range")
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
    version = handler.headers.get("If-Range")
    if version is not None and version not in {server.etag, server.modified}:
        start = 0
    if start >= size:
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{size}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    handler.send_response(206 if start else 200)
    if start:
        shown = start + 1 if server.lie_about_range else start
        handler.send_header("Content-Range", f"bytes {shown}-{size - 1}/{size}")
    if server.etag:
        handler.send_header("ETag", server.etag)
    if server.modified:
        handler.send_header("Last-Modified", server.modified)
    if server.length:
        handler.send_header("Content-Length", str(size - start))
    handler.end_headers()
    body = server.content[start:]
    if server.cut_after:
        body = body[: server.cut_after.pop(0)]
    handler.wfile.write(body)
    handler.close_connection = True


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve on a free port of this machine; ``server.url`` is the address of the file."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(server, self)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{listener.server_port}{server.path}"
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
