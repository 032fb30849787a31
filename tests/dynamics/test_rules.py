"""Learned optimisers as systems: where their memory rests, and what MTL2L makes of data."""

import pytest
import torch

from attractor import InputError
from attractor.dynamics import RuleMap, Spectra, rule_fixed_points, spectra
from attractor.optimisers import DMSGD, MTL2L, LSTMOptimiser, MetaSGD


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loud() -> LSTMOptimiser:
    rule = LSTMOptimiser(generator=seeded())
    assert rule.head is not None
    with torch.no_grad():
        rule.head.weight.normal_(generator=seeded(1))
    return rule


def test_the_map_is_what_the_optimiser_does() -> None:
    rule, number = loud(), torch.nn.Parameter(torch.tensor([0.7]))
    optimiser, made = rule([number]), RuleMap(rule, -0.04, 0.7)
    state = made.start
    for _ in range(3):
        step, state = float(made.step(state)), made(state)
        with torch.no_grad():
            number.fill_(0.7)
        number.grad = torch.tensor([-0.04])
        optimiser.step()
        assert float(number.detach()) - 0.7 == pytest.approx(step, rel=1e-4, abs=1e-7)


def test_memory_comes_to_rest_where_it_says() -> None:
    rule = loud()
    found = rule_fixed_points(rule, 0.5, starts=20)
    assert found.stability == ["stable"]
    made = RuleMap(rule, 0.5)
    state = made.start
    for _ in range(400):
        state = made(state)
    assert torch.allclose(state, found.points[0], atol=1e-6)
    other = rule_fixed_points(rule, -0.5, starts=20)
    assert not torch.allclose(other.points[0], found.points[0], atol=1e-2)


def test_rules_without_memory_or_with_context_are_refused() -> None:
    with pytest.raises(InputError, match="has no state: its step depends on the gradient alone"):
        RuleMap(MetaSGD(size=1), 0.1)
    with pytest.raises(InputError, match="MTL2L is shown data too. Try spectra"):
        RuleMap(MTL2L(context_size=3), 0.1)
    with pytest.raises(InputError, match="is made for 4 numbers. Make it for one"):
        RuleMap(MetaSGD(size=4), 0.1)
    with pytest.raises(InputError, match="expected gradient to be at least"):
        RuleMap(DMSGD(generator=seeded()), float("nan"))


@pytest.mark.parametrize("stable", [True, False])
def test_values_are_those_that_the_rule_uses(stable: bool) -> None:
    rule = MTL2L(context_size=5, stable=stable, generator=seeded())
    rows = {name: torch.randn(3, 7, 5, generator=seeded(k)) for k, name in enumerate("ab")}
    found = spectra(rule, rows)
    wanted = torch.cat([hyper(rows["b"][1]).mean(0) for hyper in rule.hyper])
    assert torch.allclose(found.values["b"][1], wanted.double(), atol=1e-5)
    with pytest.raises(InputError, match="at least two data sets of at least two batches"):
        spectra(rule, {"a": rows["a"]})


def test_a_mixture_has_its_shares_and_what_is_left() -> None:
    one, two, three = torch.eye(4).double()[:3]
    noise = 0.01 * torch.randn(6, 4, generator=seeded()).double()
    noise = noise - noise.mean(0)
    made = {
        name: middle + noise
        for name, middle in {
            "one": one,
            "two": two,
            "between": 0.3 * one + 0.7 * two,
            "beside": 0.5 * one + 0.5 * two + 2 * three,
        }.items()
    }
    inside = Spectra({name: made[name] for name in ("one", "two", "between")}).mixture("between")
    assert inside.shares["two"] == pytest.approx(0.7, abs=1e-3)
    assert sum(inside.shares.values()) == pytest.approx(1, abs=1e-3)
    assert inside.unexplained < 0.01
    outside = Spectra({name: made[name] for name in ("one", "two", "beside")})
    assert outside.mixture("beside").unexplained == pytest.approx(1, abs=1e-3)
    assert outside.told_apart == 1.0
    assert outside.spread()["one"] == pytest.approx(float(noise.norm(dim=1).mean()))
    near = Spectra({name: torch.randn(40, 2, generator=seeded(3)).double() for name in "ab"})
    assert near.told_apart < 0.3  # of the mean of its own, a batch is no part
    plane = outside.plane()
    assert plane["two"].shape == (6, 2)
    assert float((plane["two"].mean(0) - plane["beside"].mean(0)).norm()) > 1
    with pytest.raises(InputError, match="expected one of one, two, beside, but got 'three'"):
        outside.mixture("three")
