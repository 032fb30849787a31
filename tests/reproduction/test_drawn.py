"""Figures of stored runs along levels and updates, against the numbers that are stored."""

from collections.abc import Callable

import numpy as np
import pytest

from attractor.report.papers import draw, kept
from attractor.report.papers.table import FIGURES
from attractor.reproduction import TARGETS
from attractor.reproduction.outcomes import Outcomes, Row

pytest.importorskip("matplotlib")
LEVELS = {0: {10: 1, 20: 2, 30: 2}, 1: {10: 1}}  # the first learns level 2 again after it grew


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    head = ("some", "quick", "A")
    rows = [
        Row(*head, seed, "a", "test", step, name, value)
        for seed, levels in LEVELS.items()
        for step, level in levels.items()
        for name, value in (("level", level), ("task_1", step / 100 + seed), ("task_2", 0.5))
    ]
    losses = {0: {5: 4.0, 10: 1.0}, 1: {5: 1.0, 10: 100.0, 15: 3.0}}
    rows += [
        Row(*head, seed, "a", "train", step, "loss", value)
        for seed, logged in losses.items()
        for step, value in logged.items()
    ]
    only: Callable[[str], Outcomes] = {"some": Outcomes(rows)}.__getitem__
    monkeypatch.setattr(kept, "stored", only)


@pytest.mark.usefixtures("made_up")
def test_of_a_level_that_was_learnt_again_the_last_time_counts() -> None:
    (ax,) = kept.levels({"copying": "some"}, {"A": "ours"}, "task_1").axes
    (line,) = ax.get_lines()
    assert np.allclose(line.get_xdata(), [1, 2])
    assert np.allclose(np.asarray(line.get_ydata()), [60, 30])  # of 10 and 110, and of one run
    assert (ax.get_title(), ax.get_ylabel()) == ("copying", "task 1, percent")


@pytest.mark.usefixtures("made_up")
def test_a_map_has_learnt_levels_to_the_right_and_is_white_where_none_came() -> None:
    ax, *_ = kept.matrices("some", {"A": "ours"}, 3).axes
    (image,) = ax.get_images()
    values = image.get_array()
    assert values is not None
    shown = np.asarray(np.ma.filled(values, np.nan))
    expected = [[0.6, 0.3, np.nan], [0.5, 0.5, np.nan], [np.nan] * 3]
    assert np.allclose(shown, expected, equal_nan=True)


@pytest.mark.usefixtures("made_up")
def test_losses_are_averaged_geometrically_where_all_seeds_have_one() -> None:
    (ax,) = kept.losses({"here": ("some", {"A": "ours"})}).axes
    mean, *seeds = ax.get_lines()
    assert np.allclose(mean.get_xdata(), [5, 10])
    assert np.allclose(np.asarray(mean.get_ydata()), [2, 10])
    assert [np.asarray(line.get_ydata()).tolist() for line in seeds] == [[4, 1], [1, 100]]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("chandar-4.4", 2),
        ("chandar-5.2", 5),
        ("chandar-5.3", 5),
        ("chandar-5.4", 5),
        ("kuo-4.3", 33),  # a mean and ten seeds of each
        ("kuo-4.6", 12),
        ("kuo-5.4", 24),
        ("kuo-5.5", 24),
        ("kuo-5.7", 44),
        ("kuo-5.9", 16),
    ],
)
def test_every_variant_of_a_figure_is_stored(name: str, lines: int) -> None:
    assert all(len(ax.get_lines()) == lines for ax in draw(name).axes)


def test_heatmaps_have_a_panel_for_each_network() -> None:
    maps = [ax for ax in draw("chandar-5.5").axes if ax.get_title()]
    assert len(maps) == 5


def test_the_figure_of_a_target_can_be_drawn() -> None:
    assert {one.figure for one in TARGETS.values() if one.figure} <= {*FIGURES}
