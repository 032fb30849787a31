"""A benchmark of optimisers: profiles, comparisons and the file it is kept in."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.report import build
from attractor.report.standing import profile_figure, standing_part
from attractor.results.standing import (
    Outcome,
    Standing,
    beside,
    joined,
    load,
    profile,
    ratios,
    save,
    times,
    worse,
)
from attractor.results.standing_tables import losses, markdown, profiles, tables


def outcome(name: str, task: str, *found: float, seconds: float = 1.0) -> Outcome:
    rate = 0.1 if name == "sgd" else None
    return Outcome(task, 50, name, rate, (0.03, 0.1, 0.3) if rate else (), found, seconds)


STANDING = Standing(
    {"cpu": "an abacus"},
    True,
    {"hill": "a hill", "dale": "a dale", "pit": "a pit"},
    (0, 1),
    (
        outcome("sgd", "hill", 1.0, 3.0, seconds=2.0),
        outcome("rule", "hill", 4.0, 6.0, seconds=4.0),
        outcome("sgd", "dale", 0.4, 0.4, seconds=3.0),
        outcome("rule", "dale", 0.36, 0.36, seconds=24.0),
        outcome("sgd", "pit", 7.0, 7.0),
    ),
    ("rule, pit: too slow",),
)
HILL, DALE, PIT = ("hill", 50), ("dale", 50), ("pit", 50)


def test_ratios_are_to_the_best_mean_of_a_place() -> None:
    found = ratios(STANDING)
    assert found["sgd"] == pytest.approx({HILL: 1.0, DALE: 0.4 / 0.36, PIT: 1.0})
    assert found["rule"] == pytest.approx({HILL: 2.5, DALE: 1.0})


def test_a_profile_counts_what_was_left_out() -> None:
    found = profile(STANDING, [1.0, 1.2, 2.5, 1e9])
    assert found["sgd"] == pytest.approx([2 / 3, 1, 1, 1])
    assert found["rule"] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])


def test_two_side_by_side() -> None:
    assert [*beside(STANDING, "rule", "sgd")] == [1, 2, pytest.approx(2.5)]
    assert [*beside(STANDING, "sgd", "rule")] == [1, 2, pytest.approx(0.4 / 0.36)]
    assert times(STANDING, "sgd") == pytest.approx({"sgd": 1, "rule": 4})  # of 2 and 8


def test_divergence_is_never_within_a_factor() -> None:
    gone = replace(
        STANDING, outcomes=(*STANDING.outcomes[:4], outcome("sgd", "pit", 7.0, math.inf))
    )
    assert ratios(gone)["sgd"][PIT] == math.inf
    assert profile(gone, [1e9])["sgd"] == [pytest.approx(2 / 3)]
    assert "diverged" in markdown(gone)


def test_where_both_diverged_neither_is_worse() -> None:
    lost = (outcome("sgd", "hill", math.inf, 1.0), outcome("rule", "hill", 1.0, math.inf))
    both = replace(STANDING, outcomes=(*lost, *STANDING.outcomes[2:]))
    assert [*beside(both, "rule", "sgd")] == [1, 2, pytest.approx(0.36 / 0.4)]
    assert [*beside(both, "sgd", "rule")] == [0, 2, pytest.approx(0.4 / 0.36)]


def test_worse_is_beyond_a_twentieth_and_both_intervals() -> None:
    def with_dale(*found: float) -> Standing:
        changed = replace(STANDING.outcomes[3], losses=found)
        return replace(STANDING, outcomes=(*STANDING.outcomes[:3], changed))

    assert worse(STANDING, with_dale(0.377, 0.377)) == []
    (said,) = worse(STANDING, with_dale(0.379, 0.379))
    assert said == "rule, dale, 50 updates: loss 0.379, 0.36 before"
    assert worse(STANDING, with_dale(0.3, 0.6)) == []  # its interval is wide
    assert worse(STANDING, replace(with_dale(9.0, 9.0), seeds=(0, 2))) == []
    assert worse(STANDING, replace(with_dale(9.0, 9.0), quick=False)) == []


def test_it_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "optimisers.json"
    whole = replace(STANDING, outcomes=(*STANDING.outcomes, outcome("sgd", "sea", math.inf, 1.0)))
    save(whole, path)
    assert "Infinity" not in path.read_text()
    assert load(path) == whole


@pytest.mark.parametrize("text", ["", "[]", '{"machine": {}}', "[" * 10**5])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "optimisers.json"
    path.write_text(text)
    with pytest.raises(InputError, match="to be a file that `attractor bench optimisers` wrote"):
        load(path)
    with pytest.raises(InputError, match="expected a benchmark of optimisers at .*none.json"):
        load(tmp_path / "none.json")


def test_tables_say_it_all() -> None:
    first, hill, dale, pit, machine = tables(STANDING)
    assert first == profiles(STANDING)
    assert first.rows[0][0] == "sgd"
    assert first.rows[0][1:3] == ["67", "67"]
    assert hill.columns == ["optimiser", "loss after 50", "rate", "ms"]
    assert hill.rows == [["sgd", "2 ± 13", "0.1", "2000.00"], ["rule", "5 ± 13", "–", "4000.00"]]
    assert pit.rows[1] == ["rule", "–", "–", "–"]
    assert dale.title == "dale: a dale"
    assert machine.rows == [["cpu", "an abacus"]]
    assert losses(STANDING).rows[1] == ["rule", "5 ± 13", "**0.36**", "–"]
    text = markdown(STANDING)
    assert "| `rule` | 5 ± 13 | **0.36** | – |" in text
    assert text.endswith("Left out: rule, pit: too slow\n")


def test_its_parts_can_be_linked_to_and_its_tables_copied() -> None:
    page = build([], benchmarks=[STANDING, STANDING])
    links = re.findall(r'class="anchor" href="#([^"]*)"', page)
    parts = ["profiles", *(f"table-{number}" for number in range(1, 6))]
    assert links == [f"benchmark-{n}-{part}" for n in (1, 2) for part in parts]
    assert [page.count(f'id="{link}"') for link in links] == [1] * 12
    assert re.findall(r'data-save="([^"]*)"', page) == [one for one in links if "table" in one]
    assert page.count("<table") == page.count('data-copy="latex"') == 10
    assert 'aria-label="Performance profiles: 2 optimisers; sgd has the lowest' in page


def test_the_page_has_a_line_for_each_and_names_who_leads() -> None:
    part = standing_part(STANDING)
    assert part.findings[0].startswith("sgd has the lowest mean loss at 2 of 3: hill after 50")
    assert len(part.warnings) == 2
    figure = profile_figure(STANDING)
    sgd, rule = figure.traces
    assert (sgd["name"], rule["name"]) == ("sgd", "rule")
    assert sgd["x"] == pytest.approx([1.0, 0.4 / 0.36, 2.5, 4.0])
    assert rule["y"] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])


def test_benchmarks_are_joined_where_they_are_of_one_kind(tmp_path: Path) -> None:
    new = replace(outcome("rule", "dale", 0.3, 0.3), updates=25)
    first = outcome("rule", "pit", 9.0, 9.0)
    found = Standing({}, True, {"sea": "a sea"}, (0, 1), (first, new), ("sgd: gone",))
    both = joined(STANDING, found)
    assert both.by()["rule", DALE] == new
    assert both.by()["rule", PIT] == first
    assert len(both.outcomes) == len(STANDING.outcomes) + 1
    assert both.contenders == STANDING.contenders
    assert both.left_out == ("rule, pit: too slow", "sgd: gone")
    assert both.tasks.keys() == {"hill", "dale", "pit", "sea"}
    save(replace(both, by_time=True), tmp_path / "both.json")
    kept = load(tmp_path / "both.json")
    assert kept.by()["rule", DALE].updates == 25
    assert kept.by_time
    for other in ({"quick": False}, {"seeds": (0,)}, {"by_time": True}):
        with pytest.raises(InputError, match="to join this one with"):
            joined(replace(STANDING, **other), found)
    assert worse(replace(STANDING, by_time=True), STANDING) == []
