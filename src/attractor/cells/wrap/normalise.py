"""Normalisers: a gated cell within a cell that normalises what its gates read."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells.base import Cell, Placement, positive
from attractor.cells.gated import (
    PLAIN,
    Biases,
    GatedCell,
    Map,
    Taps,
    WrappedCell,
    identity,
    joined,
    missing,
)
from attractor.errors import InputError

EPSILON = 1e-5


class LayerNormCell(WrappedCell):
    r"""Layer normalisation: the input's and the state's sums are normalised over the units.

    .. math::
        s_t &= LN(U h_{t-1}; \alpha_1, \beta_1) + LN(W x_t; \alpha_2, \beta_2) + b \\
        h_t &= \sigma(o_t) \odot \tanh(LN(c_t; \alpha_3, \beta_3)) \\
        LN(z; \alpha, \beta) &= \alpha \odot (z - \mu) / \sqrt{\sigma^2 + \epsilon} + \beta

    :math:`s_t` is what all gates of the cell read, normalised as one vector; the second line is
    there for cells with a cell state, which is normalised where it is read and kept as it is. A
    candidate that a gate resets (GRU, GORU) is normalised apart from the gates, and so is a
    product that is known only within the step, :math:`LN(W (r_t \odot h_{t-1}); \alpha_4,
    \beta_4)`, and what a controller with an external memory makes of what it has read,
    :math:`LN(W_r r_t; \alpha_5, \beta_5)`.

    Args:
        cell: the cell within; `attractor.cells.layer_norm` makes both at once.

    Shape:
        As the cell within.

    Example:
        >>> from attractor.cells import Recurrent, layer_norm
        >>> output, (h, c) = Recurrent(layer_norm("lstm"), 3, 8)(torch.zeros(5, 2, 3))
        >>> output.shape
        torch.Size([5, 2, 8])

    Departs from the paper: nothing, for the LSTM and the GRU with ``reset="after"``, which are the
    cells it has; epsilon is 1e-5. The paper's plain RNN normalises the whole sum: see
    ``RNNCell(layer_norm=True)``.

    References:
        Ba et al. (2016), Layer normalization, arXiv:1607.06450, supplementary material.
    """

    reference = "ba2016layer"

    def __init__(self, cell: GatedCell[Any, Any]) -> None:
        check_normalisable(cell, "layer_norm")
        super().__init__(cell)
        self.cell: GatedCell[Any, Any]
        to, sites = _placement(cell), cell.sites()
        self.norm_x = UnitNorm(*sites.x, **to) if sites.x else None
        self.norm_h = UnitNorm(*sites.h, **to) if sites.h else None
        self.norm_c = UnitNorm(sites.memory, **to) if sites.memory else None
        self.norm_inner = UnitNorm(*sites.inner, **to) if sites.inner else None
        self.norm_r = UnitNorm(*sites.read, **to) if sites.read else None

    def prepare(self, x: Tensor) -> Any:
        return self.cell.prepare(x, self._linear)

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> Any:
        return self.cell.prepare_ragged(x, lengths, self._linear)

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        sums = _or_identity(self.norm_x)(F.linear(x, weight))
        return sums if bias is None else sums + bias

    def step(self, prepared: Any, state: Any, tap: Taps = PLAIN) -> tuple[Tensor, Any]:
        norm_c, read = _or_identity(self.norm_c), tap.memory
        inside = tap._replace(
            h=_or_identity(self.norm_h),
            inner=_or_identity(self.norm_inner),
            read=_or_identity(self.norm_r),
            memory=lambda c: read(norm_c(c)),
        )
        return self.cell.step(prepared, state, inside)


class BatchNormState(NamedTuple):
    """The state of the cell within, and how many steps each sequence has gone."""

    cell: Any
    steps: Tensor


class BatchNormCell(WrappedCell):
    r"""Recurrent batch normalisation: sums are normalised over the batch, step by step.

    .. math::
        s_t &= BN(U h_{t-1}; \gamma_h, 0) + BN(W x_t; \gamma_x, 0) + b \\
        h_t &= \sigma(o_t) \odot \tanh(BN(c_t; \gamma_c, \beta_c)) \\
        BN(z; \gamma, \beta) &= \beta + \gamma \odot (z - E z) / \sqrt{Var z + \epsilon}

    In training, E and Var are those of the batch at this step, and a moving average of them is
    kept for each of the first `max_steps` steps. Otherwise they are the kept ones of this step,
    counted in the state, and beyond `max_steps` those of the last. A product that is known only
    within the step is normalised there, as in `LayerNormCell`.

    Args:
        cell: the cell within; `attractor.cells.batch_norm` makes both at once.
        max_steps: steps that keep statistics of their own: the length of the training sequences.
        momentum: weight of a batch in the moving averages, as in ``nn.BatchNorm1d``. With 0.01
            they lag behind a network that still changes: after 300 updates an LSTM with a training
            loss of 0.9 had 4.1 on validation data, and 1.05 with 0.1.

    Shape:
        As the cell within; the state is its state and the steps ``(batch,)`` of each sequence.

    Example:
        >>> from attractor.cells import Recurrent, batch_norm
        >>> layer = Recurrent(batch_norm("lstm", max_steps=5), 3, 8)
        >>> output, ((h, c), steps) = layer(torch.randn(5, 2, 3))
        >>> steps
        tensor([[5., 5.]])

    Departs from the paper: statistics for evaluation are moving averages and not those of the
    whole training set. Where a sum has no bias, the shift of its :math:`W x_t` is learnt instead of
    zero, since nothing else could move it off its mean. A sequence that runs on
    alone in a packed batch uses the kept statistics. Sequences of one batch that are at different
    steps, because their states come from different places, are normalised together in training,
    and each step's averages move in proportion to the sequences that are at it.

    References:
        Cooijmans et al. (2017), Recurrent batch normalization, arXiv:1603.09025, equations 6 to 8.
    """

    reference = "cooijmans2017recurrent"

    def __init__(self, cell: GatedCell[Any, Any], max_steps: int, *, momentum: float = 0.1) -> None:
        check_normalisable(cell, "batch_norm")
        max_steps = positive(type(self), "max_steps", max_steps)
        super().__init__(cell)
        self.cell: GatedCell[Any, Any]
        self.fixed_state = (*cell.fixed_state, "steps")
        to, sites = _placement(cell), cell.sites()

        def norm(size: int, shifts: int) -> StepNorm | None:
            return StepNorm(size, max_steps, momentum, shifts=shifts, to=to) if size else None

        self.norm_x = norm(sum(sites.x), shifts=missing(cell.biases()))
        self.norm_h = norm(sum(sites.h), shifts=0)
        self.norm_c = norm(sites.memory, shifts=sites.memory)
        self.norm_inner = norm(sum(sites.inner), shifts=sum(sites.inner))
        self.norm_r = norm(sum(sites.read), shifts=0)

    def initial_state(self, batch_size: int) -> BatchNormState:
        weight = next(self.cell.parameters())
        # not whole numbers, since a compiled loop has no gradients beside them
        exact = torch.promote_types(weight.dtype, torch.float32)
        steps = torch.zeros(batch_size, dtype=exact, device=weight.device)
        return BatchNormState(self.cell.initial_state(batch_size), steps)

    def state_names(self) -> list[str]:
        return [*self.cell.state_names(), "steps"]

    def resume(self, state: BatchNormState) -> BatchNormState:
        return state._replace(cell=self.cell.resume(state.cell))

    def prepare(self, x: Tensor) -> Any:
        self._check(x)
        return self.cell.prepare(x, _product)

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> Any:
        self._check(x)
        return self.cell.prepare_ragged(x, lengths, _product)

    def _check(self, x: Tensor) -> None:
        if self.training and x.shape[1] < 2:
            raise InputError(
                "batch_norm expects at least 2 sequences at a time in training, to normalise over "
                f"them, but x is {tuple(x.shape)} (time, batch, features). Try a larger batch, or "
                "layer_norm."
            )
        if self.training and torch.compiler.is_compiling():
            raise InputError(
                "batch_norm expects to be compiled as a whole for evaluation only, since training "
                "writes down statistics at each step, but it is in training mode. Try "
                "attractor.cells.compile_steps to train, or eval()."
            )

    def step(
        self, prepared: Any, state: BatchNormState, tap: Taps = PLAIN
    ) -> tuple[Tensor, BatchNormState]:
        steps, read = state.steps, tap.memory

        def at_step(norm: nn.Module | None, *biases: Biases) -> Map:
            return identity if norm is None else lambda z: norm(z, steps, *biases)

        norm_c = at_step(self.norm_c)
        inside = tap._replace(
            x=at_step(self.norm_x, self.cell.biases()),
            h=at_step(self.norm_h),
            inner=at_step(self.norm_inner),
            read=at_step(self.norm_r),
            memory=lambda c: read(norm_c(c)),
        )
        output, inner = self.cell.step(prepared, state.cell, inside)
        return output, BatchNormState(inner, steps + 1)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x, whose normalisation and bias wait for the step."""
    return F.linear(x, weight)


