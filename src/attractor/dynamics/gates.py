"""What the gates of a recurrent network do along a sequence, by their names."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from attractor import cells
from attractor.cells import Cell
from attractor.dynamics.systems import as_layer, part_names, walk
from attractor.errors import InputError

ACTIVATIONS: dict[Callable[..., Any], str] = {
    torch.sigmoid: "sigmoid",
    torch.tanh: "tanh",
    torch.sin: "sin",
    Tensor.sigmoid: "sigmoid",
    Tensor.tanh: "tanh",
}

_ihc_lstm = (("g",), ("f", "i", "o"), ())
NAMES: dict[type, tuple[tuple[str, ...], ...]] = {
    cells.DecayNetCell: (("f",), ("i",), ("a",), ("o",), ()),
    cells.FastGRNNCell: (("f",), (), (), ("a",)),
    cells.GORUCell: (("r", "z"),),
    cells.GRUCell: (("r", "z"), ("a",)),
    cells.IHCGRUCell: (("g",), ("i", "r")),
    cells.IHCLSTMCell: _ihc_lstm,
    cells.IRCFastGRNNCell: ((), ("f",)),
    cells.IRCGRUCell: ((), ("i", "r")),
    cells.IRCLSTMCell: ((), ("f", "i", "o"), ()),
    cells.IRCSRUCell: ((), (), ("f", "p")),
    cells.IRCTLSTMCell: ((), (), ("f", "o")),
    cells.JANETCell: (("j",), ("a",), ("f",)),
    cells.LSTMCell: (("f",), ("i",), ("a",), ("o",), ()),
    cells.SRUCell: (("f", "p"),),
    cells.TARDISCell: ((), ("alpha", "beta"), ("f",), ("i",), ("a",), ("o",), (), ()),
    cells.TLSTMCell: (("f",), ("o",)),
}
"""What the activations within a step are called, in the order in which a cell computes them.

Several names are for one activation of several gates at once; none is for one that is no gate.
Cells of other kinds have their activations numbered.
"""


@dataclass(frozen=True, slots=True)
class Gates:
    """Gates and states along a sequence, each ``(time, batch, units)``.

    `before` holds the states before each step, `states` those after. Candidates, such as ``a``,
    are among the gates: they are activations too.
    """

    gates: dict[str, Tensor]
    states: dict[str, Tensor]
    before: dict[str, Tensor]

    def gate(self, name: str) -> Tensor:
        """One gate by its name."""
        if name not in self.gates:
            known = ", ".join(self.gates) or "none, for this cell has no gates"
            raise InputError(f"expected the name of a gate ({known}), but got {name!r}.")
        return self.gates[name]

    def saturation(self, name: str, margin: float = 0.1) -> tuple[float, float]:
        """How often a gate is within `margin` of its lowest and of its highest value.

        A candidate, which may be negative, counts from -1, a gate from 0.
        """
        value = self.gate(name)
        lowest = -1.0 if bool((value < 0).any()) else 0.0
        return (
            float((value <= lowest + margin).double().mean()),
            float((value >= 1 - margin).double().mean()),
        )

    def time_scale(self, name: str = "f") -> Tensor:
        r"""Steps over which a unit remembers, ``(units,)``: :math:`-1 / \overline{\log f}`.

        After so many steps of such gates a value has shrunk to 1/e.
        """
        f = self.gate(name).clamp(1e-12, 1 - 1e-12)
        return -1 / f.log().flatten(0, 1).mean(0)


@torch.no_grad()
def gates(network: nn.Module, x: Tensor) -> Gates:
    """Run a network over sequences and keep every gate by its name.

    Args:
        network: a cell, a layer, or torch's own; it is copied, never changed. Layers beyond the
            first have their number behind each name.
        x: ``(time, batch, features)``.

    Example:
        >>> found = gates(nn.LSTM(3, 5), torch.zeros(7, 2, 3))
        >>> sorted(found.gates), found.gate("f").shape
        (['a', 'f', 'i', 'o'], torch.Size([7, 2, 5]))

    Departs from the paper: the GRU's ``z`` lets the new in, as `attractor.GRU` writes it; torch's
    ``nn.GRU`` has one minus that.
    """
    layer = as_layer(network)
    if layer is None or x.dim() != 3:
        raise InputError(
            "expected a recurrent network and sequences (time, batch, features), but got "
            f"{type(network).__name__} and {tuple(x.shape)}. Try nn.LSTM(1, 8) and x[:, None]."
        )
    x = x.detach().to(next(layer.parameters()))
    states: list[Any] = layer.starts(x.shape[1])
    names = part_names(layer)
    recorded: dict[str, list[Tensor]] = {}
    before: dict[str, list[Tensor]] = {name: [] for name in names}
    after: dict[str, list[Tensor]] = {name: [] for name in names}
    with _Recorder(layer, recorded):
        _, course = walk(layer, x, states)
    for old, new in pairwise([states, *course]):
        _keep(before, old)
        _keep(after, new)
    return Gates(_stacked(recorded), _stacked(after), _stacked(before))


def _keep(into: dict[str, list[Tensor]], states: list[Any]) -> None:
    for name, leaf in zip(into, pytree.tree_leaves(states), strict=True):
        into[name].append(leaf)


def _stacked(values: dict[str, list[Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack(rows) for name, rows in values.items()}


class _Recorder(TorchFunctionMode):
    """Listens to the activations within the steps of a layer's cells."""

    def __init__(self, layer: nn.Module, into: dict[str, list[Tensor]]) -> None:
        super().__init__()
        self.into = into
        self.cells = [_within(cell) for cell in layer.cells]  # type: ignore[union-attr]
        self.listening: Cell[Any, Any] | None = None
        self.calls = 0
        for index, cell in enumerate(self.cells):
            self._listen(cell, "" if len(self.cells) == 1 else str(index + 1))

    def _listen(self, cell: Any, suffix: str) -> None:
        """Know when the cell's step begins and ends; the cell is a copy of ours."""
        step = cell.step

        def heard(*given: Any, **options: Any) -> Any:
            self.listening, self.suffix, self.calls = cell, suffix, 0
            try:
                return step(*given, **options)
            finally:
                self.listening = None

        cell.step = heard

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.listening is not None and func in ACTIVATIONS:
            self._record(type(self.listening), ACTIVATIONS[func], result)
        return result

    def _record(self, kind: type, activation: str, value: Tensor) -> None:
        known = NAMES.get(kind)
        place, self.calls = self.calls, self.calls + 1
        names = (f"{activation}{place + 1}",) if known is None else known[place]
        if names:
            for name, part in zip(names, value.chunk(len(names), dim=-1), strict=True):
                self.into.setdefault(name + self.suffix, []).append(part)


def _within(cell: Any) -> Any:
    """The cell inside its wrappers."""
    while isinstance(getattr(cell, "cell", None), Cell):
        cell = cell.cell
    return cell
