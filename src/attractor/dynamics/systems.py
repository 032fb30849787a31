"""Any network or function as a step from a flat state to the next, in double precision."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap
from torch.utils import _pytree as pytree

from attractor.cells import Cell, Recurrent, copy_from_torch
from attractor.cells.base import check_input, map_steps
from attractor.dynamics.orbits import as_state
from attractor.errors import InputError

Steppable = Callable[..., Any]
"""A function from a state to the next, a cell, a recurrent layer, or torch's own RNN, GRU, LSTM."""

TORCH_LAYERS: dict[type[nn.Module], str] = {nn.RNN: "rnn", nn.GRU: "gru", nn.LSTM: "lstm"}
TORCH_CELLS: dict[type[nn.Module], type[nn.RNNBase]] = {
    nn.RNNCell: nn.RNN,
    nn.GRUCell: nn.GRU,
    nn.LSTMCell: nn.LSTM,
}


@dataclass(frozen=True, slots=True)
class System:
    """A step between flat states ``(size,)``, pure and in one type, with the start it was made for.

    `many` takes states ``(batch, size)``. `parts` names the pieces of the flat state with their
    sizes, as a state of a cell is ``(h, c)``.
    """

    step: Callable[[Tensor], Tensor]
    start: Tensor
    parts: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Numbers in a state."""
        return self.start.numel()

    def many(self, states: Tensor) -> Tensor:
        """One step of each row."""
        after: Tensor = vmap(self.step)(states)
        return after


def system(
    step: Steppable,
    *,
    input: Tensor | None = None,  # noqa: A002 - as nn.GRU names it
    x0: Any = None,
    size: int | None = None,
) -> System:
    """Make a `System` of a function or a module. What is given is copied, never changed.

    Args:
        step: a function from one state to the next, or any module; see `Steppable`. A module of
            another kind is called with the state, and with the input before it if one is given.
        input: what a recurrent network reads at every step, ``(features,)``; zero if not given.
        x0: a state, for a function of states of another shape than ``(size,)``.
        size: how many numbers a state has, where neither the module nor `x0` says it.

    Example:
        >>> one = system(nn.LSTM(3, 5))
        >>> one.size, one.parts
        (10, (('h', 5), ('c', 5)))
    """
    if isinstance(step, nn.Module):
        layer = as_layer(step)
        if layer is not None:
            return _checked(_recurrent(layer, input, x0))
        step = copy.deepcopy(step).double().requires_grad_(False)
        if x0 is not None:
            x0 = pytree.tree_map(lambda part: as_state(part).double(), x0)
        if input is not None:
            module, given = step, input.double()
            step = lambda state: module(given, state)  # noqa: E731
    elif not callable(step):
        raise InputError(
            f"expected a step function or a module, but got {type(step).__name__}. "
            "Try lambda x: 0.5 * x, or nn.GRU(1, 8)."
        )
    elif input is not None:
        raise InputError(
            "expected no input for a function of the state alone, but got one. "
            "Try lambda h: step(input, h)."
        )
    if x0 is None:
        if size is None:
            raise InputError(
                "expected x0 or size, because a function does not say what its states look like, "
                "but got neither. Try size=2, or x0=torch.zeros(2)."
            )
        x0 = torch.zeros(size, dtype=torch.float64)
    return _checked(_flat(step, pytree.tree_map(as_state, x0)))


def as_layer(module: nn.Module) -> Recurrent | None:
    """A copy of a recurrent module as a layer in double precision; ``None`` if it is none."""
    if isinstance(module, Recurrent):
        layer = copy.deepcopy(module)
    elif isinstance(module, Cell):
        held = copy.deepcopy(module)
        layer = Recurrent(lambda *sizes, **options: held, held.input_size, held.hidden_size)
    elif type(module) in TORCH_CELLS:
        return as_layer(_torch_layer(module))
    elif isinstance(module, nn.RNN | nn.GRU | nn.LSTM):
        options: dict[str, Any] = {"num_layers": module.num_layers, "bias": module.bias}
        between = module.dropout if module.num_layers > 1 else 0.0  # of which torch warned
        options |= {"dropout": between, "bidirectional": module.bidirectional}
        if isinstance(module, nn.GRU):
            options["reset"] = "after"
        if isinstance(module, nn.LSTM) and module.proj_size:
            options["proj_size"] = module.proj_size
        if isinstance(module, nn.RNN):
            options["nonlinearity"] = module.nonlinearity
        weight = next(module.parameters())
        layer = Recurrent(
            TORCH_LAYERS[type(module)],
            module.input_size,
            module.hidden_size,
            batch_first=module.batch_first,
            device=weight.device,
            dtype=weight.dtype,
            **options,
        )
        copy_from_torch(layer, module)
    else:
        return None
    if layer.bidirectional:
        raise InputError(
            "expected a network that reads forwards, because one that also reads backwards has no "
            "next state, but it is bidirectional. Try bidirectional=False."
        )
    return layer.train(module.training).double().requires_grad_(False)


def _torch_layer(cell: Any) -> nn.RNNBase:
    """One of torch's cells as its layer."""
    options = {"nonlinearity": cell.nonlinearity} if isinstance(cell, nn.RNNCell) else {}
    make: Callable[..., nn.RNNBase] = TORCH_CELLS[type(cell)]
    layer = make(cell.input_size, cell.hidden_size, bias=cell.bias, **options)
    layer.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    return layer.train(cell.training)


