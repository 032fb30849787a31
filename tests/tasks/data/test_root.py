"""The data root: given, from the environment, or the user's cache."""

from pathlib import Path

import pytest

from attractor.tasks.data import data_root


def test_a_given_folder_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTRACTOR_DATA", "elsewhere")
    assert data_root(tmp_path) == tmp_path
    assert data_root(str(tmp_path)) == tmp_path


def test_the_environment_comes_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTRACTOR_DATA", str(tmp_path))
    assert data_root() == tmp_path


@pytest.mark.parametrize("empty", [True, False])
def test_the_cache_comes_last(monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    if empty:
        monkeypatch.setenv("ATTRACTOR_DATA", "")
    else:
        monkeypatch.delenv("ATTRACTOR_DATA", raising=False)
    root = data_root()
    assert root.is_absolute()
    assert "attractor" in root.parts


def test_the_home_folder_is_understood() -> None:
    assert data_root("~/data") == Path.home() / "data"
