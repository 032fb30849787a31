"""The contract of a recurrent cell: an initial state, what can be prepared, one step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypedDict, TypeVar

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from attractor.checks import plain
from attractor.errors import InputError

State = Tensor | tuple[Tensor, ...]
"""What a cell remembers: a tensor, or a NamedTuple of tensors, batch first."""

P = TypeVar("P")
S = TypeVar("S", bound=State)


class Placement(TypedDict):
    """Where parameters are made, and in which type."""

    device: torch.device | str | None
    dtype: torch.dtype | None


def map_state(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply `function` to every tensor of one state (or prepared input), or of several alike.

    What ``pytree.tree_map`` does, but for the circle of references that each call of that leaves.
    """
    first = trees[0]
    if first is None or isinstance(first, Tensor):
        return function(*trees)
    if not isinstance(first, tuple):
        return pytree.tree_map(function, *trees)
    parts = [map_state(function, *parts) for parts in zip(*trees, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def refill(tree: Any, tensors: Iterable[Tensor]) -> Any:
    """A state like another, or like one whose tensors are all ``None``, with these tensors."""
    rest = iter(tensors)
    return map_state(lambda _: next(rest), tree)


class Shared(NamedTuple):
    """What all steps of a sequence share, within a prepared input: it has no time of its own."""

    value: Any


def is_shared(tree: Any) -> bool:
    """Whether this part of a prepared input is the same at all steps."""
    return isinstance(tree, Shared)


def map_steps(function: Callable[..., Any], prepared: Any) -> Any:
    """Apply `function` to every tensor ``(time, batch, ...)`` of a prepared input.

    What is `Shared` stays as it is: ``map_steps(lambda p: p[:3], prepared)`` cuts time.
    """
    return pytree.tree_map(
        lambda part: part if is_shared(part) else function(part), prepared, is_leaf=is_shared
    )


class Cell(nn.Module, ABC, Generic[P, S]):
    """One time step of a recurrent network.

    A cell says how to start (`initial_state`), what of the input can be computed for all time
    steps at once (`prepare`), and how to go one step (`step`). `attractor.Recurrent` does the
    rest: time, layers, directions, packed sequences.

    `P` is the type of the prepared input, a tensor or a NamedTuple of tensors, each of shape
    ``(time, batch, ...)`` unless it is `Shared` by all steps; `S` is the type of the state, each
    tensor of shape ``(batch, ...)``.
    Whatever is random is drawn in `prepare`, so that `step` is a pure function.
    """

    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""

    state_name: str = "h"
    """What the paper calls a state of one tensor."""

    fixed_state: tuple[str, ...] = ()
    """Parts of the state that count or record, and so start alike even where a start is learned."""

    recurrent_weights: tuple[str, ...] = ()
    """Names of the matrices that act on the state, which `weight_drop` drops."""

    input_size: int
    hidden_size: int
    chunk: int = 0
    """Time steps that are trained as one compiled function; see `compile_steps`."""

    made_of: list[torch.Size] | None = None
    """Sizes of its parameters when it was made; kernels, which do not check, read no others."""

    sees_whole_sequence: bool = False
    """Whether `prepare` makes something else of a sequence than of its pieces."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = positive(type(self), "input_size", input_size)
        self.hidden_size = positive(type(self), "hidden_size", hidden_size)

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return self.hidden_size

    @abstractmethod
    def initial_state(self, batch_size: int) -> S:
        """The state before the first step, on the parameters' device and in their dtype."""

    def state_names(self) -> list[str]:
        """What the tensors of the state are called."""
        state: Any = self.initial_state(1)
        return [self.state_name] if isinstance(state, Tensor) else list(state._fields)

    def resume(self, state: S) -> S:
        """The state that a caller gives to start from; raises if the cell cannot start there."""
        return state

    @abstractmethod
    def prepare(self, x: Tensor) -> P:
        """All that does not depend on the state, for x ``(time, batch, input_size)`` at once.

        What depends on nothing but the parameters, and costs more than a step, is computed here
        once and marked as `Shared`.
        """

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> P:
        """As `prepare`, for sequences that end after `lengths` ``(batch,)`` steps."""
        return self.prepare(x)

    def penalty(self) -> Tensor | None:
        """What training adds to the loss to keep the weights in form; ``None`` for nothing."""
        return None

    @abstractmethod
    def step(self, prepared: P, state: S) -> tuple[Tensor, S]:
        """From one time slice of the prepared input and a state to the output and next state."""

    def forward(self, x: Tensor, state: S | None = None) -> tuple[Tensor, S]:
        """One step on x ``(batch, input_size)``, as with ``nn.LSTMCell``.

        Without a state, from the initial one.
        """
        check_input(self, self.input_size, x)
        if state is None:
            if x.dim() != 2:
                raise InputError(
                    f"{type(self).__name__} expects x of shape (batch, {self.input_size}) where no "
                    f"state is given, but got {tuple(x.shape)}. Try x[None] for one sequence."
                )
            state = self.initial_state(x.shape[0])
        prepared: P = map_steps(lambda p: p[0], self.prepare(x[None]))
        return self.step(prepared, state)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


def parameter_sizes(cell: nn.Module) -> list[torch.Size]:
    """The size of each parameter, in a quarter of the time that ``parameters`` takes.

    Example:
        >>> parameter_sizes(nn.Linear(3, 2))
        [torch.Size([2, 3]), torch.Size([2])]
    """
    every = (p for part in cell.modules() for p in part._parameters.values())
    return [p.shape for p in every if p is not None]


def penalty(module: nn.Module) -> Tensor | None:
    """The sum of the penalties of all cells in a module, or ``None`` if no cell has any.

    `attractor.training` adds it to the loss of the task; in a loop of your own, do so too.

    Example:
        >>> from attractor.cells import RNNCell
        >>> cell = RNNCell(3, 4, orthogonality=0.5)
        >>> with torch.no_grad():
        ...     _ = cell.weight_hh.copy_(2 * torch.eye(4))
        >>> penalty(cell).item(), penalty(RNNCell(3, 4))
        (18.0, None)
    """
    found = [part.penalty() for part in module.modules() if isinstance(part, Cell)]
    given = [one for one in found if one is not None]
    return torch.stack(given).sum() if given else None


def penalised(loss: Tensor, module: nn.Module) -> Tensor:
    """A loss with the `penalty` of a module added, if it has any."""
    extra = penalty(module)
    return loss if extra is None else loss + extra


def positive(owner: type, name: str, value: int) -> int:
    """A size, once it is known to be one."""
    size: int = plain(value)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(
            f"{owner.__name__} expects {name} to be a whole number of at least 1, but got "
            f"{size!r}. Try {name}=1 or more."
        )
    return size


def check_input(owner: nn.Module, input_size: int, x: Tensor) -> None:
    """Check the features of x, and that its type is that of the parameters."""
    name = type(owner).__name__
    if x.shape[-1:] != (input_size,):
        raise InputError(
            f"{name} expects input_size={input_size}, but x has shape {tuple(x.shape)}, "
            f"whose last dimension is {x.shape[-1] if x.dim() else 'missing'}. "
            "If your data is (features, time), transpose it first."
        )
    check_type(owner, x)


def check_type(owner: nn.Module, x: Tensor) -> None:
    """Check that the type of x is that of the parameters."""
    name = type(owner).__name__
    if not x.is_floating_point():
        raise InputError(
            f"{name} expects x of a floating-point type, but got {x.dtype}. "
            "Try x.float(), or one-hot or embedded symbols."
        )
    parameter = next(owner.parameters(), x)
    if x.dtype != parameter.dtype and not autocasts(x.device.type):
        raise InputError(
            f"{name} expects x of the type of its parameters, {parameter.dtype}, but got "
            f"{x.dtype}. Try x.to({parameter.dtype}), or .to({x.dtype}) on the module."
        )


def autocasts(device: str) -> bool:
    """Whether autocast is on, under which types may differ."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def zeros_like_parameters(cell: nn.Module, *shape: int) -> Tensor:
    """Zeros where the cell's parameters are, in their dtype: the usual initial state."""
    parameter = next(cell.parameters())
    return torch.zeros(shape, device=parameter.device, dtype=parameter.dtype)
