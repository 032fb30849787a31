"""The contract of a learned optimiser: a rule with weights of its own, and two pure functions."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from torch import Tensor, nn

from attractor.errors import InputError, shortened
from attractor.optimisers.state import State
from attractor.optimisers.view import View

if TYPE_CHECKING:
    from attractor.optimisers.learned import Learned


Update = tuple[Tensor, State]
"""The steps to add to the parameters, and the next state."""


class Numbers(NamedTuple):
    """What the kernel of a rule knows of its weights: see ``native/optimisers/rules.hpp``."""

    values: list[float]
    rates: Tensor | None = None
    """One for each coordinate of the network."""

    each: tuple[str, ...] = ()
    """Names of what it keeps of a coordinate."""

    shared: tuple[str, ...] = ()
    """Names of what it keeps of a tensor, of which the first counts updates."""


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
    """Its name in ``OPTIMISERS``, in files and in the states of optimisers; each rule has one."""
    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""
    version: ClassVar[int] = 1
    """Of the saved weights; raised when old ones no longer fit."""
    needs_context: ClassVar[bool] = False
    """Whether `update` must be shown the learners' input."""
    needs_loss: ClassVar[bool] = False
    """Whether `update` is told the learners' losses, where a closure or a trainer knows them."""
    silent: ClassVar[bool] = False
    """Whether it moves nothing before it is meta-trained."""
    prunes: ClassVar[bool] = False
    """Whether a step of minus a parameter removes it: whatever the rounding and learning rate."""

    averages: ClassVar[bool] = False
    """Whether it keeps an average of where it has been, at which a network is to be judged; it then
    heeds the rate and the decay of its view itself."""

    tensorwise: ClassVar[bool] = False
    """Whether a coordinate's step depends on the others of its tensor, so that they must come
    together; what it shares is then ``(learners, tensors, ...)``, of each tensor by itself."""

    horizon: int | None = None
    """How many updates a training has, for a rule that must be told."""
    size: int | None = None
    """How many coordinates the rule is made for; None if it goes on any network."""
    whole: bool = False
    """Whether a coordinate's step depends on the others, so that all must come at once."""

    options: dict[str, Any]
    """What the rule was made with, for its file."""

    def __init_subclass__(cls, **given: Any) -> None:
        """Refuse a rule without a key where it is written, not once its weights are to be saved."""
        super().__init_subclass__(**given)
        whole = not getattr(cls.update, "__isabstractmethod__", False)
        key = getattr(cls, "key", None)
        if whole and not (isinstance(key, str) and key):
            told = "none" if key is None else shortened(key)
            raise InputError(
                f"expected the rule {cls.__name__} to have a key, the name that its files and the "
                f"states of its optimisers go by, but it has {told}. Write such as "
                f'key = "{cls.__name__.lower()}" in the class.'
            )

    def __new__(cls, *unnamed: Any, **given: Any) -> Self:
        """Note what the rule is made with, before it is made."""
        if unnamed:
            raise InputError(
                f"expected options of {cls.__name__} by name, for it makes an update rule and not "
                f"yet an optimiser, but got {shortened(unnamed[0], 60)}. Try "
                f"{cls.__name__}.pretrained()(model.parameters())."
            )
        rule = super().__new__(cls)
        known = inspect.signature(cls.__init__).parameters.values()
        defaults = {p.name: p.default for p in known if p.default is not p.empty}
        rule.options = {k: v for k, v in (defaults | given).items() if k != "generator"}
        for name, default in defaults.items():
            if isinstance(default, float):
                _check_number(cls, name, rule.options[name], default)
        return rule

    def init(self, params: Tensor, view: View) -> State:
        """The state before the first step.

        Args:
            params: the coordinates' values.
            view: of which tensors they are.

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
    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        """The steps to add to the parameters, and the next state.

        Args:
            grads: gradients of the learners' losses.
            state: of these coordinates.
            params: the coordinates' values.
            view: of which tensors they are, and what the learners were shown, if `needs_context`.

        Shape:
            grads, params and the steps ``(learners, coordinates)``; the view's context
            ``(learners, batch, features)``.
        """

    def settled(self, params: Tensor, state: State, view: View) -> Tensor:
        """Where a network is to be judged: at its parameters, or at the average of a rule's.

        Shape:
            params and the result ``(learners, coordinates)``.
        """
        return params

    def numbers(self) -> Numbers | None:
        """Its weights for a kernel that updates all parameters in one pass; None if it has none."""
        return None

    @property
    def streams(self) -> bool:
        """Whether a kernel takes it over any number of coordinates, block by block."""
        return False

    @property
    def decay(self) -> float:
        """The weight decay that a user gets without asking."""
        return 0.0

    def __call__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        *,
        weight_decay: float | None = None,
        maximize: bool = False,
        **others: Any,
    ) -> Learned:
        """An optimiser with this rule, for a network's parameters or parameter groups.

        Args:
            params: as for any ``torch.optim.Optimizer``.
            lr: multiplies every step; 1 is what the rule was trained with.
            weight_decay: as in ``torch.optim.Adam``: this share of a parameter is added to its
                gradient. `Anytime` and `Pacer` take it as ``torch.optim.AdamW`` does, in the place
                of the decay that they have learnt, which None leaves as it is.
            maximize: go up the gradient.
            others: of torch's options, such as ``foreach``: refused unless None or False.
        """
        from attractor.optimisers.learned import Learned

        return Learned(params, self, lr, weight_decay=weight_decay, maximize=maximize, **others)

    @classmethod
    def pretrained(cls, name: str | None = None) -> Self:
        """The rule with weights that come with the package.

        Args:
            name: which weights, of those that ``attractor meta card`` lists; None if there is but
                one set.
        """
        from attractor.optimisers.files import load_pretrained

        rule = load_pretrained(cls.key, name)
        assert isinstance(rule, cls)
        return rule


F = TypeVar("F", bound=Callable[..., None])


def takes_options_of(kind: type[Rule], *, but: str = "") -> Callable[[F], F]:
    """Give an ``__init__`` the keywords of another rule, which its ``**options`` pass on.

    Args:
        kind: the other rule.
        but: an option of it that is decided already.

    Example:
        >>> from attractor.optimisers import DMSGD, M2SGD
        >>> {*inspect.signature(M2SGD).parameters} - {*inspect.signature(DMSGD).parameters}
        {'threshold'}
    """

    def change(init: F) -> F:
        own = [
            p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        known = {p.name for p in own} | {but}
        theirs = [p for p in inspect.signature(kind).parameters.values() if p.name not in known]
        signature = inspect.Signature([*own, *theirs])
        init.__signature__ = signature  # type: ignore[attr-defined]
        init.options_of = kind  # type: ignore[attr-defined]  # where they are documented
        return init

    return change


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
