"""A benchmark of speed: ratios, comparisons, the file it is kept in, and its part of a page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.report import build
from attractor.report.speed import speed_figure, speed_part
from attractor.results import benchmark
from attractor.results.speed import Case, Growth, Result, Shape, Timed, exponent, load, losses, save
from attractor.results.speed_tables import beside, markdown, tables

CASE = Case("gru", Shape(5, 3, 2, 8), "training", 1)
RESULT = Result(
    {"cpu": "an abacus"},
    (Timed(CASE, 2.0, 8.0, 3.0, 1.0), Timed(CASE._replace(cell="sru.SRU"), 4.0, None, 2.0, 1.0)),
    (Growth("gru", "units", (2, 4), (1.0, 8.0)),),
    ("ntm",),
)


def test_ratios_are_of_speed() -> None:
    one, peer = RESULT.timed
    assert (one.to_lstm, one.to_gru, one.to_eager) == (1.5, 0.5, 4.0)
    assert peer.to_eager is None


def test_of_two_measurements_the_better_counts() -> None:
    first, again = RESULT.timed[0], Timed(CASE, 1.5, 9.0, 3.5, 0.5)
    assert first.best(again) == again.best(first) == Timed(CASE, 1.5, 8.0, 3.0, 0.5)
    peer = RESULT.timed[1]
    assert peer.best(peer) == peer


def test_exponents() -> None:
    assert exponent([10, 20, 80], [5.0, 20.0, 320.0]) == pytest.approx(2)
    assert RESULT.growth[0].exponent == pytest.approx(3)


def test_result_is_kept(tmp_path: Path) -> None:
    save(RESULT, tmp_path / "bench.json")
    assert load(tmp_path / "bench.json") == RESULT
    first = json.loads((tmp_path / "bench.json").read_text())["timed"][0]
    assert (first["shape"], first["to_lstm"]) == ([5, 3, 2, 8], 1.5)


@pytest.mark.parametrize("text", ["", "[]", '{"machine": {}}', '{"timed": 3}', "[" * 10**5])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(InputError, match="to be a file that `attractor bench --out` wrote"):
        load(path)
    with pytest.raises(InputError, match="expected a benchmark's file at .*none.json, but got"):
        load(tmp_path / "none.json")


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    bad = replace(RESULT, timed=(replace(RESULT.timed[0], lstm=-1.0),))
    save(bad, tmp_path / "bench.json")
    with pytest.raises(InputError, match="-1.0 is no time"):
        load(tmp_path / "bench.json")


def test_a_loss_is_more_than_a_tenth_beside_torch() -> None:
    def with_lstm(seconds: float) -> Result:
        return replace(RESULT, timed=(replace(RESULT.timed[0], lstm=seconds),))

    assert losses(RESULT, with_lstm(2.71)) == []
    (lost,) = losses(RESULT, with_lstm(2.69))
    assert str(lost) == "gru training 5,3,2,8, 1 thread: 1.34 times nn.LSTM, 1.50 before"
    other = replace(RESULT, timed=(replace(RESULT.timed[0], case=CASE._replace(threads=2)),))
    assert losses(RESULT, other) == []


def test_tables_show_every_ratio() -> None:
    machine, timed, growth = tables(RESULT)
    assert machine.rows == [["cpu", "an abacus"]]
    assert timed.title.startswith("training, 1 thread:")
    assert timed.columns == ["cell", "5,3,2,8"]
    assert timed.rows == [["gru", "1.50 (0.50, 4.0)"], ["sru.SRU", "0.50 (0.25, –)"]]
    assert growth.rows == [["gru", "3.00"]]


def test_pages_show_every_ratio() -> None:
    text = markdown(RESULT)
    assert "| `gru` | 1.50 (0.50, 4.0) |" in text
    assert text.endswith("ntm\n")
    assert beside(RESULT, "training", 1).rows == [["gru", "1.50"], ["sru.SRU", "0.50"]]
    assert beside(RESULT, "training", 1, "eager").rows == [["gru", "4.0"], ["sru.SRU", "–"]]
    assert beside(RESULT, "forward", 1).rows == []


def test_a_report_takes_any_benchmark(tmp_path: Path) -> None:
    save(RESULT, tmp_path / "bench.json")
    assert benchmark.load(tmp_path / "bench.json") == RESULT
    page = build([], benchmarks=[RESULT])
    assert "Speed of training, 1 thread" in page
    assert page.count("<table") == page.count('data-copy="latex"') == 3
    assert 'id="benchmark-1-speeds"' in page
    assert "1.50 (0.50, 4.0)" in page


def test_the_page_says_who_is_ahead_of_torch() -> None:
    part = speed_part(RESULT)
    assert part.findings[0] == "1 of 2 cells are at least as fast as nn.LSTM at every shape."
    assert part.findings[1].startswith("gru is the fastest, 1.50 times nn.LSTM")
    assert part.warnings == ["ntm"]
    (shape,) = speed_figure(list(RESULT.timed)).traces
    assert (shape["name"], shape["x"], shape["y"]) == ("5,3,2,8", [1.5, 0.5], ["gru", "sru.SRU"])
    two = replace(RESULT, timed=(replace(RESULT.timed[0], case=CASE._replace(threads=2)),))
    assert speed_part(two).figure.title == "Speed of training, 2 threads"
    assert speed_part(replace(RESULT, timed=())).findings == ["Nothing was timed."]
