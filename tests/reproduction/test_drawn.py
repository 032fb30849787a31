"""Figures of stored runs along levels and updates, against the numbers that are stored."""

from collections.abc import Callable

import numpy as np
import pytest

from attractor.report.papers import draw, kept, trainings
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
    measured = {0: {10: 0.2, 15: 0.4}, 1: {15: 0.6}}
    rows += [
        Row(*head, seed, "a", "valid", step, name, value)
        for seed, logged in measured.items()
        for step, value in logged.items()
        for name in ("accuracy", "error")
    ]
    only: Callable[[str], Outcomes] = {"some": Outcomes(rows)}.__getitem__
    monkeypatch.setattr(kept, "stored", only)
    monkeypatch.setattr(trainings, "stored", only)


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
    (ax,) = trainings.losses({"here": ("some", {"A": "ours"})}).axes
    mean, *seeds = ax.get_lines()
    assert np.allclose(mean.get_xdata(), [5, 10])
    assert np.allclose(np.asarray(mean.get_ydata()), [2, 10])
    assert [np.asarray(line.get_ydata()).tolist() for line in seeds] == [[4, 1], [1, 100]]


@pytest.mark.usefixtures("made_up")
def test_beside_losses_stands_how_each_seed_ended() -> None:
    left, right = trainings.ended({"here": ("some", {"A": "ours"})}, "valid").axes
    (mean,) = left.get_lines()
    assert np.allclose(np.asarray(mean.get_ydata()), [2, 10])
    shade = np.asarray(left.collections[0].get_paths()[0].vertices)
    assert {*shade[shade[:, 0] == 5, 1]} == {1, 4}
    assert left.get_ylim()[1] == pytest.approx(3 * 2)  # the loss of 100 has left the panel
    seeds, middle = right.get_lines()
    assert np.allclose(np.asarray(seeds.get_xdata()), [40, 60])
    assert np.allclose(np.asarray(middle.get_xdata()), 50)
    (bar,) = right.collections
    (interval,) = bar.get_paths()
    wide = np.ptp(np.asarray(interval.vertices)[:, 0])
    assert wide == pytest.approx(2 * 127.062)  # 12.7 standard errors of 10 to each side
    assert [one.get_text() for one in right.get_yticklabels()] == ["ours (2 seeds)"]
    assert right.get_xlabel() == "validation accuracy at the end, percent"


@pytest.mark.usefixtures("made_up")
def test_beside_losses_stands_what_was_measured_on_the_way() -> None:
    _, right = trainings.evaluated("some", {"A": "ours"}, "error", "error").axes
    (line,) = right.get_lines()
    assert np.allclose(line.get_xdata(), [10, 15])
    assert np.allclose(np.asarray(line.get_ydata()), [20, 50])


@pytest.mark.usefixtures("made_up")
def test_a_course_of_one_level_is_a_mark() -> None:
    (ax,) = kept.measures("some", "A", {"task_1": "first", "task_2": "second"}).axes
    assert [line.get_label() for line in ax.get_lines()] == ["first (2 seeds)", "second (2 seeds)"]
    assert {line.get_marker() for line in ax.get_lines()} == {""}
    kept.draw_course(ax, {0: {1: 0.5}}, 2, "alone")
    assert ax.get_lines()[-1].get_marker() == "o"


def test_lines_are_told_apart_by_dashes_once_colours_begin_anew() -> None:
    assert [kept.dash(place) for place in (0, 6, 7, 13, 14)] == ["-", "-", "--", "--", "-."]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("chandar-3.7", [3, 3]),
        ("chandar-4.6", [9, 18]),  # circles, and a mean
        ("chandar-4.8", [4, 8, 3, 6, 3, 6]),
        ("chandar-5.1", [3]),
        ("decaynet-3", [4, 8]),
    ],
)
def test_every_variant_of_a_quick_figure_is_stored(name: str, lines: list[int]) -> None:
    assert [len(ax.get_lines()) for ax in draw(name).axes] == lines


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