def walk(layer: Recurrent, x: Tensor, states: list[Any]) -> tuple[Tensor, list[list[Any]]]:
    """All cells of a layer over x ``(time, batch, features)``, and their states after each step.

    Cell by cell, so that a cell that must know the length of a sequence sees it whole.
    """
    courses = []
    for index, (cell, state) in enumerate(zip(layer.cells, states, strict=True)):
        assert isinstance(cell, Cell)
        if index and layer.dropout and layer.training:
            x = F.dropout(x, layer.dropout)
        prepared, outputs, course = cell.prepare(x), [], []
        for time in range(len(x)):
            output, state = cell.step(map_steps(_slice(time), prepared), state)
            outputs.append(output)
            course.append(state)
        x = torch.stack(outputs)
        courses.append(course)
    return x, [list(moment) for moment in zip(*courses, strict=True)]


def _slice(time: int) -> Callable[[Tensor], Tensor]:
    return lambda part: part[time]


def layer_step(layer: Recurrent, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
    """One step of all cells of a layer on x ``(batch, features)``, each with its own state."""
    after = []
    for index, (cell, state) in enumerate(zip(layer.cells, states, strict=True)):
        assert isinstance(cell, Cell)
        if index and layer.dropout and layer.training:
            x = F.dropout(x, layer.dropout)
        if cell.sees_whole_sequence:
            raise InputError(
                f"expected a cell that can be stepped, but {type(cell).__name__} must know the "
                "length of its sequence. Try length=100, the steps of the whole."
            )
        prepared = map_steps(_slice(0), cell.prepare(x[None]))
        x, state = cell.step(prepared, state)
        after.append(state)
    return x, after


def part_names(layer: Recurrent) -> list[str]:
    """What the tensors of the states of a layer's cells are called, in their order."""
    names: list[str] = []
    for index, cell in enumerate(layer.cells):
        assert isinstance(cell, Cell)
        state = cell.initial_state(1)
        own = list(getattr(state, "_fields", (cell.state_name,)))
        names += own if len(layer.cells) == 1 else [f"{name}{index + 1}" for name in own]
    return names


def _recurrent(layer: Recurrent, given: Tensor | None, x0: Any) -> System:
    weight = next(layer.parameters())
    x = torch.zeros(layer.input_size) if given is None else torch.as_tensor(given)
    x = x.detach().to(weight).reshape(-1)
    check_input(layer, layer.input_size, x)
    states = layer.starts(1)
    leaves, spec = pytree.tree_flatten(states)
    shapes = [leaf.shape for leaf in leaves]
    sizes = [leaf.numel() for leaf in leaves]
    parts = tuple(zip(part_names(layer), sizes, strict=True))

    def step(flat: Tensor) -> Tensor:
        pieces = [p.reshape(s) for p, s in zip(torch.split(flat, sizes), shapes, strict=True)]
        _, after = layer_step(layer, x[None], pytree.tree_unflatten(pieces, spec))
        return torch.cat([leaf.reshape(-1).to(flat) for leaf in pytree.tree_leaves(after)])

    start = torch.cat([leaf.reshape(-1).to(weight) for leaf in leaves])
    if x0 is not None:
        wanted = torch.cat([as_state(leaf).reshape(-1) for leaf in pytree.tree_leaves(x0)])
        if wanted.numel() != start.numel():
            raise InputError(
                f"expected x0 of {start.numel()} numbers ({dict(parts)}), but got "
                f"{wanted.numel()}. Try x0=None for the initial state."
            )
        start = wanted.to(start)
    return System(step, start, parts)


def _flat(step: Steppable, x0: Any) -> System:
    leaves, spec = pytree.tree_flatten(x0)
    shapes, sizes = [leaf.shape for leaf in leaves], [leaf.numel() for leaf in leaves]

    def flat_step(flat: Tensor) -> Tensor:
        pieces = [p.reshape(s) for p, s in zip(torch.split(flat, sizes), shapes, strict=True)]
        after, shape = pytree.tree_flatten(step(pytree.tree_unflatten(pieces, spec)))
        got = [tuple(getattr(leaf, "shape", ())) for leaf in after]
        if shape != spec or got != [tuple(s) for s in shapes]:
            raise InputError(
                "expected a step that keeps the shapes of its state, "
                f"{[tuple(s) for s in shapes]}, but it returned {got}. "
                "Try a step from a state to the next, or pass x0 in the right shape."
            )
        return torch.cat([leaf.reshape(-1) for leaf in after])

    parts = tuple((f"part {n + 1}" if len(sizes) > 1 else "x", s) for n, s in enumerate(sizes))
    return System(flat_step, torch.cat([leaf.reshape(-1) for leaf in leaves]), parts)


@torch.no_grad()
def _checked(made: System) -> System:
    """Refuse what does not step, or gives another state each time."""
    first, second = made.step(made.start), made.step(made.start)
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise InputError(
            "expected a step that gives the same state each time, but two calls on one state "
            "differ. Try model.eval(), which switches dropout and other noise off."
        )
    return made
