"""Each rule of the table beside its independent NumPy implementation, at options of its own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from attractor.optimisers import (
    DMSGD,
    M2SGD,
    MTL2L,
    Anytime,
    Celo,
    DecayNetOptimiser,
    GlobalM2SGD,
    GlobalOptimiser,
    HierarchicalOptimiser,
    IHCLSTMOptimiser,
    LSTMOptimiser,
    MetaSGD,
    Pacer,
    RNNprop,
    Rule,
    SmallFC,
    Velo,
)
from cells.against import array
from contracts.cells import seeded
from optimisers import weights
from reference import rules, scheduled, shaped

SHAPES = ((2, 2), (), (4,))
"""Of the tensors of the networks that are compared."""
COORDINATES = 9
PIXELS = 6
"""Of the images that MTL2L is shown."""
STATIC = torch.linspace(0.3, -0.9, COORDINATES, dtype=torch.float64)
"""Rates some of which are of no use without the dynamic ones."""


class Case(NamedTuple):
    """A rule, what computes its update in NumPy, and the weights as that wants them."""

    rule: Rule
    reference: Callable[..., Any]
    weights: dict[str, Any]
    options: dict[str, Any] = {}  # noqa: RUF012


def random(rule: Rule) -> Any:
    """The rule in float64 with large weights, so that every part of it makes a difference."""
    g = seeded(5)
    for parameter in rule.double().parameters():
        parameter.data = torch.randn(parameter.shape, generator=g, dtype=torch.float64)
    return rule


def lstm(**options: Any) -> Case:
    rule = random(LSTMOptimiser(**options))
    return Case(rule, rules.lstm_optimiser, weights.coordinatewise(rule, weights.lstm_layer))


def ihc_lstm(**options: Any) -> Case:
    rule = random(IHCLSTMOptimiser(hidden_size=4, **options))
    named = weights.coordinatewise(rule.inner, weights.ihc_layer)
    return Case(rule, rules.ihc_lstm_optimiser, named)


def decaynet(n: int, **options: Any) -> Case:
    rule = random(DecayNetOptimiser(hidden_size=4, iterations=n, **options))
    named = weights.coordinatewise(rule, weights.decaynet_layer)
    return Case(rule, rules.decaynet_optimiser, named, {"n": n})


def one_for_all(cell: str, n: int, **options: Any) -> Case:
    made = GlobalOptimiser(
        size=COORDINATES, cell=cell, reduced_size=3, hidden_size=5, iterations=n, **options
    )
    told = {"n": n, "decays": cell == "decaynet"}
    return Case(random(made), rules.global_optimiser, weights.whole(made), told)


def mtl2l(stable: bool, **options: Any) -> Case:
    made = MTL2L(
        context_size=PIXELS,
        stable=stable,
        hidden_size=4,
        hyper_size=5,
        generator=seeded(),
        **options,
    )
    return Case(random(made), rules.mtl2l, weights.mtl2l(made), {"stable": stable})


def meta_sgd() -> Case:
    rule = random(MetaSGD(size=COORDINATES))
    return Case(rule, rules.meta_sgd, {"beta": array(rule.rates)})


def dmsgd(size: int | None, **options: Any) -> Case:
    rule = random(DMSGD(size=size, hidden_size=4, **options))
    rule.static.data = STATIC[: size or 1].clone()
    return Case(rule, rules.dmsgd, weights.rates(rule))


def m2sgd(threshold: float, size: int | None, **options: Any) -> Case:
    rule = random(M2SGD(threshold=threshold, size=size, hidden_size=4, **options))
    rule.inner.static.data = STATIC[: size or 1].clone()
    return Case(rule, rules.m2sgd, weights.rates(rule.inner), {"threshold": threshold})


def m2sgd_global(threshold: float, **options: Any) -> Case:
    rule = random(GlobalM2SGD(size=COORDINATES, hidden_size=3, threshold=threshold, **options))
    rule.static.data = STATIC.clone()
    named = weights.m2sgd_global(rule)
    return Case(rule, rules.m2sgd_global, named, {"threshold": threshold})


def rnnprop(**options: Any) -> Case:
    rule = random(RNNprop(hidden_size=4, **options))
    return Case(rule, rules.rnnprop, weights.rnnprop(rule))


def hierarchical(**options: Any) -> Case:
    rule = random(HierarchicalOptimiser(hidden_size=4, tensor_size=5, network_size=3, **options))
    named = weights.hierarchical(rule)
    return Case(rule, rules.hierarchical, named, {"tensors": (4, 1, 4)})


def anytime() -> Case:
    rule = random(Anytime())
    return Case(
        rule, rules.anytime, weights.anytime(rule), {"tensors": ((4, 2), (1, None), (4, None))}
    )


def small_fc(**options: Any) -> Case:
    rule = random(SmallFC(hidden_size=4, **options))
    for name, value in rule.named_parameters():
        if name.endswith("decays"):
            value.data *= 0.1
    return Case(rule, shaped.small_fc, weights.small_fc(rule), {"tensors": SHAPES})


def celo(**options: Any) -> Case:
    rule = random(Celo(hidden_size=3, scheduler_size=5, **options))
    return Case(rule, scheduled.celo, weights.celo(rule), {"tensors": SHAPES})


def velo(**options: Any) -> Case:
    rule = random(Velo(hidden_size=3, scheduler_size=5, perceptrons=4, **options))
    for value in rule.parameters():
        value.data *= 0.3
    return Case(rule, scheduled.velo, weights.velo(rule), {"tensors": SHAPES})


def pacer(**options: Any) -> Case:
    rule = random(Pacer(**options))
    return Case(rule, shaped.pacer, weights.pacer(rule), {"tensors": SHAPES})


REFERENCES: dict[str, list[Callable[[], Case]]] = {
    "lstm": [
        lambda: lstm(hidden_size=4, layers=1, scale=0.3),
        lambda: lstm(hidden_size=4, layers=3, p=7.0),
        lstm,
    ],
    "ihc_lstm": [ihc_lstm, lambda: ihc_lstm(scale=0.2, p=8.0, layers=1)],
    "decaynet": [lambda: decaynet(1), lambda: decaynet(2, p=8.0), lambda: decaynet(5)],
    "global": [
        lambda: one_for_all("decaynet", 1),
        lambda: one_for_all("decaynet", 2, p=8.0),
        lambda: one_for_all("lstm", 1),
        lambda: one_for_all("lstm", 2),
    ],
    "mtl2l": [lambda: mtl2l(True), lambda: mtl2l(False, scale=0.3, p=8.0)],
    "meta_sgd": [meta_sgd],
    "dmsgd": [
        lambda: dmsgd(None),
        lambda: dmsgd(COORDINATES),
        lambda: dmsgd(None, gamma=0.6, p=8.0),
    ],
    "m2sgd": [
        lambda: m2sgd(0.0, None),
        lambda: m2sgd(0.1, COORDINATES, gamma=0.8),
        lambda: m2sgd(0.2825, COORDINATES, p=8.0),
    ],
    "m2sgd_global": [
        lambda: m2sgd_global(-1.0),
        lambda: m2sgd_global(0.0, p=8.0),
        lambda: m2sgd_global(0.1),
    ],
    "rnnprop": [rnnprop, lambda: rnnprop(scale=0.4, beta1=0.7, beta2=0.9, layers=1)],
    "hierarchical": [hierarchical, lambda: hierarchical(scales=2, rate=0.3)],
    "small_fc": [
        lambda: small_fc(scale=0.1, exponent=0.1),
        lambda: small_fc(layers=1, scale=0.2),
    ],
    "celo": [lambda: celo(horizon=7)],
    "velo": [lambda: velo(horizon=7)],
    "anytime": [anytime],
    "pacer": [pacer, lambda: pacer(hidden_size=3)],
}
"""Every rule of the table, in cases whose options are not all the defaults."""
