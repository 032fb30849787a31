"""Networks that read a sequence with any cell and answer once, or at each step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.cells import Recurrent
from attractor.cells.init import Initialiser, weights_
from attractor.cells.layer.options import LayerCell
from attractor.checks import plain, whole
from attractor.errors import InputError
from attractor.models.choices import Choices, Reward, drawn
from attractor.tasks import Penalised

Price = Callable[[Tensor], Penalised]
"""Puts on an answer the price of the choices that led to it."""


class SequenceClassifier(nn.Module):
    r"""Read a whole sequence, then answer: :math:`y = V h_T + c`.

    With ``bidirectional``, :math:`h_T` is the last output of each direction: at the end for the
    one that reads forwards, at the start for the one that reads backwards.

    Args:
        cell: a key of ``CELLS`` or a `Cell` class, or a list with that of each layer.
        input_size: features of the input.
        hidden_size: units of the cell, or a list with those of each layer.
        output_size: classes.
        readout_init: how the weights V start: ``"uniform"``, U(±1/sqrt(units)), or another of
            `attractor.cells.init`'s; ``"xavier"`` is that of the code behind Chandar (2020).
        reward: train the choices of a cell that reads one place of its memory by REINFORCE, with
            this reward: see `attractor.models.choices.Choices`. In training the answer is then a
            `attractor.tasks.Penalised`.
        discount: of later rewards.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to `Recurrent`, but for ``batch_first``: samples come first.

    Shape:
        x ``(batch, time, input_size)`` or a ``PackedSequence``; y ``(batch, output_size)``.

    Example:
        >>> model = SequenceClassifier("gru", 1, 16, 10)
        >>> model(torch.zeros(5, 64, 1)).shape
        torch.Size([5, 10])
    """

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
        input_size: int,
        hidden_size: int | Sequence[int],
        output_size: int,
        *,
        readout_init: Initialiser = "uniform",
        reward: Reward | None = None,
        discount: float = 0.9,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.recurrent = reader(cell, input_size, hidden_size, generator=generator, **options)
        self.readout = readout(self.recurrent, output_size, generator, readout_init)
        self.choices = rewarded(self.recurrent, output_size, reward, discount, generator)

    def forward(self, x: Tensor | PackedSequence) -> Any:
        last, price = self.last(x)
        said = self.readout(last)
        return said if price is None else price(said)

    def last(self, x: Tensor | PackedSequence) -> tuple[Tensor, Price | None]:
        """What the network says last of each sequence, which the answer is read from.

        In training with a reward also what puts its price on that answer.
        """
        if isinstance(x, Tensor) and x.dim() != 3:
            raise InputError(
                f"expected sequences (batch, time, {self.recurrent.input_size}), but got the shape "
                f"{tuple(x.shape)}. Try x[None] for one sequence, or x[..., None] for one feature."
            )
        output, price = heard(self.recurrent, self.choices if self.training else None, x, asked=1)
        if isinstance(output, PackedSequence):
            output, lengths = pad_packed_sequence(output, batch_first=True)
            ends = lengths.to(output.device) - 1
        else:
            ends = None
        return _last(output, ends, self.recurrent.num_directions), price


class SequenceTagger(nn.Module):
    r"""Answer at each step of a sequence: :math:`y_t = V h_t + c`.

    Args:
        cell: a key of ``CELLS`` or a `Cell` class, or a list with that of each layer.
        input_size: features of the input.
        hidden_size: units of the cell, or a list with those of each layer.
        output_size: classes.
        readout_init: how the weights V start: ``"uniform"``, U(±1/sqrt(units)), or another of
            `attractor.cells.init`'s; ``"xavier"`` is that of the code behind Chandar (2020).
        reward: train the choices of a cell that reads one place of its memory by REINFORCE, with
            this reward: see `attractor.models.choices.Choices`. In training the answer is then a
            `attractor.tasks.Penalised`.
        discount: of later rewards.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to `Recurrent`, but for ``batch_first``: samples come first.

    Shape:
        x ``(batch, time, input_size)`` or a ``PackedSequence``; y likewise, with ``output_size``
        features.

    Example:
        >>> model = SequenceTagger("janet", 10, 16, 9)
        >>> model(torch.zeros(5, 120, 10)).shape
        torch.Size([5, 120, 9])
    """

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
        input_size: int,
        hidden_size: int | Sequence[int],
        output_size: int,
        *,
        readout_init: Initialiser = "uniform",
        reward: Reward | None = None,
        discount: float = 0.9,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.recurrent = reader(cell, input_size, hidden_size, generator=generator, **options)
        self.readout = readout(self.recurrent, output_size, generator, readout_init)
        self.choices = rewarded(self.recurrent, output_size, reward, discount, generator)

    def forward(self, x: Tensor | PackedSequence) -> Any:
        choices = self.choices if self.training else None
        if choices is not None and isinstance(x, PackedSequence):
            raise InputError(
                "expected sequences of one length for choices that are trained by REINFORCE, but "
                "got a PackedSequence. Leave reward out, or pad the sequences."
            )
        output, price = heard(self.recurrent, choices, x)
        if isinstance(output, PackedSequence):
            return output._replace(data=self.readout(output.data))
        said = self.readout(output)
        return said if price is None else price(said)


def rewarded(
    layer: Recurrent,
    output_size: int,
    reward: Reward | None,
    discount: float,
    generator: Generator | None,
) -> Choices | None:
    """What trains the choices of a layer, if a reward is named."""
    if reward is None:
        return None
    return Choices(layer, output_size, reward, discount=discount, generator=generator)


def heard(
    layer: Recurrent, choices: Choices | None, x: Tensor | PackedSequence, asked: int | None = None
) -> tuple[Any, Price | None]:
    """The output of a layer, and with choices to train what puts their price on an answer."""
    if choices is None:
        return layer(x)[0], None
    output, _, states = layer(x, return_states=True)
    seen = drawn(x, states, asked)
    return output, lambda said: choices.priced(said, seen)


def reader(cell: Any, input_size: int, hidden_size: Any, **options: Any) -> Recurrent:
    """A recurrent layer that reads samples first, as all models do."""
    if "batch_first" in options:
        raise InputError(
            "expected no batch_first, because samples always come first in what a model reads, "
            f"but got batch_first={options['batch_first']}. Leave it out, or use Recurrent itself."
        )
    check_between("dropout", options.get("dropout", 0.0), cell, hidden_size, options)
    return Recurrent(cell, input_size, hidden_size, batch_first=True, **options)


def check_between(
    name: str, rate: Any, cell: Any, hidden_size: Any, options: Mapping[str, Any]
) -> None:
    """Refuse a rate of dropout between layers where there is one layer, as `Recurrent` counts."""
    listed = [len(one) for one in (cell, hidden_size) if isinstance(one, list | tuple)]
    if rate and all(one == 1 for one in [*listed, plain(options.get("num_layers", 1))]):
        raise InputError(
            f"expected at least two layers for {name}, which acts between them, but got {name}="
            f"{rate} and one layer. Try more layers, or leave {name} out."
        )


def readout(
    layer: Recurrent,
    output_size: int,
    generator: Generator | None,
    init: Initialiser = "uniform",
) -> nn.Linear:
    """The linear layer from a recurrent layer's outputs, beside it and in its type."""
    output_size = whole("output_size", output_size, 1)
    beside = next(layer.parameters())
    linear = nn.Linear(layer.output_size, output_size, device=beside.device, dtype=beside.dtype)
    weights_(linear.weight, init, layer.output_size, generator, rows=output_size)
    nn.init.zeros_(linear.bias)
    return linear


def _last(output: Tensor, ends: Tensor | None, directions: int) -> Tensor:
    """The last thing said by each direction, from output ``(batch, time, features)``."""
    if ends is None:
        forwards = output[:, -1]
    else:
        forwards = output[torch.arange(len(output), device=output.device), ends]
    if directions == 1:
        return forwards
    half = output.shape[-1] // 2
    return torch.cat([forwards[..., :half], output[:, 0, half:]], dim=-1)
