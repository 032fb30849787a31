"""The misbehaving server, and a data set to fetch from it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.data.server import Fetcher, Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.closing.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def fetcher(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetcher:
    return Fetcher(server, tmp_path / "root", monkeypatch)
