"""Several strategies at once."""

from functools import partial

import pytest
import torch
from torch.optim import SGD

from attractor import InputError
from attractor.continual import (
    AGEM,
    ER,
    EWC,
    GEM,
    HAT,
    Freeze,
    Joint,
    Learner,
    MetaSGDCL,
    Naive,
    Stable,
    Strategy,
    combine,
)
from attractor.continual.replay import Slots
from attractor.models import HCN
from attractor.tasks.streams import Stream
from continual.helpers import digits, mlp, parameters, seeded

told = Stream("told", list(digits()), identity=True)


def test_combined_strategies_do_what_each_does() -> None:
    er, ewc = ER(size=20, replay=5), EWC(50.0, samples=50)
    ends = {}
    for name, strategy in {"er": er, "both": combine(er, ewc, Stable(0.5))}.items():
        learner = Learner(mlp(), digits(), strategy, optimiser=partial(SGD, lr=0.02), iterations=20)
        while not learner.done:
            learner.advance()
        ends[name] = learner
    assert ends["both"].optimiser.param_groups[0]["lr"] == pytest.approx(0.005)
    assert len(ewc.anchors) == 1
    assert not torch.equal(parameters(ends["er"].model), parameters(ends["both"].model))


def test_a_combined_learner_goes_on_bit_by_bit() -> None:
    def learner() -> Learner:
        strategy = combine(ER(size=20, replay=5), EWC(samples=50), Freeze(), Stable(0.9))
        return Learner(HCN([64, 8, 8, 10], generator=seeded()), digits(), strategy, iterations=10)

    one, other = learner(), learner()
    for _ in range(13):
        one.advance()
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == other.advance()


def test_two_strategies_cannot_both_make_the_step() -> None:
    with pytest.raises(InputError, match="at most one.*HAT and MetaSGDCL"):
        combine(HAT(), MetaSGDCL())


def learnt(*strategies: Strategy, iterations: int = 10) -> Learner:
    learner = Learner(mlp(), told, combine(*strategies), batch_size=4, iterations=iterations)
    while not learner.done:
        learner.advance()
    return learner


@pytest.mark.parametrize("other", [AGEM, EWC, GEM, MetaSGDCL])
def test_any_order_remembers_each_sample_once(other: type[Strategy]) -> None:
    for order in (0, 1):
        er, one = ER(), other()
        strategies = [er, one] if order else [one, er]
        learner = learnt(*strategies)
        assert torch.isfinite(parameters(learner.model)).all()
        assert isinstance(er.episodes.memory, Slots)
        assert er.episodes.memory.seen == [40, 40, 40]
        if isinstance(one, GEM | MetaSGDCL):
            kept = one.episodes.all_of([2])
            assert kept.places.tolist() == [2] * 40
        if isinstance(one, AGEM):
            assert sum(one.memory.seen) == 120


@pytest.mark.parametrize("other", [AGEM, ER, EWC, Freeze, GEM, Joint, Stable])
def test_masks_come_first_in_any_order(other: type[Strategy]) -> None:
    ends = []
    for order in (0, 1):
        hat, one = HAT(), other()
        learner = learnt(*([hat, one] if order else [one, hat]))
        assert learner.model(torch.zeros(2, 64), torch.tensor([0, 2])).shape == (2, 10)
        assert hat.count == 10
        ends.append(parameters(learner.model))
    assert torch.isfinite(ends[0]).all()
    if other not in (GEM, AGEM, EWC):  # which change the gradients in the order of the names
        assert torch.equal(*ends)


def test_what_goes_against_each_other_is_refused() -> None:
    with pytest.raises(InputError, match="at most one.*adds samples, but got ER and Joint"):
        combine(ER(), Joint())
    with pytest.raises(InputError, match="at most one.*sets rates, but got MetaSGDCL and Stable"):
        combine(MetaSGDCL(), Stable())


def test_a_strategy_says_how_it_was_made() -> None:
    assert repr(Naive()) == "Naive()"
    assert repr(combine(GEM(20), Stable(0.5))) == (
        "combine(GEM(size=20, margin=0.5, memory='hard', every=1, screened=False), "
        "Stable(gamma=0.5, least=5e-05))"
    )
