"""Which cells have a kernel, and how each hands over its weights: the only registration."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attractor.cells.base import Cell
from attractor.cells.gru import GRUCell
from attractor.cells.janet import JANETCell
from attractor.cells.kernels.plan import Form, Plan
from attractor.cells.lstm import LSTMCell
from attractor.cells.rnn import RNNCell

Planner = Callable[[Any, Tensor, Tensor | None], Plan | None]
"""From a cell, its input as rows, and the lengths of its sequences, to a plan if it has one."""


def lstm(cell: LSTMCell, x: Tensor, lengths: Tensor | None) -> Plan:
    n, peepholes = cell.hidden_size, cell.peephole
    seen = (None, None, None) if peepholes is None else peepholes.unbind(0)
    form = Form("lstm", cell.output_size, (cell.output_size, n), (n, cell.output_size))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh, cell.weight_hr, *seen))


def rnn(cell: RNNCell, x: Tensor, lengths: Tensor | None) -> Plan | None:
    if cell.norm is not None:
        return None
    n = cell.hidden_size
    form = Form("rnn", n, (n,), (n,), (float(cell.nonlinearity == "relu"),))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh))


def gru(cell: GRUCell, x: Tensor, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    kernel = "gru" if cell.reset == "before" else "gru_after"
    gates, candidate = cell.weight_hh[: 2 * n], cell.weight_hh[2 * n :]
    form = Form(kernel, n, (n,), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, gates, candidate, cell.bias_hh))


def janet(cell: JANETCell, x: Tensor, lengths: Tensor | None) -> Plan:
    n = cell.hidden_size
    form = Form("janet", n, (n,), (n,))
    return Plan(form, x, (cell.weight_ih, cell.bias, cell.weight_hh, cell.beta.expand(n)))


KERNELS: dict[type[Cell[Any, Any]], Planner] = {
    GRUCell: gru,
    JANETCell: janet,
    LSTMCell: lstm,
    RNNCell: rnn,
}
