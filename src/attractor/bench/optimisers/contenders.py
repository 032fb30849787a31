"""Who is compared: torch's optimisers with and without a schedule, others, and learned rules."""

import importlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor
from torch.optim import SGD, Adam, AdamW, NAdam

from attractor.errors import InputError, unknown
from attractor.optimisers import OPTIMISERS, Maker, Rule, load_rule, shipped
from attractor.optimisers.choose import pretrained_for
from attractor.training.schedules import Schedule


def rung(index: int) -> float:
    """A rate of the ladder 1, 3, 10, 30, ...: two rungs are a factor of ten.

    Example:
        >>> [rung(index) for index in (-8, -7, 0, 1, 2)]
        [0.0001, 0.0003, 1.0, 3.0, 10.0]
    """
    return float(f"{3 if index % 2 else 1}e{index // 2}")


class Contender(NamedTuple):
    """An optimiser of the benchmark.

    Args:
        make: makes it with a rate, or, if none is tuned, with its own.
        rungs: of the ladder, on which the search for its rate begins; empty for one that is used
            as it comes.
        schedule: how its rate falls.
    """

    make: Callable[..., Maker]
    rungs: range = range(0)
    schedule: Schedule | None = None

    def first(self, *, quick: bool) -> range:
        """Where the search for a rate begins: on all rungs, or on three in their middle."""
        return self.rungs[2:5] if quick else self.rungs


ADAM, MOMENTUM = range(-8, -2), range(-6, 0)
"""Six rates each: 0.0001 to 0.03 and 0.001 to 0.3."""


def package(name: str, attribute: str, **options: Any) -> Maker:
    """What makes an optimiser of another package, which is an extra of the benchmark."""
    try:
        kind = getattr(importlib.import_module(name), attribute)
    except ImportError as error:
        raise InputError(
            f"expected the package {name} for {attribute}, but it is not installed. "
            'Try pip install "attractor[bench]".'
        ) from error
    made: Maker = partial(kind, **options)
    return made


def _of(kind: Any, rungs: range, **options: Any) -> tuple[Contender, Contender]:
    """An optimiser at a constant rate, and with one that falls along a cosine."""

    def make(rate: float) -> Maker:
        return partial(kind, lr=rate, **options)

    return Contender(make, rungs), Contender(make, rungs, "cosine")


_BY_HAND = {
    "adam": _of(Adam, ADAM),
    "adamw": _of(AdamW, ADAM, weight_decay=0.01),
    "nadamw": _of(NAdam, ADAM, weight_decay=0.01, decoupled_weight_decay=True),
    "sgd": _of(SGD, MOMENTUM, momentum=0.9),
}

CONTENDERS: dict[str, Contender] = {
    **{name: constant for name, (constant, _) in _BY_HAND.items()},
    **{f"{name}-cosine": cosine for name, (_, cosine) in _BY_HAND.items()},
    "schedulefree": Contender(partial(package, "schedulefree", "AdamWScheduleFree")),
    "prodigy": Contender(partial(package, "prodigyopt", "Prodigy")),
    "prodigy-cosine": Contender(partial(package, "prodigyopt", "Prodigy"), schedule="cosine"),
}
"""Those that were made by hand: momentum is 0.9, weight decay 0.01 and decoupled."""


def rules() -> list[str]:
    """The learned optimisers that come with weights."""
    kinds = dict.fromkeys(name.partition("/")[0] for name in shipped())
    return [key for key in OPTIMISERS if key in kinds]


def without_weights(measured: Collection[str] = ()) -> list[str]:
    """What to say of learned optimisers that come without weights and were not measured.

    Example:
        >>> without_weights({"celo", "velo", "small_fc", "rnnprop", "hierarchical"})
        ['global, meta_sgd, m2sgd_global: no weights come with attractor. Give a file to --only.']
    """
    known = {*rules(), *measured}
    left = [key for key, one in OPTIMISERS.items() if one.learned and key not in known]
    said = f"{', '.join(left)}: no weights come with attractor. Give a file to --only."
    return [said] if left else []


def contender(name: str) -> Contender:
    """The contender of a name, or of a rule's file; a learned rule has no rate that is tuned."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    if name.endswith(".safetensors"):
        return Contender(partial(_saved, name))
    if name in rules():
        return Contender(partial(_rule, name))
    raise unknown("optimiser of the benchmark", name, [*CONTENDERS, *rules()])


def _saved(path: str, shown: Tensor) -> Rule:
    return load_rule(path)


def _rule(name: str, shown: Tensor) -> Rule:
    found = pretrained_for(name, shown)
    if found is None:
        raise InputError(
            f"expected weights of {name} for inputs of {shown[0].numel()} numbers, but none come "
            "with attractor. Meta-train it for these."
        )
    return found


def make(name: str, rate: float | None, shown: Tensor) -> Maker:
    """What makes a contender for a network.

    Args:
        name: of the contender.
        rate: if it is tuned.
        shown: a batch of what the network is shown, for a rule that wants to see it.

    Example:
        >>> import torch
        >>> make("adam", 0.003, torch.zeros(1, 64)).keywords
        {'lr': 0.003}
        >>> make("anytime", None, torch.zeros(1, 64)).key
        'anytime'
    """
    found = contender(name)
    if rate is not None:
        return found.make(rate)
    return found.make(shown) if name not in CONTENDERS else found.make()
