"""Which cells have a kernel, and how each hands over its weights: the only registration.

A plan is what the cell does, so a planner must read every parameter and option of its cell. It
returns ``None`` for an option that the kernel does not have.
"""

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from attractor.cells.base import Cell
from attractor.cells.clockwork import ClockworkCell
from attractor.cells.decay import DecayingCell
from attractor.cells.decaynet import DecayNetCell
from attractor.cells.decaynet_gru import DecayNetGRUCell
from attractor.cells.dntm import DNTMCell
from attractor.cells.eurnn import EURNNCell
from attractor.cells.fastgrnn import FastGRNNCell
from attractor.cells.full_urnn import FullURNNCell
from attractor.cells.gated import joined
from attractor.cells.goru import GORUCell
from attractor.cells.gru import GRUCell
from attractor.cells.ihc import HighwayCell, IHCGRUCell, IHCLSTMCell
from attractor.cells.irc import IRCFastGRNNCell, IRCGRUCell, IRCLSTMCell, ResidualCell
from attractor.cells.irc_diagonal import DiagonalConnection, IRCSRUCell, IRCTLSTMCell
from attractor.cells.janet import JANETCell
from attractor.cells.kernels.memory import as_rows, dntm, ntm, tardis
from attractor.cells.kernels.native import MEMORY_NORM, NORMS
from attractor.cells.kernels.plan import Form, Plan, Rows, uniform
from attractor.cells.kernels.rotation import turnable, turns
from attractor.cells.lstm import LSTMCell
from attractor.cells.lstm1997 import LSTM1997Cell
from attractor.cells.nru import NRUCell
from attractor.cells.ntm import NTMCell
from attractor.cells.rnn import RNNCell
from attractor.cells.sru import SRUCell
from attractor.cells.stat_ru import StatRUCell
from attractor.cells.tardis import TARDISCell
from attractor.cells.tlstm import TLSTMCell
from attractor.cells.unitary import UnitaryCell
from attractor.cells.urnn import URNNCell
from attractor.cells.wrap.noise import MaskedInput, RecurrentDropoutCell, ZoneoutCell
from attractor.cells.wrap.normalise import LayerNormCell, UnitNorm

Planner = Callable[[Any, Tensor, Rows, Tensor | None], Plan | None]
"""From a cell, its input as rows, and the lengths of its sequences, to a plan if it has one."""


def clockwork(cell: ClockworkCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    form = Form("clockwork", n, (n, n), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.matrix(), cell.period))


