"""Who solves a task first: the table, against counts by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attractor.report.papers import draw, kept
from attractor.reproduction import races
from attractor.reproduction.outcomes import DIVERGED, END, Outcomes, Row
from attractor.reproduction.pages import PART, content
from attractor.reproduction.races import RACES, Race, budgets, curves, raced
from attractor.results.survival import kaplan_meier, log_rank

DOCS = Path(__file__).parents[2] / "docs"
SYMBOL = 0.17328679  # of copy: ten symbols of eight, 120 steps: 10 ln 8 / 120, and a tenth of it


def ended(
    label: str, seed: int, step: int, *losses: float, solved: bool, **more: float
) -> list[Row]:
    head = ("copy", "full", label, seed, "a")
    ends = {"solved": float(solved), "steps_to_solve": float(step), **more}
    logged = [Row(*head, "valid", 250 * (k + 1), "loss", loss) for k, loss in enumerate(losses)]
    return [*logged, *(Row(*head, END, step, name, value) for name, value in ends.items())]


def all_of(label: str, steps: Sequence[int], solved: bool) -> list[Row]:
    rows = [ended(label, k, step, 0.17, 0.005, solved=solved) for k, step in enumerate(steps)]
    return [row for one in rows for row in one]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = SYMBOL / 10
    results = Outcomes(
        [
            *all_of("NRU", [9_000, 12_000, 12_250], solved=True),
            *ended("NRU", 3, 7_154, 0.17, 2.9e6, solved=False, **{DIVERGED: 1.0}),
            *ended("GORU", 0, 20_000, 0.17, 40.0, 0.005, solved=True),  # and came back
            *ended("GORU", 1, 7_000, 0.17, 0.33, 0.005, solved=True),
            *ended("GRU", 0, 30_000, 0.17, 2.02 * unit, 2.01 * unit, solved=False),
            *ended("GRU", 1, 30_000, 0.17, 0.12, 0.104, solved=False),
            *ended("GRU", 2, 30_000, 0.17, 0.09, 0.075, solved=False),
        ]
    )
    monkeypatch.setattr(races, "stored", lambda _: results)
    rows = {"NRU": "NRU of the thesis", "GRU": "GRU", "GORU": "GORU", "EURNN": "EURNN"}
    monkeypatch.setitem(RACES, "made-up", Race("copy", "NRU", rows))


@pytest.mark.usefixtures("made_up")
def test_a_race_counts_who_got_there_when_and_how_the_others_ended() -> None:
    p_goru = log_rank(
        kaplan_meier([9_000, 12_000, 12_250], [30_000]), kaplan_meier([7_000, 20_000], [])
    )
    p_gru = log_rank(
        kaplan_meier([9_000, 12_000, 12_250], [30_000]), kaplan_meier([], [30_000] * 3)
    )
    assert raced("made-up").splitlines()[2:] == [
        f"| GORU | 2 of 2 | 7,000 (7,000 to 20,000) | {p_goru:.1g} | 1 (40) |  |  |  |",
        "| NRU of the thesis | 3 of 4 | 12,000 (9,000 to 12,250) |  | 1 (2.9e+06) | 1 |  |  |",
        f"| GRU | 0 of 3 | - | {p_gru:.1g} |  |  | 1 at 2 | 2, at 0.075 to 0.104 |",
        "",
        "`attractor run copy`, 2 to 4 seeds, at most 30,000 updates; p of a log-rank test beside "
        "NRU of the thesis. A symbol is worth 0.0173 nats.",
    ]


def test_of_two_that_always_get_there_the_quicker_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"GRU": [900, 8_000, 9_000], "NRU": [1_000, 1_100, 9_500]}
    rows = [row for label, each in times.items() for row in all_of(label, each, solved=True)]
    monkeypatch.setattr(races, "stored", lambda _: Outcomes(rows))
    monkeypatch.setitem(RACES, "both", Race("copy", "NRU", {"GRU": "GRU", "NRU": "NRU"}))
    assert [line[:6] for line in raced("both").splitlines()[2:4]] == ["| NRU ", "| GRU "]


def test_where_fewer_than_half_got_there_no_step_is_that_of_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = all_of("NRU", [900, 1_000], solved=True) + ended("NRU", 2, 500, 0.17, solved=True)
    rows += ended("GRU", 0, 700, 0.17, solved=True)
    for seed, symbols in ((1, 2), (2, 1)):
        losses = [symbols * SYMBOL / 10] * 2
        rows += ended("GRU", seed, 30_000, 0.17, *losses, solved=False)
    monkeypatch.setattr(races, "stored", lambda _: Outcomes(rows))
    monkeypatch.setitem(RACES, "both", Race("copy", "NRU", {"GRU": "GRU", "NRU": "NRU"}))
    _, _, nru, gru, _, told = raced("both").splitlines()
    assert nru.startswith("| NRU | 3 of 3 | 900 (500 to 1,000) |  |")
    assert gru.startswith("| GRU | 1 of 3 | - (700 to 700) |")
    assert gru.endswith("|  |  | 1 at 1, 1 at 2 |  |")
    assert told.startswith("`attractor run copy`, 3 seeds, at most 30,000 updates;")


@pytest.mark.usefixtures("made_up")
def test_a_run_that_diverged_counts_for_its_whole_budget() -> None:
    found = curves(races.RACES["made-up"])
    assert list(found) == ["NRU", "GRU", "GORU"]  # EURNN was not run
    assert list(curves(Race("copy", "NRU", {"GRU": "GRU"}))) == ["GRU"]
    assert list(curves(Race("copy", "NRU"))) == [one for one in budgets("copy") if one in found]
    assert (found["NRU"].at, found["NRU"].given) == ((9_000, 12_000, 12_250), (30_000,))


def test_every_race_stands_on_a_page_and_its_figure_has_a_line_for_each_network() -> None:
    on_pages = {n for page in DOCS.rglob("*.md") for n in PART.findall(page.read_text("utf-8"))}
    assert on_pages >= RACES.keys()
    no_claims: Any = {}
    assert content("copy-race", no_claims) == raced("copy-race")
    (ax,) = draw("chandar-4.1").axes
    assert len(ax.lines) == len(curves(RACES["copy-race"]))
    for line, one in zip(ax.lines, curves(RACES["copy-race"]).values(), strict=True):
        assert str(line.get_label()).endswith(f"{len(one.at)} of {one.n}")
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(1 - len(one.at) / one.n)


def test_a_variant_with_a_smaller_budget_says_so_and_its_line_ends_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = races.budgets("denoise-quick")
    for where in (races, kept):
        monkeypatch.setattr(where, "budgets", lambda _: own | {"EURNN": 1000})
    race = Race("denoise-quick", "NRU", {"EURNN": "EURNN", "NRU": "ours"})
    assert races.named(race, "EURNN") == "EURNN, at most 1,000"
    assert races.named(race, "NRU") == "ours"
    (ax,) = draw("chandar-4.5").axes
    ends = {str(line.get_label()): np.asarray(line.get_xdata())[-1] for line in ax.lines}
    assert {label.partition(":")[0]: end for label, end in ends.items()} == {
        "NRU": 4000,
        "JANET": 4000,
        "LSTM, chrono": 4000,
        "GRU": 4000,
        "EURNN, at most 1,000": 1000,
    }
