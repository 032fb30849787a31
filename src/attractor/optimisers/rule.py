"""The contract of a learned optimiser: a rule with weights of its own, and two pure functions."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from attractor.errors import InputError

if TYPE_CHECKING:
    from attractor.optimisers.drop_in import Learned


class State(NamedTuple):
    """What a rule remembers of an optimisation.

    Shape:
        each tensor of `each` is ``(learners, coordinates, ...)``, each of `shared` is
        ``(learners, ...)``; both may be nested tuples, or empty.
    """

    each: Any = ()
    shared: Any = ()

    def at(self, where: slice) -> State:
        """The state of some of the coordinates."""
        return State(map_tensors(lambda s: s[:, where], self.each), self.shared)

    def map(self, function: Callable[..., Tensor], *others: State) -> State:
        """The state with `function` applied to every tensor, or to those of several states."""
        return State(*map_tensors(function, tuple(self), *others))


def map_tensors(function: Callable[..., Tensor], *trees: Any) -> Any:
    """Apply `function` to every tensor of nested tuples, or to those of several alike.

    What torch's pytree does, in a quarter of its time, for it is done several times a block.

    Example:
        >>> map_tensors(torch.add, (torch.ones(1), ()), (torch.ones(1), ()))
        (tensor([2.]), ())
    """
    first = trees[0]
    if isinstance(first, Tensor):
        return function(*trees)
    mapped = [map_tensors(function, *parts) for parts in zip(*trees, strict=True)]
    return type(first)(*mapped) if hasattr(first, "_fields") else tuple(mapped)


class Rule(nn.Module, ABC):
    r"""A learned update: from gradients to steps, :math:`\theta_{t+1} = \theta_t + g_{t+1}`.

    The module's parameters are what is meta-learned. `init` and `update` are pure: all that
    changes from step to step is in the state, so one rule serves many networks at once. The
    parameters of a network are seen as a row of numbers, its *coordinates*; several networks of
    one kind, the *learners*, are the rows of a matrix.

    Calling a rule makes an optimiser: ``rule(model.parameters())`` goes where
    ``torch.optim.Adam(model.parameters())`` went.
    """

    key: ClassVar[str]
    """Its name in ``OPTIMISERS``."""
    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""
    version: ClassVar[int] = 1
    """Of the saved weights; raised when old ones no longer fit."""
    needs_context: ClassVar[bool] = False
    """Whether `update` must be shown the learners' input."""
    prunes: ClassVar[bool] = False
    """Whether a step of minus a parameter removes it: whatever the rounding and learning rate."""

    size: int | None = None
    """How many coordinates the rule is made for; None if it goes on any network."""
    whole: bool = False
    """Whether a coordinate's step depends on the others, so that all must come at once."""

    options: dict[str, Any]
    """What the rule was made with, for its file."""

    def __new__(cls, **given: Any) -> Self:
        """Note what the rule is made with, before it is made."""
        rule = super().__new__(cls)
        known = inspect.signature(cls.__init__).parameters.values()
        defaults = {p.name: p.default for p in known if p.default is not p.empty}
        rule.options = {k: v for k, v in (defaults | given).items() if k != "generator"}
        for name, default in defaults.items():
            if isinstance(default, float):
                _check_number(cls, name, rule.options[name], default)
        return rule

    def init(self, params: Tensor) -> State:
        """The state before the first step.

        Shape:
            params ``(learners, coordinates)``.
        """
        return State()

    def look(self, context: Tensor | None, state: State) -> Any:
        """What the context says to all coordinates.

        `update` takes it in the context's place, so that it is made once for many blocks.
        """
        return context

    @abstractmethod
    def update(
        self,
        grads: Tensor,
        state: State,
        params: Tensor,
        *,
        context: Any = None,
        where: slice = slice(None),
    ) -> tuple[Tensor, State]:
        """The steps to add to the parameters, and the next state.

        Args:
            grads: gradients of the learners' losses.
            state: of these coordinates.
            params: the coordinates' values.
            context: what the learners were shown, if `needs_context`, or what `look` made of it.
            where: which of the network's coordinates these are, if not all.

        Shape:
            grads, params and the steps ``(learners, coordinates)``; context ``(learners, batch,
            features)``.
        """

    def __call__(self, params: Iterable[Any], *, lr: float = 1.0) -> Learned:
        """An optimiser with this rule, for a network's parameters or parameter groups.

        Args:
            params: as for any ``torch.optim.Optimizer``.
            lr: multiplies every step; 1 is what the rule was trained with.
        """
        from attractor.optimisers.drop_in import Learned

        return Learned(params, self, lr=lr)

    @classmethod
    def pretrained(cls, name: str = "mlp") -> Self:
        """The rule with weights that come with the package.

        Args:
            name: which weights; ``attractor meta card`` lists them.
        """
        from attractor.optimisers.files import load_pretrained

        rule = load_pretrained(cls.key, name)
        assert isinstance(rule, cls)
        return rule


def _check_number(kind: type[Rule], name: str, value: Any, default: float) -> None:
    """Refuse what is no number, not finite, or a p that is not above 0 (see `preprocess`)."""
    number = isinstance(value, (int, float)) and math.isfinite(value)
    if not number or (name == "p" and value <= 0):
        limit = " above 0" if name == "p" else ""
        raise InputError(
            f"{kind.__name__} expects {name} to be a finite number{limit}, but got {value!r}. Try "
            f"{name}={default:g}."
        )


def needs_size(kind: type[Rule]) -> bool:
    """Whether a rule must be told how many parameters its network has.

    Example:
        >>> from attractor.optimisers import DMSGD, MetaSGD
        >>> needs_size(MetaSGD), needs_size(DMSGD)
        (True, False)
    """
    size = inspect.signature(kind.__init__).parameters.get("size")
    return size is not None and size.default is inspect.Parameter.empty


def other_size(rule: Rule, given: int) -> InputError:
    """The error of a rule on a network of another size than it was made for."""
    return InputError(
        f"{type(rule).__name__} expects the network of {rule.size} parameters that it was made "
        f"for, but got {given}. Make one with size={given} and meta-train it, or use a rule that "
        "goes on any network, such as LSTMOptimiser."
    )


def count(parameters: Iterable[Tensor]) -> int:
    """How many coordinates a network has."""
    return sum(p.numel() for p in parameters)


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Parameters of one learner as a row of coordinates ``(1, coordinates)``."""
    return torch.cat([t.reshape(-1) for t in tensors])[None]
