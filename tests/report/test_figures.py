"""Figures: what is drawn, and that plotly accepts it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attractor.report.figures import (
    COLOURS,
    Figure,
    learning_curves,
    plot_text,
    style,
    symbol,
    thin,
)
from attractor.report.tables import swatches
from attractor.results import variants
from attractor.runs.read import load_runs


@pytest.fixture(scope="module")
def figures(runs_root: Path) -> dict[str, Figure]:
    return {figure.title: figure for figure in learning_curves(load_runs([runs_root]))}


def traces(figure: Figure, **wanted: Any) -> list[dict[str, Any]]:
    return [t for t in figure.traces if all(t.get(key) == value for key, value in wanted.items())]


def test_every_measure_has_a_figure_with_the_main_one_first(figures: dict[str, Figure]) -> None:
    assert list(figures) == [
        "Validation accuracy",
        "Validation loss",
        "Training loss",
        "Training gradient norm",
    ]


def test_plotly_finds_no_fault(figures: dict[str, Figure]) -> None:
    go = pytest.importorskip("plotly.graph_objects")
    for figure in figures.values():
        go.Figure(data=figure.traces, layout=figure.layout)


def test_bands_means_and_hidden_seeds(figures: dict[str, Figure]) -> None:
    figure = figures["Validation accuracy"]
    assert len(traces(figure, fill="toself")) == 3
    hidden = [trace for trace in figure.traces if trace["meta"]["kind"] == "seed"]
    assert len(hidden) == 9
    assert not any(trace["visible"] for trace in hidden)
    means = [trace for trace in figure.traces if "hovertemplate" in trace]
    assert [trace["name"] for trace in means] == ["GRU", "LSTM", "NRU"]
    assert len({trace["line"]["color"] for trace in means}) == 3


def test_a_failed_run_ends_in_a_cross_and_stays_out_of_the_mean(
    figures: dict[str, Figure],
) -> None:
    (failed,) = traces(figures["Training loss"], name="NRU, seed 1 (failed)")
    assert failed["marker"]["symbol"] == "x"
    assert failed["marker"]["size"][-1] > 0
    assert failed["meta"]["kind"] == "seed"
    (mean,) = (
        trace
        for trace in figures["Training loss"].traces
        if trace["name"] == "NRU" and "hovertemplate" in trace
    )
    assert {row[0] for row in mean["customdata"]} == {1, 2}


def test_a_variant_that_only_failed_is_in_sight_from_the_start(
    tmp_path: Path, write_run: Any
) -> None:
    write_run(tmp_path, "LSTM", 0)
    write_run(tmp_path, "GRU", 0, status="failed")
    figure = learning_curves(load_runs([tmp_path]))[0]
    (trace,) = traces(figure, name="GRU, seed 0 (failed)")
    assert trace["visible"]


def test_a_band_stops_where_one_seed_is_left(figures: dict[str, Figure]) -> None:
    band = next(
        trace for trace in traces(figures["Training loss"], fill="toself") if trace["name"] == "NRU"
    )
    assert max(band["x"]) == 500


def test_one_seed_has_no_band(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path)
    for figure in learning_curves(load_runs([tmp_path])):
        assert not traces(figure, fill="toself")


def test_losses_that_fall_far_get_a_log_axis(figures: dict[str, Figure]) -> None:
    assert figures["Validation loss"].layout["yaxis"]["type"] == "log"
    axis = figures["Validation accuracy"].layout["yaxis"]
    assert axis["type"] == "linear"
    assert axis["tickformat"].endswith("%")
    band = traces(figures["Validation loss"], fill="toself")[0]
    assert min(band["y"]) > 0


def test_no_curve_touches_the_edge_of_its_figure(figures: dict[str, Figure]) -> None:
    found = figures["Validation loss"]
    every = [y for t in found.traces if t["meta"]["kind"] == "seed" for y in t["y"]]
    low, high = found.layout["meta"]["scales"]["linear"]["range"]
    assert low < min(every) - 0.01 * (high - low)
    assert high > max(every) + 0.01 * (high - low)


def test_thinning_keeps_the_ends_and_the_extremes() -> None:
    values = np.sin(np.arange(100_000) / 900.0)
    values[12_345], values[54_321] = 7.0, -7.0
    kept = thin(values)
    assert len(kept) <= 2000
    assert {0, 12_345, 54_321, 99_999} <= set(kept.tolist())
    assert np.all(np.diff(kept) > 0)
    assert thin(values[:2000]).tolist() == list(range(2000))


def test_curves_are_thinned_to_the_room_that_they_have(tmp_path: Path, write_run: Any) -> None:
    for label in ("LSTM", "GRU"):
        for seed in range(4):
            write_run(tmp_path, label, seed, steps=3000, every=5)
    runs = load_runs([tmp_path])
    whole, few = learning_curves(runs), learning_curves(runs, room=100_000)
    points = {"meta", "x", "y", "x0", "dx", "customdata"}

    def weight(drawn: list[Figure]) -> int:
        every = [trace for figure in drawn for trace in figure.traces]
        kept = [{key: one for key, one in trace.items() if key in points} for trace in every]
        return len(json.dumps(kept, separators=(",", ":")))

    assert weight(whole) > 300_000
    assert 50_000 < weight(few) < 110_000
    tight = learning_curves(runs, room=0)
    assert max(len(t["y"]) for f in tight for t in f.traces if not t.get("fill")) == 50


def test_long_runs_are_thinned(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path, seed=0, steps=9000, every=1)
    write_run(tmp_path, seed=1, steps=9000, every=1)
    for figure in learning_curves(load_runs([tmp_path])):
        for trace in figure.traces:
            assert len(trace["y"]) <= (4000 if "fill" in trace else 2000)


def test_curves_are_drawn_in_the_colours_of_the_palette(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        means = [one for one in figure.traces if one["meta"]["kind"] == "mean"]
        assert [one["line"]["color"] for one in means] == [*COLOURS[: len(means)]]


def test_colours_run_out_before_styles_and_those_before_markers() -> None:
    every = 4 * len(COLOURS)
    assert len({style(index) for index in range(every)}) == every
    assert len({(*style(index), symbol(index)) for index in range(5 * every)}) == 5 * every


def test_markers_are_drawn_where_dashes_have_run_out(tmp_path: Path, write_run: Any) -> None:
    for number in range(30):
        write_run(tmp_path, f"{number:02d}")
    runs = load_runs([tmp_path])
    means = [t for t in learning_curves(runs)[0].traces if t["meta"]["kind"] == "mean"]
    marks = [trace["marker"].get("symbol") for trace in means]
    assert marks == [None] * 28 + ["square"] * 2
    keys = swatches(variants(runs))
    assert [bool(key["mark"]) for key in keys] == [False] * 28 + [True] * 2


def test_each_scale_of_a_figure_is_fitted_to_the_runs(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        axis, meta = figure.layout["yaxis"], figure.layout["meta"]
        assert meta["drawn"] == axis["type"]
        assert {*meta["scales"]} == {"linear", "log"}
        assert meta["scales"][axis["type"]].items() <= axis.items()
        low, high = meta["scales"]["log"]["range"]
        assert 0 < 10**low < 10**high
    accuracy = figures["Validation accuracy"].layout["meta"]["scales"]
    assert accuracy["log"]["range"][1] <= np.log10(1.02)
    assert accuracy["linear"]["range"][1] <= 1.02


def test_what_is_not_above_zero_has_no_log_scale(tmp_path: Path, write_run: Any) -> None:
    folder = write_run(tmp_path)
    rows = [{"step": step, "split": "train", "loss": float(step - 1)} for step in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made,) = learning_curves(load_runs([folder]))
    assert {*made.layout["meta"]["scales"]} == {"linear"}


def test_plotly_reads_no_tags_or_fields_in_labels() -> None:
    assert plot_text("<b>a</b> & %{y}") == "&lt;b&gt;a&lt;/b&gt; &amp; %\u200b{y}"


def test_curves_of_test_data_say_so_and_a_single_test_has_none(
    write_run: Any, tmp_path: Path
) -> None:
    folder = write_run(tmp_path)
    titles = [figure.title for figure in learning_curves(load_runs([folder]))]
    assert titles
    assert not any(title.startswith("Test") for title in titles)
    rows = [{"step": step, "split": "test", "task_1": 0.5} for step in (100, 200)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [figure.title for figure in learning_curves(load_runs([folder]))] == [
        "Test accuracy on task 1"
    ]


def test_even_steps_of_a_seed_are_a_start_and_a_distance(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path, steps=200, every=50)
    folder = write_run(tmp_path, seed=1, steps=200, every=50)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:1] + lines[2:]) + "\n")
    drawn = {one.title: one for one in learning_curves(load_runs([tmp_path]))}
    made = drawn["Training loss"]
    even, uneven = [trace for trace in made.traces if trace["meta"]["kind"] == "seed"]
    assert (even["x0"], even["dx"], len(even["y"])) == (50, 50, 4)
    assert "x" not in even
    assert uneven["x"] == [50, 150, 200]
