"""How the cells with an external memory hand over their weights and noise to their kernels."""

from copy import copy
from functools import cache
from inspect import Parameter, signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from attractor.cells.base import Cell
from attractor.cells.dntm import DNTMCell
from attractor.cells.kernels.plan import Form, Plan, Rows
from attractor.cells.memory import gumbel
from attractor.cells.memory.controllers import CONTROLLERS, Controller
from attractor.cells.ntm import NTMCell

KINDS = list(CONTROLLERS.values())  # in the order of the kernels

COMMON = {"bias", "generator", "device", "dtype"}
CONTROLLED = COMMON | {"cells", "controller", "write_address"}
KNOWN: dict[type[Cell[Any, Any]], set[str]] = {
    DNTMCell: CONTROLLED | {"address_size", "content_size", "discrete", "lru", "nop"},
    NTMCell: CONTROLLED | {"cell_size", "read_heads", "write_heads", "shift_width"},
}
"""The options that kernels have; a cell with another one that is in use takes the loop."""


def understood(cell: Cell[Any, Any]) -> bool:
    """Whether all that a cell was asked to do is in `KNOWN`."""
    others = _others(type(cell))
    return all(getattr(cell, name, None) == default for name, default in others.items())


@cache
def _others(kind: type[Cell[Any, Any]]) -> dict[str, Any]:
    """The options of a cell that its kernel does not know, with their defaults."""
    given = signature(kind).parameters.values()
    return {
        p.name: p.default
        for p in given
        if p.kind is Parameter.KEYWORD_ONLY and p.name not in KNOWN[kind]
    }


def ntm(cell: NTMCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    if not understood(cell):
        return None
    n, heads, q = cell.hidden_size, cell.write_heads, cell.cell_size
    controller, kind, again = controlled(cell.controller)
    aims = sum(cell._address_sizes)

    def written(weight: Tensor | None) -> list[Tensor | None]:
        """What write heads address by, of all heads, and what they erase and add."""
        if weight is None:
            return [None, None]
        parts = torch.split(torch.unflatten(weight, 0, (heads, -1)), [aims, 2 * q], dim=1)
        return [part.flatten(0, 1) for part in parts]

    read = stacked(controller.weight_ih, cell.read_ih, *written(cell.write_ih))
    shift = stacked(controller.bias, cell.read_bias, *written(cell.write_bias))
    states = (n, n, cell.cells * q, cell.cells * cell.read_heads, cell.cells * heads)
    sizes = (n, cell.cells, q, cell.read_heads, heads, cell.shift_width)
    form = Form("ntm", n, states, sizes, (kind, float(cell.write_address == "before")))
    on_h = (*again, controller.weight_rh, cell.read_hh, *written(cell.write_hh))
    return Plan(form, x, (read, shift, *on_h), turned=(2,))


def dntm(cell: DNTMCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    if not understood(cell):
        return None
    n, places, a, q = cell.hidden_size, cell.cells, cell.address_size, cell.content_size
    controller, kind, again = controlled(cell.controller)
    aims = sum(cell._address_sizes)
    read = stacked(controller.weight_ih, cell.read_ih, cell.write_ih, cell.content_ih)
    shift = stacked(controller.bias, cell.read_bias, cell.write_bias)
    shift = None if shift is None else F.pad(shift, (0, q))
    noise, loop = None, None
    if cell.discrete and cell.training:
        drawn = gumbel(rows.steps, rows.batch, 2, places, like=x)
        noise, loop = as_rows(drawn.flatten(2), lengths), with_noise(cell, noise=drawn)
    flags = (cell.write_address == "before", cell.lru, cell.nop, cell.discrete)
    states = (n, n, places * q, places, places, 1)
    form = Form("dntm", n, states, (n, places, a, q), (kind, *map(float, flags)))
    on_h = (*again, controller.weight_rh, cell.read_hh, cell.write_hh[:aims], cell.write_hh[aims:])
    weights = (read, shift, *on_h, cell.content_hh, cell.address.t())
    return Plan(form, x, weights, noise=noise, loop=loop, turned=(2,))


def as_rows(drawn: Tensor, lengths: Tensor | None) -> Tensor:
    """Noise ``(time, batch, ...)`` as rows."""
    return drawn.flatten(0, 1) if lengths is None else pack_padded_sequence(drawn, lengths).data


def with_noise(cell: Cell[Any, Any], **drawn: Tensor | tuple[()]) -> Cell[Any, Any]:
    """A cell whose loop has the noise that was drawn for the kernel."""
    again = copy(cell)

    def prepare(x: Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):  # what is drawn here is not used
            return type(cell).prepare(again, x)._replace(**drawn)

    vars(again)["prepare"] = prepare
    return again


def controlled(controller: Controller) -> tuple[Controller, float, tuple[Tensor | None, ...]]:
    """A controller, its kind, and its matrices on h: of the gates, and of a GRU's candidate."""
    kind, weight = KINDS.index(type(controller)), controller.weight_hh
    if kind == KINDS.index(CONTROLLERS["gru"]):
        assert weight is not None
        n = 2 * weight.shape[1]
        return controller, float(kind), (weight[:n], weight[n:])
    return controller, float(kind), (weight, None)


def stacked(*weights: Tensor | None) -> Tensor | None:
    """Matrices on one input as one, or nothing of nothing."""
    given = [weight for weight in weights if weight is not None]
    return torch.cat(given) if given else None
