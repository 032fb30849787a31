"""The idx format, against bytes written by hand."""

import pytest

from attractor.errors import InputError
from attractor.tasks.data.idx import idx_size, parse_idx

HEADER = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3])
CONTENT = HEADER + bytes([1, 2, 3, 4, 5, 6])


def test_the_last_dimension_runs_fastest() -> None:
    array = parse_idx(CONTENT, (2, 3))
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert array.flags.writeable


def test_the_size_is_that_of_the_file() -> None:
    assert idx_size((2, 3)) == len(CONTENT)


@pytest.mark.parametrize("length", range(len(HEADER)))
def test_a_cut_header_is_named(length: int) -> None:
    with pytest.raises(InputError, match=f"header of 12 bytes, but it ends after {length}"):
        parse_idx(CONTENT[:length], (2, 3))


@pytest.mark.parametrize(
    "first", [b"\0\0\x0d\2", b"\0\0\x08\3", b"\x1f\x8b\x08\0", b"\1\0\x08\2"], ids=str
)
def test_a_wrong_magic_number_is_named(first: bytes) -> None:
    with pytest.raises(InputError, match=f"0x00000802 .* starts with 0x{first.hex()}"):
        parse_idx(first + CONTENT[4:], (2, 3))


def test_a_wrong_count_is_named() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 3\), but its header says \(2, 3\)"):
        parse_idx(CONTENT, (5, 3))


def test_missing_and_surplus_bytes_are_named() -> None:
    with pytest.raises(InputError, match=r"18 bytes for shape \(2, 3\), but it has 17"):
        parse_idx(CONTENT[:-1], (2, 3))
    with pytest.raises(InputError, match=r"18 bytes for shape \(2, 3\), but it has more"):
        parse_idx(CONTENT + b"\0", (2, 3))
