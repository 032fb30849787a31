"""Figures of stored runs, against the numbers that are stored."""

from collections.abc import Callable

import numpy as np
import pytest

from attractor.report.papers import draw, kept, pictures
from attractor.reproduction.outcomes import END, Outcomes, Row
from attractor.tasks import Generate

pytest.importorskip("matplotlib")
RUNS = {0: [0.9, 0.6, 0.5], 1: [0.7, 0.4], 3: [0.8, 0.5, 0.3]}  # the second came less far


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    head = ("some", "full", "A")
    logged = [
        Row(*head, seed, "a", "test", 10 * step, "task_1", value)
        for seed, values in RUNS.items()
        for step, value in enumerate(values, start=1)
    ]
    ends = [Row(*head, seed, "a", END, 30, "accuracy", seed / 10) for seed in RUNS]
    only: Callable[[str], Outcomes] = {"some": Outcomes([*logged, *ends])}.__getitem__
    monkeypatch.setattr(kept, "stored", only)


@pytest.mark.usefixtures("made_up")
def test_a_course_has_the_mean_and_a_deviation_of_those_that_came_so_far() -> None:
    figure = kept.along("some", {"A": "ours"}, {"task_1": "task 1"}, step="tasks")
    (ax,) = figure.axes
    (line,) = ax.get_lines()
    assert np.allclose(line.get_xdata(), [1, 2, 3])
    assert np.allclose(np.asarray(line.get_ydata()), [80, 50, 40])
    edges = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 1]
    assert np.isclose(edges.max(), 90)
    assert np.isclose(edges.min(), 40 - 200**0.5)
    assert line.get_label() == "ours (3 seeds)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("tasks", "task 1, percent")


@pytest.mark.usefixtures("made_up")
def test_a_spread_has_what_runs_ended_with() -> None:
    figure = kept.spreads({"left": ("some", {"A": "ours"})}, ["accuracy"])
    (ax,) = figure.axes
    assert [one.get_text() for one in ax.get_xticklabels()] == ["ours\n3 seeds"]
    middle = [line.get_ydata() for line in ax.get_lines()]
    assert any(np.allclose(np.asarray(y), 10) for y in middle)  # the median of 0, 10 and 30
    assert (ax.get_title(), ax.get_ylabel()) == ("left", "ACC, percent")


@pytest.mark.parametrize(
    ("name", "lines"),
    [("kuo-6.3", 6), ("kuo-6.4", 6), ("kuo-6.13", 4), ("kuo-6.17", 4), ("chandar-4.3", 5)],
)
def test_every_variant_of_a_figure_is_stored(name: str, lines: int) -> None:
    assert all(len(ax.get_lines()) == lines for ax in draw(name).axes)


@pytest.mark.parametrize(
    ("name", "panels"), [("kuo-6.5", 4), ("kuo-6.6", 4), ("kuo-6.7", 4), ("kuo-6.16", 4)]
)
def test_every_pair_of_a_figure_is_stored(name: str, panels: int) -> None:
    axes = draw(name).axes
    assert len(axes) == panels
    assert all(len(ax.get_xticklabels()) == 2 for ax in axes)


def test_images_that_a_network_makes_stand_beside_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = Generate("digits", threshold=True)
    monkeypatch.setattr(pictures, "Generate", lambda *_, **__: digits)
    monkeypatch.setattr(pictures, "SIDE", 8)
    axes = pictures.figure_4_5(steps=2).axes
    assert [ax.get_title().split(":")[0] for ax in axes] == ["data", "LSTM", "IHC-LSTM"]
    (data, first, second) = [np.asarray(ax.images[0].get_array()) for ax in axes]
    assert data.shape == (4 * 9, 8 * 9)
    assert {*np.unique(data)} == {0.0, 0.5, 1.0}
    assert np.abs(first - second).max() > 0