class UnitNorm(nn.Module):
    """``nn.LayerNorm`` of each part of the last dimension, in a form that a compiled loop takes."""

    def __init__(
        self,
        *parts: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.parts = parts
        self.weight = nn.Parameter(torch.ones(sum(parts), device=device, dtype=dtype))
        self.bias = (
            nn.Parameter(torch.zeros(sum(parts), device=device, dtype=dtype)) if bias else None
        )

    def forward(self, z: Tensor) -> Tensor:
        # no epsilon of the module's own: a compiled loop takes no float from outside
        if len(self.parts) == 1:
            return F.layer_norm(z, self.weight.shape, self.weight, self.bias)
        parts = torch.split(z, list(self.parts), dim=-1)
        normal = torch.cat([F.layer_norm(part, part.shape[-1:]) for part in parts], dim=-1)
        return normal * self.weight if self.bias is None else normal * self.weight + self.bias


class StepNorm(nn.Module):
    """Batch normalisation with statistics of its own for each time step."""

    mean: Tensor
    var: Tensor

    def __init__(
        self, size: int, max_steps: int, momentum: float, *, shifts: int, to: Placement
    ) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = nn.Parameter(torch.full((size,), 0.1, **to))
        self.bias = nn.Parameter(torch.zeros(shifts, **to)) if shifts else None
        self.register_buffer("mean", torch.zeros(max_steps, size, **to))
        self.register_buffer("var", torch.ones(max_steps, size, **to))

    def forward(self, z: Tensor, steps: Tensor, biases: Biases | None = None) -> Tensor:
        """Normalise z ``(batch, size)``, whose rows have gone `steps` ``(batch,)`` steps.

        What has no bias among `biases` is shifted by a learnt one; without `biases`, all is.
        """
        z = z.to(self.mean.dtype)
        if self.training and z.shape[0] > 1:
            z, mean, scale = torch.native_batch_norm(
                z, self.weight, None, None, None, True, 0.0, EPSILON
            )
            self._keep(mean, scale**-2 - EPSILON, steps)
        else:
            row = steps.long().clamp(max=self.mean.shape[0] - 1)
            z = (z - self.mean[row]) * torch.rsqrt(self.var[row] + EPSILON) * self.weight
        shift = self.bias if biases is None else joined(biases, self.bias)
        return z if shift is None else z + shift

    @torch.no_grad()
    def _keep(self, mean: Tensor, var: Tensor, steps: Tensor) -> None:
        """Move the kept statistics of each row's step towards those of the batch."""
        last = self.mean.shape[0] - 1
        row = steps.long().clamp(max=last)
        weight = self.momentum / len(steps) * (steps <= last)[:, None].to(mean.dtype)
        for kept, new in ((self.mean, mean), (self.var, var)):
            kept.index_add_(0, row, weight * (new - kept[row]))


def check_normalisable(cell: Cell[Any, Any], by: str) -> None:
    """Raise unless the gates of the cell read sums."""
    if not isinstance(cell, GatedCell):
        raise InputError(
            f"{by} expects a cell whose gates read sums W x + U h + b, as those of an LSTM do, but "
            f"got {type(cell).__name__}. Try the cell without {by}."
        )


def _or_identity(norm: nn.Module | None) -> Map:
    return identity if norm is None else norm


def _placement(cell: GatedCell[Any, Any]) -> Placement:
    parameter = next(cell.parameters())
    return {"device": parameter.device, "dtype": parameter.dtype}
