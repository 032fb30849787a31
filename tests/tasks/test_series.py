"""Time series of the archives as a task."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.tasks import TimeSeries
from attractor.tasks.arrays import Data
from attractor.tasks.data.series import load_series, read_answers, read_series
from attractor.tasks.series import Scaled, held_back


def write(root: Path, train: str, test: str | None = None, form: str = "tsv") -> None:
    (root / "ucr").mkdir(exist_ok=True)
    for half, text in (("TRAIN", train), ("TEST", test or train)):
        (root / "ucr" / f"Some_{half}.{form}").write_text(text)


def test_a_tsv_of_equal_series(tmp_path: Path) -> None:
    write(tmp_path, "2\t1\t3\n-1\t5\t7\n2\t9\t11\n-1\t1\t1\n")
    task = TimeSeries("Some", validation=0.5, root=tmp_path)
    assert (task.input_size, task.output_size, task.answers) == (1, 2, "once")
    assert len(task) == 2
    assert sorted(task.train.y.tolist()) == [0, 1]  # each class is in both parts
    assert task.valid is not None
    assert sorted(task.valid.y.tolist()) == [0, 1]
    batch = next(task.held_out("test", 4))
    assert batch.x[..., 0].tolist() == [[1, 3], [5, 7], [9, 11], [1, 1]]
    assert batch.y.tolist() == [1, 0, 1, 0]
    assert batch.lengths is None


def test_a_ts_of_several_dimensions_and_unequal_lengths_is_scaled(tmp_path: Path) -> None:
    lines = "@data\n1,3,5:2,2,2:a\n7:6:b\n"
    write(tmp_path, lines, form="ts")
    task = TimeSeries("Some", validation=0, normalise=True, root=tmp_path)
    assert task.valid is None
    batch = next(task.held_out("test", 2))
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [3, 1]
    seen = torch.tensor([[1.0, 2], [3, 2], [5, 2], [7, 6]])
    expected = (seen - seen.mean(0)) / seen.std(0, correction=0)
    torch.testing.assert_close(torch.cat([batch.x[0], batch.x[1, :1]]), expected)


def test_held_back_takes_a_share_of_each_class() -> None:
    y = torch.tensor([0] * 20 + [1] * 10 + [2])
    kept, back = held_back(Data(torch.arange(31.0)[:, None, None], y), 0.3)
    assert back is not None
    assert back.y.bincount().tolist() == [6, 3]
    assert kept.y.bincount().tolist() == [14, 7, 1]
    assert sorted(torch.cat([kept.x, back.x]).flatten().tolist()) == list(range(31))
    _, back = held_back(Data(torch.zeros(5, 1, 1), torch.zeros(5, dtype=torch.long)), 0.35)
    assert back is not None
    assert len(back.y) == 2  # 1.75, rounded


def test_bad_series(tmp_path: Path) -> None:
    write(tmp_path, "1\t1\t3\n1\t5\t7\n")
    with pytest.raises(InputError, match="at least two classes .* all are of the class 1"):
        TimeSeries("Some", root=tmp_path)
    write(tmp_path, "1\tNaN\t1\n2\t5\t7\n")
    with pytest.raises(InputError, match="missing values"):
        TimeSeries("Some", root=tmp_path)
    write(tmp_path, "1\t1\n2\t5\n", "3\t1\n")
    with pytest.raises(InputError, match="expected the classes 1, 2 in the test half"):
        TimeSeries("Some", root=tmp_path)
    write(tmp_path, "1\t1\n2\t5\n")
    with pytest.raises(InputError, match="expected enough series to keep a share of 0.2"):
        TimeSeries("Some", root=tmp_path)
    with pytest.raises(InputError, match=r"expected Other_TRAIN\.tsv"):
        TimeSeries("Other", root=tmp_path)


ROWS = "a,5,6,7\nb,8,9,1\na,5,6,7\nb,8,9,1\n"
NAMED = {
    "numbers from 0": "label,0,1,2\n" + ROWS,
    "numbers from 1": "label,1,2,3\n" + ROWS,
    "numbers with blanks and lines before": "# a comment\n\n class , 0 , 1 , 2 \n" + ROWS,
    "the whole first line counts": "0,1,2,3\n" + ROWS,
    "no name for labels": ",0,1,2\n" + ROWS,
    "a word beside numbers": "y,0,1,2\n1.5,5,6,7\n2,8,9,1\n3,5,6,7\n4,8,9,1\n",
    "no word beside numbers": ",0,1,2\n1.5,5,6,7\n2,8,9,1\n3,5,6,7\n4,8,9,1\n",
}


@pytest.mark.parametrize("case", NAMED)
def test_a_first_line_of_numbered_columns_is_no_series_and_that_is_said(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "some.csv"
    path.write_text(NAMED[case])
    for needed in (True, False):
        caplog.clear()
        found, _ = read_answers(path, needed=needed)
        assert found.x[..., 0].tolist() == [[5, 6, 7], [8, 9, 1]] * 2
        assert f"line {3 if 'before' in case else 1} of {path}" in caplog.text
        assert "taken for the names of columns" in caplog.text


COUNTS = {
    "it is alone": "a,1,2,3\n",
    "its class has others": "a,1,2,3\n" + ROWS,
    "a class of others is alone too": "up,1,2,3\n" + ROWS + "c,5,5,5\n",
    "the whole first line counts": "0,1,2,3\n0,5,6,7\n1,8,9,1\n1,8,9,1\n",
}


@pytest.mark.parametrize("case", COUNTS)
def test_a_series_that_counts_stays_where_its_label_may_be_a_class_and_that_is_said(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "some.csv"
    path.write_text(COUNTS[case])
    found, _ = read_answers(path)
    assert found.x[0, :, 0].tolist() == [1, 2, 3]
    assert f"line 1 of {path} counts" in caplog.text
    assert "taken for a series" in caplog.text


def test_other_first_lines_are_as_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "some.csv"
    for line in ("c,1,3,2\n", "c,1,2,3.5\n", "c,1.0,2.0,3.0\n", "c,2,3,4\n"):
        path.write_text(line + ROWS)
        assert len(read_answers(path)[0].y) == 5
    path.write_text("c,1\na,2\na,3\n")
    assert read_answers(path)[0].y == ["c", "a", "a"]
    path.write_text("label,x,y,z\n" + ROWS)
    assert len(read_answers(path)[0].y) == 4
    assert caplog.text == ""
    path.write_text("label,x,y,z\nlabel,x,y,z\n" + ROWS)
    with pytest.raises(InputError, match=r"could not convert .* \(line 2\)"):
        read_answers(path)


def test_without_labels_three_columns_that_count_are_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "some.csv"
    path.write_text("0,1,2\n5,6,7\n8,9,1\n")
    found, _ = read_answers(path, labelled=False)
    assert found.x[..., 0].tolist() == [[5, 6, 7], [8, 9, 1]]
    assert "taken for the names of columns" in caplog.text
    for text, series in (("1,2\n5,6\n", 2), ("0,1,2\n", 1)):
        path.write_text(text)
        assert len(read_answers(path, labelled=False)[0].x) == series


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,?,3:a", "missing values .NaN. in series 1"),
        ("(0,1),(1,2):a", "times beside values, as @timestamps true has them"),
        ("1,2,3:1,2:a", "dimensions of 3 and of other numbers of values .line 3"),
    ],
)
def test_what_ts_files_may_have_and_is_not_read_is_said(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "Some_TRAIN.ts"
    path.write_text(f"@data\n1,2,3:b\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_series(path)


def test_series_with_a_large_offset_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "some.tsv"
    path.write_text("a\t1000000000.25\t1e-30\nb\t1000000001.5\t2e-60\n")
    assert read_answers(path)[0].x[..., 0].tolist() == [[1e9 + 0.25, 1e-30], [1e9 + 1.5, 2e-60]]
    write(tmp_path, path.read_text())
    assert load_series("Some", "train", tmp_path).x.dtype == np.float32


def test_a_dimension_of_tiny_values_is_scaled_and_one_that_never_changes_is_not() -> None:
    x = torch.tensor([[1e-13, 0.1], [3e-13, 0.1]], dtype=torch.float64)
    for data in (x, x.float(), x * 1e26):
        scaled = Scaled.of(Data(data[None], torch.tensor([0])))
        assert scaled.mean.dtype == scaled.std.dtype == data.dtype
        torch.testing.assert_close(scaled(data)[:, 0], torch.tensor([-1.0, 1]).to(data))
        assert scaled.std[1] == 1


@pytest.mark.parametrize(("form", "between"), [("tsv", "\t"), ("csv", ",")])
def test_labels_of_a_table_may_begin_as_remarks_do(form: str, between: str, tmp_path: Path) -> None:
    path = tmp_path / f"some.{form}"
    lines = ["# a remark", "@classLabel false", "#1 5 6", "@home 7 8", "a 1 9"]
    path.write_text("\n".join([*lines[:2], *(one.replace(" ", between) for one in lines[2:])]))
    found, _ = read_answers(path)
    assert found.y == ["#1", "@home", "a"]
    assert found.x[..., 0].tolist() == [[5, 6], [7, 8], [1, 9]]


def test_a_last_column_of_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    for last in ("label", "Class", "TARGET", "y"):
        path.write_text(f"\nx,z,{last}\n1,2,0\n3,4,1\n")
        with pytest.raises(InputError, match=rf"'{last}' as .* labels come first \(line 2\)"):
            read_answers(path)
    assert len(read_answers(path, labelled=False)[0].x) == 2
    path.write_text("label,x,y\na,2,0\nb,4,1\n")
    assert read_answers(path)[0].y == ["a", "b"]


@pytest.mark.parametrize("names", [",label,0,1", ",Target,a,b", "id,class,y,z"])
def test_places_before_the_labels_are_not_taken_for_them(names: str, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"  # as pandas writes a table
    path.write_text(f"{names}\n0,1,5,6\n1,2,7,8\n")
    named = names.split(",")[1]
    with pytest.raises(InputError, match=rf"'{named}' as .* of column 2, where labels come first"):
        read_answers(path)
    path.write_text("label,x,y,z\n0,1,5,6\n1,2,7,8\n")
    assert read_answers(path)[0].y == ["0", "1"]


def test_a_table_is_not_held_as_words(tmp_path: Path) -> None:
    path = tmp_path / "some.tsv"
    path.write_text("".join(f"{label}{500 * f'{chr(9)}-0.125'}\n" for label in range(200)))
    tracemalloc.start()
    read_answers(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * path.stat().st_size  # eleven times, were its words kept until all are read


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_told(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("groß,1,2\nklein,3,4\n", encoding=encoding)
    with pytest.raises(
        InputError, match=r"text in UTF-8 in .*, but got: .* If it is a table, save it as CSV"
    ):
        read_answers(path)


def test_a_label_that_a_file_does_not_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.ts"
    path.write_text("@classLabel true a b\n@data\n1,2:a\n3,4:zz\n")
    with pytest.raises(InputError, match=r"label zz, .* of @classLabel \(a, b\) \(line 4\)"):
        read_answers(path)
    assert len(read_answers(path, needed=False)[0].x) == 2
    for head, labels in (("true 1 2", "1.0 2"), ("true", "a b"), ("true a b", "a ?")):
        one, two = labels.split()
        path.write_text(f"@ClassLabel {head}\n@data\n1,2:{one}\n3,4:{two}\n")
        assert read_answers(path)[0].y == [one, two]


def test_endings_of_files_may_be_in_capitals(tmp_path: Path) -> None:
    for name, text in (("A.CSV", "a,1,2\nb,3,4\n"), ("A.TS", "@data\n1,2:a\n3,4:b\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.GZ").write_bytes(gzip.compress(text.encode()))
        for path in (tmp_path / name, tmp_path / f"{name}.GZ"):
            assert read_answers(path)[0].y == ["a", "b"]
