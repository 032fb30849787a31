"""Networks that read a sequence with any cell and answer once, or at each step."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.cells import Recurrent
from attractor.cells.init import Initialiser, weights_
from attractor.cells.layer.options import LayerCell
from attractor.errors import InputError
from attractor.models.choices import Choices, Reward
from attractor.tasks import Penalised


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
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.recurrent = reader(cell, input_size, hidden_size, generator=generator, **options)
        self.readout = readout(self.recurrent, output_size, generator, readout_init)

    def forward(self, x: Tensor | PackedSequence) -> Tensor:
        answer: Tensor = self.readout(self.last(x))
        return answer

    def last(self, x: Tensor | PackedSequence) -> Tensor:
        """What the network says last of each sequence, which the answer is read from."""
        output, _ = self.recurrent(x)
        if isinstance(output, PackedSequence):
            output, lengths = pad_packed_sequence(output, batch_first=True)
            ends = lengths.to(output.device) - 1
        else:
            ends = None
        return _last(output, ends, self.recurrent.num_directions)


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
        self.choices: Choices | None = None
        if reward is not None:
            self.choices = Choices(
                self.recurrent, output_size, reward, discount=discount, generator=generator
            )

    def forward(self, x: Tensor | PackedSequence) -> Any:
        if self.choices is not None and self.training:
            return self._rewarded(x)
        output, _ = self.recurrent(x)
        if isinstance(output, PackedSequence):
            return output._replace(data=self.readout(output.data))
        return self.readout(output)

    def _rewarded(self, x: Tensor | PackedSequence) -> Penalised:
        """What is said, and what the choices on the way cost once it is known what was asked."""
        assert self.choices is not None
        if isinstance(x, PackedSequence):
            raise InputError(
                "expected sequences of one length for choices that are trained by REINFORCE, but "
                "got a PackedSequence. Leave reward out, or pad the sequences."
            )
        output, _, states = self.recurrent(x, return_states=True)
        said = self.readout(output)
        return Penalised(said, partial(_taught, self.choices, x, said, states))


def _taught(choices: Choices, *seen: Any) -> Tensor:
    """What teaches the choices: its gradient counts, while its value says nothing and is zero."""
    cost: Tensor = choices(*seen)
    return cost - cost.detach()


def reader(cell: Any, input_size: int, hidden_size: Any, **options: Any) -> Recurrent:
    """A recurrent layer that reads samples first, as all models do."""
    if "batch_first" in options:
        raise InputError(
            "expected no batch_first, because samples always come first in what a model reads, "
            f"but got batch_first={options['batch_first']}. Leave it out, or use Recurrent itself."
        )
    return Recurrent(cell, input_size, hidden_size, batch_first=True, **options)


def readout(
    layer: Recurrent,
    output_size: int,
    generator: Generator | None,
    init: Initialiser = "uniform",
) -> nn.Linear:
    """The linear layer from a recurrent layer's outputs, beside it and in its type."""
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
