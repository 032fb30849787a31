"""Two sentences, read one after the other."""

from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from attractor.cells.init import Initialiser, uniform_
from attractor.cells.layer.options import LayerCell
from attractor.checks import number
from attractor.errors import InputError
from attractor.models.choices import Reward
from attractor.models.sequence import SequenceClassifier, check_between
from attractor.models.tokens import embedded, table_of


class PairClassifier(nn.Module):
    r"""Read a premise, then a hypothesis, with any cell, and say how they relate at the end.

    .. math::
        y = V h_T + c, \quad h_t = \mathrm{cell}(E[w_t], h_{t-1})

    where the words :math:`w` of the two sentences come one after the other, with a mark between
    them, as `PairTask` shows them.

    Args:
        cell: a key of ``CELLS`` or a `Cell` class, or a list with that of each layer.
        vocabulary: words that are told apart.
        embedding_size: features of an embedded word.
        hidden_size: units of the cell, or a list with those of each layer.
        output_size: classes.
        dropout: on embedded words and on :math:`h_T`, in training.
        hidden_dropout: between layers; refused where there is only one.
        readout_init: how the weights V start: see `SequenceClassifier`.
        reward: train the choices of a cell that reads one place of its memory by REINFORCE, with
            this reward: see `attractor.models.choices.Choices`. In training the answer is then a
            `attractor.tasks.Penalised`.
        discount: of later rewards.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to `Recurrent`, but for ``batch_first``: samples come first.

    Shape:
        x ``(batch, time)`` of numbers below `vocabulary`, or such a ``PackedSequence``; the answer
        ``(batch, output_size)``.

    Example:
        >>> import torch
        >>> model = PairClassifier("gru", 100, 8, 16, 3)
        >>> model(torch.zeros(2, 12, dtype=torch.long)).shape
        torch.Size([2, 3])

    Departs from the paper: embeddings are learnt from scratch.

    References:
        Bowman et al. (2015), A large annotated corpus for learning natural language inference,
        arXiv:1508.05326; Chandar (2020), section 3.7.4.
    """

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
        vocabulary: int,
        embedding_size: int,
        hidden_size: int | Sequence[int],
        output_size: int,
        *,
        dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        readout_init: Initialiser = "uniform",
        reward: Reward | None = None,
        discount: float = 0.9,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.embedding = table_of(vocabulary, embedding_size, options)
        uniform_(self.embedding.weight, 0.1, generator)
        self.dropout = nn.Dropout(number("dropout", dropout, 0, 1))
        between = number("hidden_dropout", hidden_dropout, 0, 1)
        check_between("hidden_dropout", between, cell, hidden_size, options)
        self.classifier = SequenceClassifier(
            cell,
            embedding_size,
            hidden_size,
            output_size,
            dropout=between,
            readout_init=readout_init,
            reward=reward,
            discount=discount,
            generator=generator,
            **options,
        )

    def forward(self, x: Tensor | PackedSequence) -> Any:
        if isinstance(x, Tensor) and x.dim() != 2:
            raise InputError(
                f"expected words (batch, time), but got the shape {tuple(x.shape)}. Try x[None] "
                "for one pair."
            )
        if isinstance(x, PackedSequence):
            shown: Any = x._replace(data=self.dropout(embedded(x.data, self.embedding.weight)))
        else:
            shown = self.dropout(embedded(x, self.embedding.weight))
        last, price = self.classifier.last(shown)
        said = self.classifier.readout(self.dropout(last))
        return said if price is None else price(said)
