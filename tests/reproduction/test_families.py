"""Families of continual learning, class by class: the claims on the runs that are stored."""

from dataclasses import replace

import pytest

from attractor.reproduction.claims import examined
from attractor.reproduction.outcomes import END, Outcomes
from attractor.reproduction.stock import kept
from attractor.reproduction.targets import Claim, target

TARGET = target("000/section-3.3.6")
QUICK = [one for one in TARGET.claims if one.quick]


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: claim.says[-60:])
def test_what_the_thesis_says_of_families_comes_out_on_photographs(claim: Claim) -> None:
    found = examined(claim, kept(TARGET), "quick")
    assert found.n == 5
    assert found.told == "quick, as claimed"


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: claim.says[-60:])
def test_and_it_would_be_told_if_it_did_not(claim: Claim) -> None:
    runs = kept(TARGET)
    if claim.test == "same":
        other = replace(claim, ours="ER, 200")
    else:
        other = replace(claim, ours=claim.other, other=claim.ours)
    assert examined(other, runs, "quick").told == "quick, the other way"
    few = Outcomes([row for row in runs.rows if row.seed < 2])
    assert examined(claim, few, "quick").told == "few seeds"


def test_every_memory_keeps_more_than_every_regulariser() -> None:
    runs = kept(TARGET)

    def values(label: str) -> list[float]:
        return [*runs.final("class-incremental-cifar10", label, "accuracy").values()]

    without = [max(values(one)) for one in ("Naive", "EWC, online", "SI", "LwF", "MAS")]
    replay = [f"{name}, 200" for name in ("ER", "ER-ACE", "DER", "DER++", "iCaRL", "GDumb", "GEM")]
    assert max(without) < 0.2
    assert min(min(values(label)) for label in replay) > max(without) + 0.1
    assert all(len(values(label)) == 5 for label in replay)
    assert {row.split for row in runs.rows if row.experiment.endswith("cifar10")} == {END}


def test_one_variant_is_compared_with_itself_in_another_way() -> None:
    claim = replace(QUICK[0], ours="ER, 200", other="ER, 200", other_measure="forgetting")
    runs = kept(TARGET)
    found = examined(claim, runs, "quick")
    name = "class-incremental-cifar10"
    kept_, lost = (runs.final(name, "ER, 200", one) for one in ("accuracy", "forgetting"))
    assert found.difference == pytest.approx(sum(kept_[s] - lost[s] for s in kept_) / 5)
