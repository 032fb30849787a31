"""A server on this machine that misbehaves in every way servers do, and a data set on it."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from attractor.tasks.data import DATASETS, Dataset, File, Part, fetch

CONTENT = bytes(range(256)) * 1000
HALF = len(CONTENT) // 2
WRONG = CONTENT[:-1] + b"!"


class Server(ThreadingHTTPServer):
    """Serves its content below a path that says how to misbehave; notes what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.asked: list[tuple[str, str | None]] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()

    @property
    def manners(self) -> list[str]:
        return [manner for manner, _ in self.asked]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        manner = self.path.split("/")[1]
        asked = self.headers.get("Range")
        with self.server.lock:
            first = manner not in self.server.manners
            self.server.asked.append((manner, asked))
        if manner == "absent":
            self.send_error(404)
            return
        if manner == "broken":
            self.send_error(503)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if manner == "rangeless":
            start = 0
        whole = self.server.content
        if start > len(whole):
            self.send_error(416)
            return
        content = (WRONG if manner == "corrupt" else whole)[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content)))
        if start:
            told = 0 if manner == "confused" else start
            self.send_header("Content-Range", f"bytes {told}-{len(whole) - 1}/{len(whole)}")
        self.end_headers()
        if manner in ("truncating", "rangeless", "confused") and first:
            content = content[:HALF]
        elif manner == "long":
            content += b"more"
        elif manner == "stalling":
            self.wfile.write(content[:HALF])
            self.wfile.flush()
            self.server.closing.wait(10)
            return
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


class Fetcher:
    """A data set of one file, published at addresses that misbehave in turn."""

    def __init__(self, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server, self.root, self.monkeypatch = server, root, monkeypatch
        self.target = root / "Tiny/raw/tiny.gz"
        self.part = root / "Tiny/raw/tiny.gz.part"

    def __call__(self, *manners: str, **options: Any) -> list[Path]:
        port = self.server.server_address[1]
        addresses = tuple(f"http://127.0.0.1:{port}/{manner}/" for manner in manners)
        self.publish(addresses)
        return fetch("tiny", self.root, **{"timeout": 5.0, "tries": 2} | options)

    def publish(self, addresses: tuple[str, ...]) -> None:
        file = File(
            "Tiny/raw/tiny.gz",
            md5=hashlib.md5(CONTENT).hexdigest(),
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            size=len(CONTENT),
        )
        tiny = Dataset("Tiny", "", "", addresses, {"all": Part((len(CONTENT),), (file,))})
        self.monkeypatch.setitem(DATASETS, "tiny", tiny)

    def arrived(self) -> bool:
        return self.target.read_bytes() == CONTENT and not self.part.exists()
