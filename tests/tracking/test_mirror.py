"""Runs are followed whole and once, whatever happens on the way."""

import errno
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from attractor.errors import InputError, RunError
from attractor.tracking import SINKS, Mirror, Point, Sink, Tracker, track
from attractor.tracking.csv import CSVWriter
from tracking.folders import ENDS, ROWS, expected, same, write_kinds, write_run, written

CSV = SINKS["csv"]


def mirrored(folder: Path, root: Path, sink: Sink = CSV) -> int:
    mirror = Mirror(folder, sink, root)
    try:
        return mirror.update()
    finally:
        mirror.close()


def test_all_kinds_whole_and_once(tmp_path: Path) -> None:
    folders = write_kinds(tmp_path / "runs")
    done = track([tmp_path / "runs"], "csv", tmp_path / "out")
    assert (done.runs, done.damaged) == (3, [])
    assert done.points == sum(len(expected(kind)) for kind in folders)
    for _ in range(2):
        for kind in folders:
            assert same(written(tmp_path / "out/csv" / kind / "a-3-1f"), expected(kind))
        assert track([tmp_path / "runs"], "csv", tmp_path / "out").points == 0


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), InputError, "but the disk is full"),
        (
            KeyError("a table\nand more"),
            RunError,
            r"out/csv to take the numbers of b, but got KeyError: 'a table.*same command again",
        ),
    ],
)
def test_what_a_sink_cannot_take_is_told_and_written_later(
    raised: Exception,
    kind: type[Exception],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in "abc":
        write_run(tmp_path / "runs/supervised" / name, ROWS["supervised"], ENDS["supervised"])
    add = CSVWriter.add

    def fail(self: CSVWriter, points: Sequence[Point]) -> None:
        if Path(self.file.name).parent.name == "b":
            raise raised
        add(self, points)

    with monkeypatch.context() as patched:
        patched.setattr(CSVWriter, "add", fail)
        with pytest.raises(kind, match=said):
            track([tmp_path / "runs"], "csv", tmp_path / "out")
    wanted = expected("supervised")
    assert track([tmp_path / "runs"], "csv", tmp_path / "out").points == 2 * len(wanted)
    for name in "abc":
        assert same(written(tmp_path / "out/csv/supervised" / name), wanted)


def test_goes_on_where_it_was(tmp_path: Path) -> None:
    run = tmp_path / "runs/supervised/a"
    place = tmp_path / "out/supervised/a"
    rows = ROWS["supervised"]
    for count in (1, 3):
        write_run(run, rows[:count])
        mirrored(run, tmp_path / "out")
    begun = (place / "metrics.csv").read_text()
    with open(run / "metrics.jsonl", "a") as log:
        log.write('{"step": 10, "split": "va')  # a line on its way
    assert mirrored(run, tmp_path / "out") == 0
    write_run(run, rows, ENDS["supervised"])
    assert mirrored(run, tmp_path / "out") == 6
    assert (place / "metrics.csv").read_text().startswith(begun)
    assert same(written(place), expected("supervised"))


def test_a_log_that_is_cut_and_written_again(tmp_path: Path) -> None:
    """As by a run that was killed, went on from its checkpoint, and came to other numbers."""
    run, rows = tmp_path / "runs/supervised/a", ROWS["supervised"]
    other = {**rows[2], "loss": 7.0}
    write_run(run, [*rows[:2], other])
    mirror = Mirror(run, CSV, tmp_path / "out")
    mirror.update()
    write_run(run, rows[:2])
    mirror.update()
    write_run(run, rows, ENDS["supervised"])
    mirror.update()
    mirror.close()
    assert same(written(tmp_path / "out/supervised/a"), expected("supervised"))

    write_run(run, [*rows[:2], other])
    mirrored(run, tmp_path / "out")
    assert Point("train/loss", 10, 7.0) in written(tmp_path / "out/supervised/a")
    assert not [p for p in written(tmp_path / "out/supervised/a") if p.name.startswith("final")]


def test_killed_while_it_wrote(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs/supervised/a", ROWS["supervised"], ENDS["supervised"])
    place = tmp_path / "out/supervised/a"
    mirror = Mirror(run, CSV, tmp_path / "out")
    mirror.update()
    assert mirror.writer
    mirror.writer.close()
    mirror._hold.__exit__(None, None, None)  # the lock of a process that is gone
    assert json.loads((place / "tracked.json").read_text()) == {}
    with open(place / "metrics.csv", "a") as file:
        file.write("half a li")
    assert mirrored(run, tmp_path / "out") == len(expected("supervised"))
    assert same(written(place), expected("supervised"))


def test_a_sink_that_fails_is_not_taken_for_whole(tmp_path: Path) -> None:
    class Failing(CSVWriter):
        def add(self, points: object) -> None:
            raise OSError("disk full")

    run = write_run(tmp_path / "runs/lifelong/a", ROWS["lifelong"], ENDS["lifelong"])
    with pytest.raises(OSError, match="full"):
        mirrored(run, tmp_path / "out", Sink(Failing, None, ""))
    mirrored(run, tmp_path / "out")
    assert same(written(tmp_path / "out/lifelong/a"), expected("lifelong"))


def test_a_sink_that_cannot_append_is_written_anew(tmp_path: Path) -> None:
    run, rows = tmp_path / "runs/supervised/a", ROWS["supervised"]
    sink = CSV._replace(appends=False)
    write_run(run, rows[:2])
    mirrored(run, tmp_path / "out", sink)
    write_run(run, rows, ENDS["supervised"])
    assert mirrored(run, tmp_path / "out", sink) == len(expected("supervised"))
    assert same(written(tmp_path / "out/supervised/a"), expected("supervised"))


def test_names_stay_below_the_folder(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs/x/..a b", ROWS["lifelong"])
    text = (run / "config.toml").read_text().replace("'x'", "'../../../up\\\\'")
    (run / "config.toml").write_text(text)
    mirrored(run, tmp_path / "deep/out")
    (found,) = (tmp_path / "deep").rglob("metrics.csv")
    assert found.parent == tmp_path / "deep/out/_.._.._up__/a_b"


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own/mine").mkdir(parents=True)
    (tmp_path / "own/mine/thesis.txt").write_text("years")
    with pytest.raises(InputError, match="it holds thesis.txt. Choose another"):
        Tracker("csv", tmp_path, "mine")
    assert (tmp_path / "own/mine/thesis.txt").read_text() == "years"


def test_what_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known sink .*Did you mean 'tensorboard'"):
        track([tmp_path], "tensorbord", tmp_path)
    missing = Sink(CSVWriter, "no_such_package", "")
    with pytest.raises(InputError, match=r'pip install "attractor\[no_such_package\]"'):
        missing.needed()
