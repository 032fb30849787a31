"""The one table of optimisers: learned rules, and torch's own by torch's names and defaults."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import optim
from torch.optim import Optimizer

from attractor.errors import InputError, unknown
from attractor.optimisers.rule import Rule
from attractor.optimisers.rules.anytime import Anytime
from attractor.optimisers.rules.celo import Celo
from attractor.optimisers.rules.decaynet import DecayNetOptimiser
from attractor.optimisers.rules.dmsgd import DMSGD
from attractor.optimisers.rules.global_decaynet import GlobalOptimiser
from attractor.optimisers.rules.global_m2sgd import GlobalM2SGD
from attractor.optimisers.rules.hierarchical import HierarchicalOptimiser
from attractor.optimisers.rules.ihc_lstm import IHCLSTMOptimiser
from attractor.optimisers.rules.lstm import LSTMOptimiser
from attractor.optimisers.rules.m2sgd import M2SGD
from attractor.optimisers.rules.meta_sgd import MetaSGD
from attractor.optimisers.rules.mtl2l import MTL2L
from attractor.optimisers.rules.pacer import Pacer
from attractor.optimisers.rules.rnnprop import RNNprop
from attractor.optimisers.rules.small_fc import SmallFC
from attractor.optimisers.rules.velo import Velo
from attractor.tables import lookup

Maker = Callable[[Iterable[Any]], Optimizer]
"""Makes an optimiser for parameters: a rule, or ``partial(torch.optim.SGD, lr=0.1)``."""


@dataclass(frozen=True)
class Entry:
    """An optimiser of the table; calling it with options gives what makes one for parameters.

    Args:
        kind: a `Rule`, or a class of ``torch.optim``.
        reference: key of the paper in ``references.bib``; a rule has its own.
        fixed: options that are part of its name.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = OPTIMISERS["sgd"](lr=0.1, momentum=0.9)(model.parameters())
        >>> learned = OPTIMISERS["dmsgd"](hidden_size=10)(model.parameters())
    """

    kind: Any
    reference: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.learned:
            object.__setattr__(self, "reference", getattr(self.kind, "reference", ""))

    @property
    def learned(self) -> bool:
        """Whether it is a rule with weights of its own."""
        return issubclass(self.kind, Rule)

    @property
    def options(self) -> dict[str, Any]:
        """Its options with their defaults; `inspect.Parameter.empty` where one must be given.

        Example:
            >>> OPTIMISERS["rmsprop"].options["alpha"]
            0.99
        """
        hidden = {"params", "generator", *self.fixed}
        known = inspect.signature(self.kind).parameters.values()
        named = [p for p in known if p.kind is not p.VAR_KEYWORD]
        return {p.name: p.default for p in named if p.name not in hidden}

    @property
    def open(self) -> bool:
        """Whether it passes other options on, as `LSTMOptimiser` does to its cell."""
        known = inspect.signature(self.kind).parameters.values()
        return any(p.kind is p.VAR_KEYWORD for p in known)

    @property
    def draws(self) -> bool:
        """Whether it takes a ``generator``, which draws its initial weights."""
        return "generator" in inspect.signature(self.kind).parameters

    def __call__(self, **options: Any) -> Maker:
        """What makes an optimiser for parameters: a rule, or torch's class with its options.

        Args:
            options: by name; ``generator`` too, of a rule that draws its initial weights.
        """
        for name in options:
            if not (name in self.options or self.open or (self.draws and name == "generator")):
                raise unknown(f"option of {self.kind.__name__}", name, self.options)
        make: Maker = partial(self.kind, **options, **self.fixed)
        try:
            if self.learned:
                rule: Rule = self.kind(**options)
                return rule
            make([torch.zeros(1)])  # so that bad options are told of now
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"expected options that {self.kind.__name__} can use, but got {options}: {error}. "
                "Leave them out for the defaults; see docs/optimisers.md."
            ) from error
        return make


OPTIMISERS: dict[str, Entry] = {
    "lstm": Entry(LSTMOptimiser),
    "decaynet": Entry(DecayNetOptimiser),
    "global": Entry(GlobalOptimiser),
    "ihc_lstm": Entry(IHCLSTMOptimiser),
    "mtl2l": Entry(MTL2L),
    "meta_sgd": Entry(MetaSGD),
    "dmsgd": Entry(DMSGD),
    "m2sgd": Entry(M2SGD),
    "m2sgd_global": Entry(GlobalM2SGD),
    "rnnprop": Entry(RNNprop),
    "hierarchical": Entry(HierarchicalOptimiser),
    "small_fc": Entry(SmallFC),
    "celo": Entry(Celo),
    "velo": Entry(Velo),
    "anytime": Entry(Anytime),
    "pacer": Entry(Pacer),
    "adadelta": Entry(optim.Adadelta, "zeiler2012adadelta"),
    "adagrad": Entry(optim.Adagrad, "duchi2011adaptive"),
    "adam": Entry(optim.Adam, "kingma2015adam"),
    "adamax": Entry(optim.Adamax, "kingma2015adam"),
    "adamw": Entry(optim.AdamW, "loshchilov2019decoupled"),
    "amsgrad": Entry(optim.Adam, "reddi2018convergence", {"amsgrad": True}),
    "nadam": Entry(optim.NAdam, "dozat2016incorporating"),
    "radam": Entry(optim.RAdam, "liu2020variance"),
    "rmsprop": Entry(optim.RMSprop, "tieleman2012lecture"),
    "sgd": Entry(optim.SGD, "robbins1951stochastic"),
}
"""Every optimiser by its key; the command line, the docs and the tests read it."""


def optimiser_entry(name: object) -> Entry:
    """The optimiser of a name: an entry of the table, or a class of the user's own.

    Args:
        name: a key of ``OPTIMISERS``, or ``module:Class`` of a `Rule` or an optimiser of torch.

    Example:
        >>> optimiser_entry("adam").reference
        'kingma2015adam'
        >>> optimiser_entry("torch.optim:Rprop").learned
        False
    """
    found: Any = lookup("optimiser", OPTIMISERS, name)
    if isinstance(found, Entry):
        return found
    if not (inspect.isclass(found) and issubclass(found, Rule | Optimizer)):
        raise InputError(
            f"expected {name!r} to name a class of torch.optim.Optimizer or of Rule, but it is "
            f"{found!r}. Try the name of such a class."
        )
    return Entry(found)
