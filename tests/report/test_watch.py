"""A served page: for this machine alone, read only, and new when runs are."""

from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.report.watch import Page, server


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with server(Page([tmp_path / "runs"])) as serving:
        thread = Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        assert serving.server_address[0] == "127.0.0.1"
        yield serving.server_address[1]
        serving.shutdown()
        thread.join()


def asked(port: int, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_waits_for_runs_and_changes_with_them(port: int, tmp_path: Path, write_run: Any) -> None:
    assert "No runs yet" in asked(port)[1]
    before = asked(port, "/version")
    assert asked(port, "/version") == before
    folder = write_run(tmp_path / "runs", "LSTM")
    status, page = asked(port)
    assert status == 200
    assert "LSTM reaches an accuracy of" in page
    version = asked(port, "/version")[1]
    assert version != before[1]
    assert f'data-watch="{version}"' in page
    assert "connect-src 'self'" in page
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("\n")
    assert asked(port, "/version")[1] != version


def test_nothing_else_is_served_and_nothing_is_written(port: int, tmp_path: Path) -> None:
    assert asked(port, "/../../etc/passwd")[0] == 404
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert asked(port, method=method)[0] == 501
    assert asked(port, method="HEAD") == (200, "")
    assert asked(port, Host="evil.example:80")[0] == 403
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_said_in_words(port: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Try another --port"):
        server(Page([tmp_path]), port)
