"""Noise that keeps a memory from overfitting: a cell within a cell that draws masks."""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from attractor.cells.base import Cell
from attractor.cells.gated import PLAIN, AnyGated, GatedCell, Taps, WrappedCell
from attractor.checks import plain
from attractor.errors import InputError


class MaskedInput(NamedTuple):
    """Prepared input, and the masks of each step."""

    cell: Any
    masks: tuple[Tensor, ...]


class ZoneoutCell(Cell[MaskedInput, Any]):
    r"""Zoneout: at each step, some units keep their old value instead of taking the new one.

    .. math::
        c_t &= d^c_t \odot c_{t-1} + (1 - d^c_t) \odot \hat c_t \\
        h_t &= d^h_t \odot h_{t-1} + (1 - d^h_t) \odot \hat h_t

    :math:`\hat c_t` and :math:`\hat h_t` are what the cell within would have gone on with. In
    training d is drawn for each unit, sequence and step: 1 with the given rate, 0 otherwise. In
    evaluation it is the rate itself, its expectation.

    Args:
        cell: the cell within, any; `attractor.cells.zoneout` makes both at once.
        cell_rate: how often a unit of the state's ``c`` keeps its value.
        hidden_rate: how often a unit of the state's ``h`` does, or of a state that is one tensor
            and no cell state (an SRU's is one).

    Shape:
        As the cell within.

    Example:
        >>> from attractor.cells import Recurrent, zoneout
        >>> output, (h, c) = Recurrent(zoneout("lstm", 0.5, 0.05), 3, 8)(torch.zeros(5, 2, 3))
        >>> output.shape
        torch.Size([5, 2, 8])

    Departs from the paper: nothing. As the paper prints it, :math:`\hat h_t` reads
    :math:`\hat c_t` and not :math:`c_t`.

    References:
        Krueger et al. (2017), Zoneout: regularizing RNNs by randomly preserving hidden
        activations, arXiv:1606.01305, section 3.
    """

    reference = "krueger2017zoneout"

    def __init__(self, cell: Cell[Any, Any], cell_rate: float, hidden_rate: float) -> None:
        super().__init__(cell.input_size, cell.hidden_size)
        self.cell = cell
        self.state_name = cell.state_name
        self.fixed_state = cell.fixed_state
        self.cell_rate = probability("zoneout", "cell_rate", cell_rate)
        self.hidden_rate = probability("zoneout", "hidden_rate", hidden_rate)
        state = cell.initial_state(1)
        # one alone that is no cell state is a hidden one, whatever the paper calls it
        alone = cell.state_name
        names = ["h" if name == alone != "c" else name for name in cell.state_names()]
        for name, given in (("cell_rate", cell_rate), ("hidden_rate", hidden_rate)):
            field = name[0]
            if given and field not in names:
                raise InputError(
                    f"zoneout expects {name}=0 for {type(cell).__name__}, whose state "
                    f"({', '.join(names)}) has no {field}, but got {given}. Try {name}=0."
                )
        rates = [{"c": cell_rate, "h": hidden_rate}.get(name, 0.0) for name in names]
        self.mixed = [index for index, given in enumerate(rates) if given]
        self.rates = [rates[index] for index in self.mixed]
        self._sizes = [pytree.tree_leaves(state)[index].shape[-1] for index in self.mixed]

    @property
    def output_size(self) -> int:
        return self.cell.output_size

    def initial_state(self, batch_size: int) -> Any:
        return self.cell.initial_state(batch_size)

    def state_names(self) -> list[str]:
        return self.cell.state_names()

    def resume(self, state: Any) -> Any:
        return self.cell.resume(state)

    def prepare(self, x: Tensor) -> MaskedInput:
        return MaskedInput(self.cell.prepare(x), self.masks(x))

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> MaskedInput:
        return MaskedInput(self.cell.prepare_ragged(x, lengths), self.masks(x))

    def masks(self, x: Tensor) -> tuple[Tensor, ...]:
        """For each part of the state that is mixed, how much of the old to keep."""
        time, batch = x.shape[:2]
        if self.training:
            return tuple(
                torch.empty(time, batch, size, device=x.device, dtype=x.dtype).bernoulli_(rate)
                for rate, size in zip(self.rates, self._sizes, strict=True)
            )
        return tuple(x.new_full((time, batch, 1), rate) for rate in self.rates)

    def step(self, prepared: MaskedInput, state: Any) -> tuple[Tensor, Any]:
        output, new = self.cell.step(prepared.cell, state)
        before = pytree.tree_leaves(state)
        after, spec = pytree.tree_flatten(new)
        for index, keep in zip(self.mixed, prepared.masks, strict=True):
            mixed = keep * before[index] + (1 - keep) * after[index]
            # what the cell shows of its state, it shows after zoneout
            output = mixed if after[index] is output else output
            after[index] = mixed
        return output, pytree.tree_unflatten(after, spec)

    def extra_repr(self) -> str:
        return f"cell_rate={self.cell_rate}, hidden_rate={self.hidden_rate}"


