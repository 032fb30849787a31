"""A served page: for this machine alone, read only, and new when runs are."""

from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from shutil import copytree, rmtree
from socket import SO_LINGER, SOL_SOCKET, create_connection
from struct import pack
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


def test_it_says_why_there_is_nothing_to_show(port: int, tmp_path: Path, write_run: Any) -> None:
    folder = write_run(tmp_path / "runs", "<i>LSTM</i>")
    copytree(folder, folder.with_name("again"))
    status, page = asked(port)
    assert status == 200
    assert "expected one run of &#39;&lt;i&gt;LSTM&lt;/i&gt;&#39; per seed" in page
    assert "looks again every three seconds" in page
    rmtree(folder)
    assert "reaches an accuracy of" in asked(port)[1]


def test_runs_are_shown_beside_a_folder_that_does_not_exist_yet(
    tmp_path: Path, write_run: Any
) -> None:
    write_run(tmp_path / "one", "LSTM")
    page = Page([tmp_path / "one", tmp_path / "two"])
    assert b"LSTM reaches an accuracy of" in page.html()


def test_a_reader_who_leaves_is_no_error(
    port: int, tmp_path: Path, write_run: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs", "LSTM")
    asked(port)
    with create_connection(("127.0.0.1", port)) as leaving:
        leaving.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))  # a reset, not an end
        leaving.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert asked(port)[0] == 200
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_said_in_words(port: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Try another --port"):
        server(Page([tmp_path]), port)