def decaynet(cell: DecayNetCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    form = Form("decaynet", n, (n, n, n), (n,))
    weights = (cell.weight_ih, joined(cell.biases()), cell.weight_hh)
    return Plan(form, x, weights, _rate(cell, x, rows, lengths))


def decaynet_gru(cell: DecayNetGRUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    gates, candidate = cell.weight_hh[: 2 * n], cell.weight_hh[2 * n :]
    form = Form("decaynet_gru", n, (n, n), (n,))
    weights = (cell.weight_ih, joined(cell.biases()), gates, candidate)
    return Plan(form, x, weights, _rate(cell, x, rows, lengths))


def _rate(cell: DecayingCell[Any], x: Tensor, rows: Rows, lengths: Tensor | None) -> Tensor:
    """How far the angle of each sequence falls at a step, per unit of its sum."""
    if cell.length is not None or lengths is None:
        return x.new_full((rows.batch,), math.pi / 12 / (cell.length or rows.steps))
    return (math.pi / 12 / lengths.to(torch.float64)).to(x.dtype)


def eurnn(cell: EURNNCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    n = cell.hidden_size
    if not turnable(n) or not uniform([x, cell.theta]):
        return None
    matrices = turns(n, cell.capacity, cell.theta, cell.phi, cell.omega)
    if not cell.real:
        return _complex(n, x, (cell.weight_ih, None, *matrices), cell.bias)
    form, shift = Form("eurnn_real", n, (n,), (n,)), None if cell.bias is None else cell.bias + 0.01
    return Plan(form, x, (cell.weight_ih, None, *matrices, shift))


def unitary(cell: UnitaryCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, matrix = cell.hidden_size, cell.matrix()
    return _complex(n, x, (cell.weight_ih, None, matrix[:, :n], matrix[:, n:]), cell.bias)


def _complex(n: int, x: Tensor, weights: tuple[Tensor | None, ...], bias: Tensor | None) -> Plan:
    """A modReLU without a bias does nothing, as does one that is moved by zero."""
    shift = x.new_zeros(n) if bias is None else bias
    return Plan(Form("eurnn", n, (n, n), (n,)), x, (*weights, shift))


def fastgrnn(cell: FastGRNNCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, shift = cell.hidden_size, None if cell.shared else cell.bias
    constants = [torch.sigmoid(raw).expand(n) for raw in (cell.beta_raw, cell.kappa_raw)]
    later = cell.bias.chunk(2) if cell.bias is not None and cell.shared else (None, None)
    form = Form("fastgrnn", n, (n,), (n,), (float(cell.shared),))
    return Plan(form, x, (cell.weight_ih, shift, cell.weight_hh, *constants, *later))


def goru(cell: GORUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    n = cell.hidden_size
    if not turnable(n) or not uniform([x, cell.theta]):
        return None
    shift = None if cell.modrelu_bias is None else cell.modrelu_bias + 0.001
    read = (cell.weight_ih, joined(cell.biases()), cell.weight_hh)
    form = Form("goru", n, (n,), (n,))
    return Plan(form, x, (*read, *turns(n, cell.capacity, cell.theta), shift))


def gru(cell: GRUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    kernel = "gru" if cell.reset == "before" else "gru_after"
    gates, candidate = cell.weight_hh[: 2 * n], cell.weight_hh[2 * n :]
    form = Form(kernel, n, (n,), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, gates, candidate, cell.bias_hh))


def highway(cell: HighwayCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, connection = cell.hidden_size, cell.connection
    read: Tensor = cell.weight_candidate
    shift = None
    if cell.gate_reads_input:
        read = torch.cat([connection.weight_gate, read])
        shift = joined((*cell.biases(), n))
    kernel = "ihc_lstm" if cell.cell_state else "ihc_gru"
    states = (n, n) if cell.cell_state else (n,)
    form = Form(kernel, n, states, (n,), (float(cell.gate_reads_input),))
    fed_back = connection.weight.chunk(2)
    return Plan(form, x, (read, shift, *fed_back, cell.weight_gates, cell.bias_forget))


def janet(cell: JANETCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    form = Form("janet", n, (n,), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh, cell.beta.expand(n)))


def lstm(cell: LSTMCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, peepholes = cell.hidden_size, cell.peephole
    seen = (None, None, None) if peepholes is None else peepholes.unbind(0)
    form = Form("lstm", cell.output_size, (cell.output_size, n), (n, cell.output_size))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh, cell.weight_hr, *seen))


def lstm1997(cell: LSTM1997Cell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    form = Form("lstm1997", n, (n, n), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh))


def nru(cell: NRUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    n, m, heads, side = cell.hidden_size, cell.memory_size, cell.heads, cell.side
    # the kernel has heads whose blocks are whole rows of the outer product
    if cell.norm != 5 or side % heads or side // heads > 1024:
        return None
    share = 1 / heads if cell.average_heads else 1.0
    numbers = (share, float(cell.memory == "multiplicative"))
    kernel = "nru_relu" if cell.relu_heads else "nru"
    silent = cell.weight_mh.shape[0] - cell.weight_ih.shape[0]  # heads that read no input
    read = F.pad(cell.weight_ih, (0, 0, 0, silent)) if silent else cell.weight_ih
    form = Form(kernel, n, (n, m), (n, m, heads, side), numbers)
    return Plan(form, x, (read, cell.bias, cell.weight_hh, cell.weight_mh, cell.weight_heads))


RESIDUAL = {
    IRCFastGRNNCell: "irc_fastgrnn",
    IRCGRUCell: "irc_gru",
    IRCLSTMCell: "irc_lstm",
    IRCSRUCell: "irc_sru",
    IRCTLSTMCell: "irc_tlstm",
}


def residual(cell: ResidualCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, gates, connection = cell.hidden_size, cell.weight_gates, cell.connection
    alpha, narrow = torch.sigmoid(connection.alpha_raw), None
    if isinstance(connection, DiagonalConnection):
        fed_back = gates * (alpha * torch.tanh(connection.omega_raw))
    else:
        corrected = alpha[:, None] * connection.weight
        outer, inner = gates.shape
        if x.shape[0] * inner * (outer + n) < (x.shape[0] + inner) * outer * n:
            fed_back, narrow = gates, corrected
        else:
            fed_back = gates @ corrected
    candidate: Tensor = cell.weight_candidate
    shift = joined((*cell.gate_biases(), n))
    if isinstance(cell, IRCFastGRNNCell):
        candidate = torch.sigmoid(cell.beta_raw).view(-1, 1) * candidate
    states = (n, n) if cell.cell_state else (n,)
    form = Form(RESIDUAL[type(cell)], n, states, (n, gates.shape[1]))
    read = torch.cat([gates, candidate])
    if cell.weight_in is not None:  # seen through a matrix, which is multiplied into the others
        read = read @ cell.weight_in
        if isinstance(cell, IRCSRUCell):
            read = torch.cat([read, cell.weight_in])
            shift = None if shift is None else F.pad(shift, (0, n))
    return Plan(form, x, (read, shift, fed_back, narrow))


def rnn(cell: RNNCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    norm = (None, None) if cell.norm is None else (cell.norm.weight, cell.norm.bias)
    form = Form("rnn", n, (n,), (n,), (float(cell.nonlinearity == "relu"),))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.matrix(), *norm))


def sru(cell: SRUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, bias = cell.hidden_size, cell.bias
    shift = None if bias is None else F.pad(bias, (0, cell.weight_ih.shape[0] - 2 * n))
    form = Form("sru", n, (n,), (n,), (cell.scale,))
    return Plan(form, x, (cell.weight_ih, shift, *cell.omega.chunk(2)))


def stat_ru(cell: StatRUCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n, count = cell.hidden_size, len(cell.alphas)
    sizes = (n, cell.statistics, cell.recurrent_size, count)
    form = Form("stat_ru", n, (count * cell.statistics,), sizes)
    matrices = (cell.weight_r, cell.weight_m, cell.weight_h)
    no_shifts = (x.new_zeros(cell.recurrent_size), x.new_zeros(n))
    shifts = no_shifts if cell.bias_r is None else (cell.bias_r, cell.bias_h)
    return Plan(form, x, (cell.weight_ih, cell.bias, *matrices, *shifts, cell.alpha.flatten()))


def tlstm(cell: TLSTMCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    shift = None if cell.bias is None else F.pad(cell.bias, (0, 3 * n))
    form = Form("tlstm", n, (n, 3 * n), (n,), (float(cell.output_gate == "tanh"),))
    return Plan(form, x, (torch.cat([cell.weight_ih, cell.weight_previous]), shift))


NORMED = {
    ClockworkCell,
    DecayNetCell,
    DecayNetGRUCell,
    FastGRNNCell,
    GORUCell,
    GRUCell,
    IRCFastGRNNCell,
    IRCGRUCell,
    JANETCell,
    LSTM1997Cell,
    LSTMCell,
    RNNCell,
}
"""Cells whose kernels normalise what matrices make of the state, and the cell state of an LSTM.

Others have sums that no matrix makes, read the input itself too, or read all of a cell state.
"""


def layer_norm(cell: LayerNormCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    inner: Any = cell.cell
    plan = KERNELS[type(inner)](inner, x, rows, lengths) if type(inner) in NORMED else None
    if plan is None or cell.norm_h is None:
        return None
    weights = list(plan.weights[2:])
    norms = [*_parts(cell.norm_h), *_parts(cell.norm_inner)]
    shift = joined(inner.biases())
    if isinstance(inner, ResidualCell):
        read: Any = plan.weights[0]  # of gates and candidate
        candidate = F.linear(x, read[len(inner.weight_gates) :])
        sums = torch.cat([cell._linear(x, inner.weight_gates, shift), candidate], dim=-1)
        if plan.weights[3] is not None:  # the matrix before the one whose product is normalised
            norms = [None, None, *norms]
    else:
        sums = cell._linear(x, inner.weight_ih, shift)
    weights += [None] * (NORMS - 2 - len(weights)) + norms
    weights += [None] * (MEMORY_NORM - 2 - len(weights)) + _parts(cell.norm_c)
    return plan._replace(x=sums, weights=(None, None, *weights))


def _parts(norm: UnitNorm | None) -> list[Tensor | None]:
    """The scale and shift of each part; nothing if somebody took the norm away."""
    if norm is None:
        return []
    assert norm.bias is not None
    parts = list(norm.parts)
    pairs = zip(torch.split(norm.weight, parts), torch.split(norm.bias, parts), strict=True)
    return [tensor for pair in pairs for tensor in pair]


UNMASKED = {DNTMCell, NTMCell, TARDISCell}
"""Cells whose kernels take no mask of recurrent dropout, as they have noise of their own."""


def recurrent_dropout(
    cell: RecurrentDropoutCell, x: Tensor, rows: Rows, lengths: Tensor | None
) -> Plan | None:
    if cell.training and torch.compiler.is_compiling():  # noise would be fixed in the graph
        return None
    if type(cell.cell) in UNMASKED:  # before a plan draws noise that the loop would draw again
        return None
    planner = KERNELS.get(type(cell.cell))
    plan = None if planner is None else planner(cell.cell, x, rows, lengths)
    if plan is None:
        return None
    drawn = cell._masked((), x.new_empty(rows.steps, rows.batch, 0))
    if not isinstance(drawn, MaskedInput):
        return plan
    again = copy(cell)  # whose mask is this
    vars(again)["_masked"] = lambda prepared, _: MaskedInput(prepared, drawn.masks)
    return plan._replace(noise=as_rows(drawn.masks[0], lengths).contiguous(), loop=again)


def zoneout(cell: ZoneoutCell, x: Tensor, rows: Rows, lengths: Tensor | None) -> Plan | None:
    if torch.compiler.is_compiling():
        return None
    planner = KERNELS.get(type(cell.cell))
    plan = None if planner is None else planner(cell.cell, x, rows, lengths)
    if plan is None:
        return None
    keep: list[Tensor | float] = [0.0] * len(plan.form.states)
    masks = cell.masks(x.new_empty(rows.steps, rows.batch, 0))
    for index, rate, mask in zip(cell.mixed, cell.rates, masks, strict=True):
        packed = mask if lengths is None else pack_padded_sequence(mask, lengths).data
        keep[index] = packed.contiguous() if cell.training else rate
    again = copy(cell)  # whose masks are these, around one whose noise is that of the kernel
    vars(again)["masks"] = lambda _: masks
    vars(again)["_modules"] = {"cell": plan.loop or cell.cell}
    return plan._replace(keep=tuple(keep), loop=again)


KERNELS: dict[type[Cell[Any, Any]], Planner] = {
    ClockworkCell: clockwork,
    DecayNetCell: decaynet,
    DecayNetGRUCell: decaynet_gru,
    DNTMCell: dntm,
    EURNNCell: eurnn,
    FastGRNNCell: fastgrnn,
    FullURNNCell: unitary,
    GORUCell: goru,
    GRUCell: gru,
    IHCGRUCell: highway,
    IHCLSTMCell: highway,
    IRCFastGRNNCell: residual,
    IRCGRUCell: residual,
    IRCLSTMCell: residual,
    IRCSRUCell: residual,
    IRCTLSTMCell: residual,
    JANETCell: janet,
    LSTM1997Cell: lstm1997,
    LSTMCell: lstm,
    LayerNormCell: layer_norm,
    NRUCell: nru,
    NTMCell: ntm,
    RNNCell: rnn,
    RecurrentDropoutCell: recurrent_dropout,
    SRUCell: sru,
    StatRUCell: stat_ru,
    TARDISCell: tardis,
    TLSTMCell: tlstm,
    URNNCell: unitary,
    ZoneoutCell: zoneout,
}
