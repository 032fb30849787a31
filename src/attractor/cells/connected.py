"""Gates that read an input corrected by the memory: what the IRC and IHC cells have in common."""

from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import Biases, GatedCell
from attractor.cells.init import (
    Initialiser,
    check_bias,
    check_chrono,
    chrono_,
    uniform_,
    weights_,
)
from attractor.cells.lstm import LSTMState


class ConnectedInput(NamedTuple):
    """What the input contributes to sums, the input itself, and the candidate."""

    sums: Tensor
    x: Tensor
    a: Tensor


class ConnectedCell(GatedCell[ConnectedInput, Any]):
    """The parameters of a cell whose gates read an input that the memory has corrected.

    A cell says how many `gates` it has, the first of which is the one that forgets, with
    `keeps` = -1 where that gate lets the new in instead; whether its state is (h, c) or h alone;
    and what `connects` its memory to its input.
    """

    reference = "kuo2020input"
    gates: ClassVar[int]
    keeps: ClassVar[int] = 1
    cell_state: ClassVar[bool]
    connects: ClassVar[type[Any]]
    square: ClassVar[bool] = False
    """Whether the correction needs as many inputs as units."""

    recurrent_weights: tuple[str, ...] = ("connection.weight",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        check_bias(type(self), bias, forget_bias=forget_bias)
        to: Placement = {"device": device, "dtype": dtype}
        size = hidden_size if self.square else input_size
        rows = self.gates * hidden_size
        self.weight_gates = nn.Parameter(torch.empty(rows, size, **to))
        self.weight_candidate = nn.Parameter(torch.empty(hidden_size, size, **to))
        weights_(self.weight_gates, input_init, hidden_size, generator)
        weights_(self.weight_candidate, input_init, hidden_size, generator)
        self.connection = self.connects(size, hidden_size, recurrent_init, generator, to)
        self.weight_in: nn.Parameter | None = None
        self.bias_forget: nn.Parameter | None = None
        self.bias_highway: nn.Parameter | None = None
        if size != input_size:
            self.weight_in = nn.Parameter(torch.empty(size, input_size, **to))
            uniform_(self.weight_in, input_size**-0.5, generator)
        if forget_bias is not None or t_max is not None:
            kept = torch.full((hidden_size,), float(forget_bias or 0.0), **to)
            if t_max is not None:
                chrono_(kept, t_max, generator)
            self.bias_forget = nn.Parameter(self.keeps * kept)

    def initial_state(self, batch_size: int) -> Any:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return LSTMState(h, h.clone()) if self.cell_state else h

    def carried(self, x: Tensor) -> Tensor:
        """The input, in as many features as the correction has."""
        return x if self.weight_in is None else F.linear(x, self.weight_in)

    def candidate(self, x: Tensor) -> Tensor:
        """What is written, of the input as it is."""
        return F.linear(x, self.weight_candidate)

    def gate_biases(self) -> Biases:
        """The biases that the released code has, of all gates."""
        first = (self.bias_forget, self.bias_highway, None)[: self.gates]
        return tuple(self.hidden_size if bias is None else bias for bias in first)
