"""Text files as people have them."""

import gzip
import lzma
from pathlib import Path

import pytest

from attractor.tasks.data.text import read_text


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.xz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_line_ends_of_other_systems_are_no_text(
    ending: str, mark: str, tmp_path: Path
) -> None:
    raw = f"{mark}1,2\r\n3,\u00e9\r\n".encode()
    packed = {"csv": raw, "csv.gz": gzip.compress(raw), "csv.xz": lzma.compress(raw)}
    path = tmp_path / f"series.{ending}"
    path.write_bytes(packed[ending])
    assert read_text(path) == "1,2\n3,\u00e9\n"