class RecurrentDropoutCell(WrappedCell):
    r"""Recurrent dropout: some units of the candidate are not written, and none is forgotten.

    .. math::
        c_t &= f_t \odot c_{t-1} + i_t \odot d(a_t) \\
        d(a) &= m \odot a / (1 - p) \text{ in training}, \; a \text{ otherwise}

    m is zero with probability p and one otherwise, for each unit and sequence.

    Args:
        cell: the cell within; `attractor.cells.recurrent_dropout` makes both at once.
        rate: p.
        per: draw a mask for each ``"step"``, or one for the whole ``"sequence"``.

    Shape:
        As the cell within.

    Example:
        >>> from attractor.cells import Recurrent, recurrent_dropout
        >>> output, h = Recurrent(recurrent_dropout("gru", 0.25), 3, 8)(torch.zeros(5, 2, 3))
        >>> output.shape
        torch.Size([5, 2, 8])

    Departs from the paper: the factor 1 / (1 - p) acts in training, as in ``nn.Dropout``, instead
    of 1 - p in evaluation.

    References:
        Semeniuta et al. (2016), Recurrent dropout without memory loss, arXiv:1603.05118.
    """

    reference = "semeniuta2016recurrent"

    def __init__(
        self,
        cell: AnyGated,
        rate: float,
        *,
        per: Literal["step", "sequence"] = "step",
    ) -> None:
        if not isinstance(cell, GatedCell | WrappedCell):
            raise InputError(
                "recurrent_dropout expects a cell that writes a candidate, as an LSTM does, but "
                f"got {type(cell).__name__}. Try zoneout, which suits any cell."
            )
        if per not in ("step", "sequence"):
            raise InputError(
                f"recurrent_dropout expects per to be 'step' or 'sequence', but got {per!r}."
            )
        super().__init__(cell)
        self.rate = probability("recurrent_dropout", "rate", rate)
        self.per = per
        self.sees_whole_sequence = per == "sequence"

    def prepare(self, x: Tensor) -> Any:
        return self._masked(self.cell.prepare(x), x)

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> Any:
        return self._masked(self.cell.prepare_ragged(x, lengths), x)

    def _masked(self, prepared: Any, x: Tensor) -> Any:
        if not self.training or self.rate == 0:
            return prepared
        time, batch = x.shape[:2]
        draws = time if self.per == "step" else 1
        mask = torch.empty(draws, batch, self.hidden_size, device=x.device, dtype=x.dtype)
        mask = mask.bernoulli_(1 - self.rate) / (1 - self.rate)
        return MaskedInput(prepared, (mask.expand(time, batch, self.hidden_size),))

    def step(self, prepared: Any, state: Any, tap: Taps = PLAIN) -> tuple[Tensor, Any]:
        if isinstance(prepared, MaskedInput):
            (mask,), write = prepared.masks, tap.candidate
            tap = tap._replace(candidate=lambda a: write(mask * a))
            prepared = prepared.cell
        return self.cell.step(prepared, state, tap)

    def extra_repr(self) -> str:
        return f"rate={self.rate}, per={self.per!r}"


def probability(owner: str, name: str, value: float) -> float:
    """Check how often something is to be left out."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InputError(f"{owner} expects {name} to be from 0 to below 1, but got {value!r}.")
    return float(value)
