"""A real HTTP server on this machine that serves files, well or badly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """`files` by name; `faults` says by name what goes wrong: truncated or stalls."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.faults: dict[str, str] = {}
        self.requested: list[str] = []
        # Half of a file that stalls was sent, and the client may stop.
        self.stalled = threading.Event()
        self.ends = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.requested.append(name)
        if name not in self.server.files:
            self.send_error(404)
            return
        content = self.server.files[name]
        fault = self.server.faults.get(name)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault else content)
        if fault == "stalls":
            self.server.stalled.set()
            self.server.ends.wait()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serve_files(files: dict[str, bytes]) -> Iterator[FileServer]:
    with FileServer(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.ends.set()
            server.shutdown()
            thread.join()
