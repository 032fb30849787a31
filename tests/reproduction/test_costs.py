"""What targets cost, where some of the parts are known, and how it is shown."""

import pytest

from attractor.reproduction import TARGETS, costs, target
from attractor.reproduction.costs import Cost, cost, seeds_of
from attractor.reproduction.outcomes import END, Outcomes, Row


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, object]]:
    """The costs of experiments that are written down, to be changed."""
    known: dict[str, dict[str, object]] = {}
    monkeypatch.setattr(costs, "measured", lambda: known)
    monkeypatch.setattr(costs, "stored", lambda name: Outcomes([]))
    return known


def test_parts_that_are_not_known_make_it_the_least(parts: dict[str, dict[str, object]]) -> None:
    own = target("000/table-6.5")
    assert cost(own, "full") is None
    parts["permuted-mnist-networks"] = {"seeds": 20, "minutes": 0.5}
    labels = own.experiments("full")["permuted-mnist-networks"][1]
    assert cost(own, "full") == Cost(20 * 0.5 * len(labels), least=True)
    parts |= {name: {"seeds": 1, "minutes": 0.0} for name in own.experiments("full")}
    whole = cost(own, "full")
    assert whole is not None
    assert not whole.least


def test_variants_that_were_not_measured_do_not_count(parts: dict[str, dict[str, object]]) -> None:
    own = target("002/table-2")
    parts["rows-mnist"] = {"seeds": 40, "variants": {"MNIST, LSTM 32": 0.5}}
    assert cost(own, "full") == Cost(40 * 0.5, least=True)
    assert costs.costs() == {}


def test_what_stored_runs_took_stands_in(
    parts: dict[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = target("000/table-6.2")
    ((name, (seeds, labels)),) = own.experiments("quick").items()
    took = {labels[0]: [60.0, 180.0], labels[1]: [30.0]}
    rows = [
        Row(name, "full", label, seed, "r", END, 9, "seconds", value)
        for label, values in took.items()
        for seed, value in enumerate(values)
    ]
    monkeypatch.setattr(costs, "stored", lambda asked: Outcomes(rows if asked == name else []))
    runs = len(seeds) or seeds_of(name)
    mean = (60 + 180 + 30) / 3 / 60  # of a variant that has no runs
    expected = runs * (2.0 + 0.5 + mean * (len(labels) - 2))
    found = cost(own, "quick")
    assert found is not None
    assert not found.least
    assert found.minutes == pytest.approx(expected)
    parts[name] = {"seeds": 9, "minutes": 7.0}  # what is written down counts
    assert cost(own, "quick") == Cost(7.0 * runs * len(labels))


def test_every_target_with_runs_has_a_cost() -> None:
    without = {key for key, one in TARGETS.items() if cost(one, "quick") is None}
    assert without == {"001/section-3.7.4"}
    for one in TARGETS.values():
        quick, full = cost(one, "quick"), cost(one, "full")
        if quick and full and not full.least and not quick.least:
            assert full.minutes >= quick.minutes, one.key


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "-"),
        (Cost(0.123), "0.1"),
        (Cost(9.96), "10"),
        (Cost(1848.6), "1,849"),
        (Cost(1848.6, least=True), "≥ 1,849"),
    ],
)
def test_a_cost_in_words(found: Cost | None, text: str) -> None:
    assert costs.told(found) == text
