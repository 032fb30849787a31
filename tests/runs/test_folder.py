"""What is kept with a run that failed."""

from pathlib import Path

from attractor.runs.folder import fail, failure


def test_the_first_reason_is_kept_and_only_where_there_is_a_folder(tmp_path: Path) -> None:
    fail(tmp_path / "none", "OSError: the disk is full")
    assert not (tmp_path / "none").exists()
    fail(tmp_path, "InputError: a loss of nan")
    fail(tmp_path, "OSError: the disk is full")
    assert failure(tmp_path) == "InputError: a loss of nan"
