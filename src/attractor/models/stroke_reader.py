"""Read strokes, then name digits one after the other."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attractor.cells.base import check_input
from attractor.cells.layer.options import LayerCell
from attractor.cells.layer.segments import check_pieces
from attractor.checks import whole
from attractor.errors import InputError
from attractor.models.choices import Reward
from attractor.models.sequence import heard, reader, readout, rewarded


class StrokeReader(nn.Module):
    r"""Read a sequence with any cell, then say symbols, each fed back as the next input.

    A step shows :math:`[x_t, 0, 0]` while the sequence is read, then :math:`[0, 1, 0]`, the mark
    of the start, and after that :math:`[0, 0, d]`, where d is the symbol before: the right one in
    training (teacher forcing), the model's own choice else.

    .. math::
        s_n = V h_{T+n} + c, \quad d_n = \arg\max s_n

    Args:
        cell: a key of ``CELLS`` or a `Cell` class, or a list with that of each layer.
        input_size: features of a step that is read.
        hidden_size: units of the cell, or a list with those of each layer.
        output_size: symbols.
        reward: train the choices of a cell that reads one place of its memory by REINFORCE, with
            this reward: see `attractor.models.choices.Choices`. In training the answer is then a
            `attractor.tasks.Penalised`.
        discount: of later rewards.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to `Recurrent`.

    Shape:
        x ``(batch, time, input_size)`` or a ``PackedSequence``; the answer ``(batch, symbols of a
        sequence, output_size)``.

    Example:
        >>> model = StrokeReader("lstm", 4, 16, 10)
        >>> model(torch.zeros(2, 30, 4), 5).shape
        torch.Size([2, 5, 10])
        >>> model(torch.zeros(2, 30, 4), torch.zeros(2, 3, dtype=torch.long)).shape
        torch.Size([2, 3, 10])

    Departs from the paper: nothing.

    References:
        Gulcehre et al. (2017), Memory augmented neural networks with wormhole connections,
        arXiv:1701.08718, section 6.2; Chandar (2020), section 3.7.2.
    """

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
        input_size: int,
        hidden_size: int | Sequence[int],
        output_size: int,
        *,
        reward: Reward | None = None,
        discount: float = 0.9,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if options.get("bidirectional"):
            raise InputError(
                "expected one direction for a network that goes on after the end of what it "
                "reads, but got bidirectional=True. Leave it out."
            )
        self.input_size = whole("input_size", input_size, 1)
        self.output_size = whole("output_size", output_size, 1)
        shown = self.input_size + 1 + self.output_size
        self.recurrent = reader(cell, shown, hidden_size, generator=generator, **options)
        self.readout = readout(self.recurrent, output_size, generator)
        self.choices = rewarded(self.recurrent, output_size, reward, discount, generator)

    def forward(self, x: Tensor | PackedSequence, said: Tensor | int) -> Any:
        """The scores of each symbol.

        Args:
            x: what is read.
            said: the right symbols ``(batch, n)``, which are fed back; or how many to say, with
                the model's own fed back.
        """
        self._check(x, said)
        room = (0, 1 + self.output_size)
        if isinstance(x, PackedSequence):
            shown: Any = x._replace(data=F.pad(x.data, room))
            start = x.data.new_zeros(int(x.batch_sizes[0]), 1, self.recurrent.input_size)
        else:
            shown = F.pad(x, room)
            start = x.new_zeros(len(x), 1, self.recurrent.input_size)
        start[..., self.input_size] = 1
        if isinstance(said, Tensor):
            return self._forced(shown, torch.cat([start, self._fed(said)[:, :-1]], 1))
        if self.training:
            check_pieces("its own symbols in training", self.recurrent, "the right symbols")
        _, state = self.recurrent(shown)
        answers, shown = [], start
        for _ in range(said):
            output, state = self.recurrent(shown, state)
            answers.append(self.readout(output))
            shown = self._fed(answers[-1].argmax(-1))
        return torch.cat(answers, 1)

    def _check(self, x: Tensor | PackedSequence, said: Tensor | int) -> None:
        """Refuse what cannot be read, and symbols that are not those of what is read."""
        if isinstance(x, PackedSequence):
            shown, batch = x.data, int(x.batch_sizes[0])
        elif isinstance(x, Tensor) and x.dim() == 3 and x.shape[1]:
            shown, batch = x, len(x)
        else:
            known = isinstance(x, Tensor)
            got = f"the shape {tuple(x.shape)}" if known else f"a {type(x).__name__}"
            raise InputError(
                f"expected at least one step of what is read, (batch, time, {self.input_size}), "
                f"but got {got}. Try x[None] for one sequence, and pack_sequence for several."
            )
        check_input(self, self.input_size, shown)
        if not isinstance(said, Tensor):
            whole("said", said, 1)
            return
        if said.dim() != 2 or len(said) != batch or said.shape[1] < 1:
            raise InputError(
                f"expected the symbols (batch, n) of each of {batch} sequences, but got the shape "
                f"{tuple(said.shape)}. Give a row of at least one symbol for each sequence."
            )
        if said.dtype not in (torch.int64, torch.int32):
            raise InputError(
                f"expected symbols as whole numbers, but got {said.dtype}. Try said.long()."
            )

    def _forced(self, read: Tensor | PackedSequence, fed: Tensor) -> Any:
        """The scores where right symbols are fed back after what is read.

        Both are one sequence for the layer, for what a cell counts or draws once for a sequence.
        """
        steps = torch.arange(fed.shape[1], device=fed.device)
        if isinstance(read, PackedSequence):
            padded, lengths = pad_packed_sequence(read, batch_first=True)
            places = (lengths.to(fed.device)[:, None] + steps)[..., None].expand_as(fed)
            whole = F.pad(padded, (0, 0, 0, len(steps))).scatter(1, places, fed)
            sequence: Any = pack_padded_sequence(
                whole, lengths + len(steps), batch_first=True, enforce_sorted=False
            )
        else:
            sequence = torch.cat([read, fed], 1)
        choices = self.choices if self.training else None
        output, price = heard(self.recurrent, choices, sequence, asked=len(steps))
        if isinstance(output, PackedSequence):
            output = pad_packed_sequence(output, batch_first=True)[0]
            output = output.gather(1, places[..., :1].expand(-1, -1, output.shape[-1]))
        said = self.readout(output[:, -len(steps) :])
        return said if price is None else price(said)

    def _fed(self, symbols: Tensor) -> Tensor:
        """Symbols ``(batch, n)`` as inputs."""
        try:
            ones = F.one_hot(symbols.long(), self.output_size).to(self.readout.weight.dtype)
        except RuntimeError as error:
            raise InputError(
                f"expected symbols from 0 to {self.output_size - 1}, one for each output, but got "
                f"{int(symbols.min())} to {int(symbols.max())}. Make the reader with more outputs."
            ) from error
        return F.pad(ones, (self.input_size + 1, 0))
