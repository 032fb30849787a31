"""How the cells with an external memory hand over their weights and noise to their kernels."""

from collections.abc import Sequence
from copy import copy
from inspect import Parameter, signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from attractor.cells.base import Cell
from attractor.cells.dntm import DNTMCell
from attractor.cells.kernels.plan import Form, Plan, Rows
from attractor.cells.memory import gumbel, logistic
from attractor.cells.memory.controllers import CONTROLLERS, Controller
from attractor.cells.ntm import NTMCell
from attractor.cells.tardis import TARDISCell

KINDS = list(CONTROLLERS.values())  # in the order of the kernels

COMMON = {"bias", "generator", "device", "dtype"}
CONTROLLED = COMMON | {"cells", "controller", "write_address"}
KNOWN: dict[type[Cell[Any, Any]], set[str]] = {
    DNTMCell: CONTROLLED | {"address_size", "content_size", "discrete", "lru", "nop"},
    NTMCell: CONTROLLED | {"cell_size", "read_heads", "write_heads", "shift_width"},
    TARDISCell: COMMON
    | {"cells", "address_size", "content_size", "attention_size", "estimator", "reset_gates"},
}
"""The options that kernels have; a cell with another one that is in use takes the loop."""


OTHERS = {
    kind: {
        p.name: p.default
        for p in signature(kind).parameters.values()
        if p.kind is Parameter.KEYWORD_ONLY and p.name not in known
    }
    for kind, known in KNOWN.items()
}
"""The options that kernels do not have, with their defaults."""


def understood(cell: Cell[Any, Any]) -> bool:
    """Whether all that a cell was asked to do is in `KNOWN`."""
    if cell.training and torch.compiler.is_compiling():
        return False  # noise that is drawn for a kernel cannot be handed over within a graph
    others = OTHERS[type(cell)]
    return all(getattr(cell, name, None) == default for name, default in others.items())


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


def tardis(cell: TARDISCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    if cell.without_past or not understood(cell):
        return None
    n, places, looks = cell.hidden_size, cell.cells, cell.attention_size
    a, q, resets = cell.address_size, cell.content_size, 2 * cell.reset_gates
    on_address, on_content = torch.split(cell.attention_mh, [a, q], dim=-1)
    seen = F.linear(cell.address, on_address)  # what the attention makes of the addresses
    noise, loop = None, None
    if cell.training:
        shape = (rows.steps, rows.batch)
        choice = gumbel(*shape, places, like=x)
        gates = logistic(*shape, resets, like=x) if resets else ()
        drawn = torch.cat([choice, gates], -1) if isinstance(gates, Tensor) else choice
        noise, loop = as_rows(drawn, lengths), with_noise(cell, gumbel=choice, logistic=gates)
    tau = cell.inverse_temperature_hh if cell.training else None
    tau_shift = None if tau is None else cell.inverse_temperature_bias

    def parts(weight: Tensor | None) -> list[Tensor | None]:
        """The rows of i, f, o and the reset gates, and those of the candidate."""
        if weight is None:
            return [None, None]
        i, f, candidate, o, gates = torch.split(weight, [n, n, n, n, resets])
        return [torch.cat([i, f, o, gates]), candidate]

    def read(attention: Tensor | None, weight: Tensor | None) -> Tensor | None:
        gates, candidate = parts(weight)
        return stacked(candidate, attention, gates)

    weights = (
        read(cell.attention_ih, cell.weight_ih),
        read(cell.attention_bias, cell.bias),
        stacked(cell.attention_hh, *parts(cell.weight_hh), tau),
        *parts(cell.weight_rh),
        cell.attention_uh,
        cell.content_hh,
        on_content,
        seen.t(),
        cell.output_hh,
        cell.output_rh,
        cell.attention_out.flatten(),
        cell.address,
        seen.detach(),
        cell.content_bias,
        cell.output_bias,
        tau_shift,
    )
    states = (n, n, places * q, places, places, a + q, 1, 1, places * looks)
    numbers = (float(cell.reset_gates), float(tau is not None))
    form = Form("tardis", n, states, (n, places, a, q, looks), numbers)

    def attended(states: Sequence[Tensor]) -> tuple[Tensor]:
        """What the attention makes of the memory."""
        return ((seen + F.linear(states[2], on_content)).flatten(1),)

    return Plan(form, x, weights, noise=noise, loop=loop, own=attended)


def as_rows(drawn: Tensor, lengths: Tensor | None) -> Tensor:
    """Noise ``(time, batch, ...)`` as rows."""
    return drawn.flatten(0, 1) if lengths is None else pack_padded_sequence(drawn, lengths).data


def with_noise(cell: Cell[Any, Any], **drawn: Tensor | tuple[()]) -> Cell[Any, Any]:
    """A cell whose loop has the noise that was drawn for the kernel."""
    again = copy(cell)

    def prepare(x: Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):  # what is drawn here is not used
            return type(cell).prepare(cell, x)._replace(**drawn)

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
