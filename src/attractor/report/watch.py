"""A page that is served while runs go on: on this machine alone, and nothing can be written."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from markupsafe import escape

from attractor.errors import InputError
from attractor.report.build import build
from attractor.runs.read import read_runs

HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")
WAITING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>attractor</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="3">
<p>{} This page looks again every three seconds."""
FILES = ("config.toml", "metrics.jsonl", "done.json", "failed.json")


class Page:
    """The page about runs as they are now, made anew when one of them has changed.

    Args:
        folders: as for :func:`attractor.runs.read.read_runs`; they need not exist yet.
        title: its heading; ``None`` takes it from the runs.
    """

    def __init__(self, folders: Sequence[Path], title: str | None = None) -> None:
        self.folders, self.title = list(folders), title
        self._lock = Lock()
        self._made = ("", b"")

    def version(self) -> str:
        """Another text whenever a run has begun, logged or ended."""
        seen = hashlib.sha256()
        for folder in self.folders:
            for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
                if path.name in FILES and (size := _size(path)) is not None:
                    seen.update(f"{path} {size}\n".encode(errors="replace"))
        return seen.hexdigest()[:16]

    def html(self) -> bytes:
        """The page; one that waits, and says for what, while there is nothing to show."""
        version = self.version()
        with self._lock:
            if self._made[0] != version:
                self._made = (version, self._build(version))
            return self._made[1]

    def _build(self, version: str) -> bytes:
        begun = [folder for folder in self.folders if any(folder.rglob("config.toml"))]
        if not begun:
            return WAITING.format("No runs yet.").encode()
        try:
            runs, damaged = read_runs(begun)
            page = build(runs, self.title, damaged, watch=version)
        except InputError as error:  # such as two runs of one seed
            page = WAITING.format(escape(str(error)))
        return page.encode(errors="replace")


def _size(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:  # a run's folder may be moved while it is looked at
        return None
    return found.st_size, found.st_mtime_ns


def server(page: Page, port: int = 0) -> ThreadingHTTPServer:
    """A server of the page at ``/`` and of its version at ``/version``, for this machine alone.

    It answers GET and HEAD; requests in the name of another host are refused, so that a page of
    another site cannot read it.

    Args:
        page: what is served.
        port: 0 takes a free one.
    """

    class Handler(BaseHTTPRequestHandler):
        server_version = "attractor"
        sys_version = ""

        def handle(self) -> None:
            with suppress(ConnectionError):  # of a reader who has gone
                super().handle()

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
            if host not in NAMES:
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            if self.path == "/":
                data, kind = page.html(), "text/html; charset=utf-8"
            elif self.path == "/version":
                data, kind = page.version().encode(), "text/plain"
            else:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing: a page that looks every three seconds would fill the terminal."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"expected a free port, but {port} cannot be had ({error}). Try another --port."
        ) from error
