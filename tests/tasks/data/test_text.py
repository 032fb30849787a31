"""Text files as people have them."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.tasks.data.text import load_text, read_text

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.xz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_line_ends_of_other_systems_are_no_text(
    ending: str, mark: str, tmp_path: Path
) -> None:
    raw = f"{mark}1,2\r\n3,\u00e9\r\n".encode()
    path = tmp_path / f"series.{ending}"
    path.write_bytes(PACK[ending.removeprefix("csv")](raw))
    assert read_text(path) == "1,2\n3,\u00e9\n"


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("corpus", "file"),
    [
        ("ptb", "ptb.valid.txt"),
        ("ptb", "valid.txt"),
        ("wikitext-2", "wiki.valid.tokens"),
        ("mine", "valid.txt"),
    ],
)
def test_a_part_of_a_corpus_is_found_by_either_name_and_packed_or_not(
    corpus: str, file: str, packed: str, tmp_path: Path
) -> None:
    (tmp_path / corpus).mkdir()
    (tmp_path / corpus / (file + packed)).write_bytes(PACK[packed](b"to be\n"))
    assert load_text(corpus, "valid", tmp_path) == "to be\n"
    with pytest.raises(InputError, match="train.* in .*, plain or compressed, but there is none"):
        load_text(corpus, "train", tmp_path)
    (tmp_path / corpus / (file + packed)).write_bytes(b"\xff")
    with pytest.raises(InputError, match="expected text in .*valid.* Get the file again"):
        load_text(corpus, "valid", tmp_path)
