"""A language model with any cell, regularised as AWD-LSTM is."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells import Recurrent, weight_drop
from attractor.cells.init import uniform_
from attractor.cells.layer.options import LayerCell
from attractor.cells.wrap.dropconnect import recurrent_names
from attractor.checks import flag, number
from attractor.errors import InputError
from attractor.models.choices import Reward, drawn
from attractor.models.sequence import check_between, reader, readout, rewarded
from attractor.models.tokens import embedded, table_of
from attractor.tasks.answers import Penalised


def locked(x: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout with one mask for all steps of a sequence: variational dropout.

    Shape:
        x ``(batch, time, features)``; the result likewise.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> kept = locked(torch.ones(2, 3, 4), 0.5, training=True)
        >>> bool((kept == kept[:, :1]).all())
        True
    """
    if not training or rate == 0:
        return x
    return x * F.dropout(torch.ones_like(x[:, :1]), rate)


class LanguageModel(nn.Module):
    r"""Say the next token at each step: embedding, layers of any cell, a linear layer.

    .. math::
        e_t &= m_e \odot E[w_t], \quad
        h^{(l)} = \mathrm{layer}_l(m_l \odot h^{(l-1)}), \quad h^{(0)} = e \\
        s_t &= V (m_o \odot h^{(L)}_t) + c

    where the masks :math:`m` are zero with a probability each and scaled up else, the same at all
    steps of a piece (variational dropout). Embedding dropout drops whole words: rows of E, for all
    places of a word at once. Weight dropout drops recurrent weights, once for all steps. In
    training the loss has on top the price of activity, and of its changes in time,

    .. math::
        \alpha \, \overline{(m_o \odot h^{(L)})^2} +
        \beta \, \overline{(h^{(L)}_t - h^{(L)}_{t-1})^2}

    with means over all units, steps and sequences.

    Args:
        cell: a key of ``CELLS`` or a `Cell` class, or a list with that of each layer.
        vocabulary: tokens that are told apart.
        embedding_size: features of an embedded token.
        hidden: units of each layer; they may differ.
        tied: V is E, for which the last layer must have `embedding_size` outputs.
        input_dropout: on embedded tokens.
        hidden_dropout: between layers; refused where there is only one.
        output_dropout: after the last layer.
        embedding_dropout: of whole words.
        weight_dropout: of recurrent weights.
        activity: the price of activity, :math:`\alpha`.
        slowness: the price of its changes in time, :math:`\beta`.
        reward: train the choices of the one layer, a cell that reads one place of its memory, by
            REINFORCE: see `attractor.models.choices.Choices`.
        discount: of later rewards.
        carry: training and evaluation go on with the state from piece to piece. Without, each
            piece begins anew: for cells whose state may grow for ever, such as `nru`.
        init: embeddings start evenly between plus and minus this.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to `Recurrent`; ``bidirectional`` is refused, for it would show the answers.

    Shape:
        x ``(batch, time)``, numbers below `vocabulary`; the answer ``(batch, time, vocabulary)``.

    Returns:
        ``(answer, state)``; the state goes into the next call, for the piece that follows. In
        training with a price of activity or a reward the answer is a `Penalised`.

    Example:
        >>> model = LanguageModel("gru", 50, 8, [16, 8], tied=True)
        >>> answer, state = model(torch.zeros(2, 5, dtype=torch.long))
        >>> answer.shape, len(state)
        (torch.Size([2, 5, 50]), 2)

    Departs from the paper: pieces have a fixed length, so the rate is not scaled by it.

    References:
        Merity et al. (2018), Regularizing and optimizing LSTM language models, arXiv:1708.02182,
        sections 2 and 4; Gal and Ghahramani (2016), arXiv:1512.05287 (variational dropout).
    """

    carries_state = True

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
        vocabulary: int,
        embedding_size: int,
        hidden: Sequence[int],
        *,
        tied: bool = False,
        input_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        output_dropout: float = 0.0,
        embedding_dropout: float = 0.0,
        weight_dropout: float = 0.0,
        activity: float = 0.0,
        slowness: float = 0.0,
        reward: Reward | None = None,
        discount: float = 0.9,
        carry: bool = True,
        init: float = 0.1,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if options.get("bidirectional"):
            raise InputError(
                "expected one direction for a network that must not read ahead, where the next "
                "token is what it is asked for, but got bidirectional=True. Leave it out."
            )
        if options.get("dropout") and options.get("num_layers", 1) == 1:
            raise InputError(
                f"expected dropout by the place where it acts, but got dropout={options['dropout']}"
                ", which is for layers of one size that num_layers counts. Try hidden_dropout."
            )
        if not isinstance(hidden, Sequence) or not hidden:
            raise InputError(
                f"expected a list of the units of at least one layer, but got {hidden!r}. Try "
                "hidden=[200]."
            )
        self.rates = {
            name: number(f"{name}_dropout", rate, 0, 1)
            for name, rate in (
                ("input", input_dropout),
                ("hidden", hidden_dropout),
                ("output", output_dropout),
                ("embedding", embedding_dropout),
            )
        }
        check_between("hidden_dropout", self.rates["hidden"], cell, [*hidden], {})
        self.carry = flag("carry", carry)
        self.activity = number("activity", activity, 0)
        self.slowness = number("slowness", slowness, 0)
        self.embedding = table_of(vocabulary, embedding_size, options)
        embedding_size = self.embedding.embedding_dim
        uniform_(self.embedding.weight, number("init", init, 0), generator)
        self.layers = nn.ModuleList()
        inner: list[Recurrent] = []
        for one, units in zip(_for_each(cell, hidden), hidden, strict=True):
            features = inner[-1].output_size if inner else embedding_size
            inner.append(reader(one, features, units, generator=generator, **options))
            self.layers.append(_dropped(inner[-1], weight_dropout))
        self.readout = readout(inner[-1], vocabulary, generator)
        if flag("tied", tied):
            if inner[-1].output_size != embedding_size:
                raise InputError(
                    f"expected a last layer of the embedding's {embedding_size} features, whose "
                    f"weights it shares, but it has {inner[-1].output_size}. Try "
                    f"hidden={[*hidden[:-1], embedding_size]}, or tied=False."
                )
            self.readout.weight = self.embedding.weight
        if reward is not None and len(inner) > 1:
            raise InputError(
                f"expected one layer whose choices REINFORCE trains, but got {len(inner)}. Try "
                f"hidden=[{hidden[0]}], or leave reward out."
            )
        self.choices = rewarded(inner[0], vocabulary, reward, discount, generator)

    def initial_state(self, batch_size: int) -> tuple[Any, ...]:
        """The state before the first token; where each piece begins anew, none for any layer."""
        if not self.carry:
            return (None,) * len(self.layers)
        layers: Any = [getattr(layer, "layer", layer) for layer in self.layers]
        return tuple(layer.initial_state(batch_size) for layer in layers)

    def forward(self, x: Tensor, state: tuple[Any, ...] | None = None) -> tuple[Any, Any]:
        if not isinstance(x, Tensor) or x.dim() != 2:
            known = isinstance(x, Tensor)
            got = f"the shape {tuple(x.shape)}" if known else f"a {type(x).__name__}"
            raise InputError(
                f"expected tokens (batch, time), but got {got}. Try x[None] for one text, and "
                "pad_sequence for several."
            )
        state = (None,) * len(self.layers) if state is None else state  # as each layer starts
        if not isinstance(state, tuple | list) or len(state) != len(self.layers):
            raise InputError(
                f"expected the state of each of {len(self.layers)} layers, as the model gives it, "
                f"but got {len(state) if isinstance(state, tuple | list) else 'a'} "
                f"{type(state).__name__}. Try state=None, or what the piece before gave."
            )
        raw = locked(self._embedded(x), self.rates["input"], self.training)
        choices = self.choices if self.training else None
        after = []
        for place, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            if place:
                raw = locked(raw, self.rates["hidden"], self.training)
            if choices is None:
                raw, one = layer(raw, before)
            else:
                shown, (raw, one, states) = raw, layer(raw, before, return_states=True)
                seen = drawn(shown, states)
            after.append(one)
        dropped = locked(raw, self.rates["output"], self.training)
        said = self.readout(dropped)
        penalty = self._penalty(dropped, raw) if self.training else 0.0
        if choices is not None:
            return choices.priced(said, seen, penalty), tuple(after)
        return Penalised(said, penalty) if isinstance(penalty, Tensor) else said, tuple(after)

    def _penalty(self, dropped: Tensor, raw: Tensor) -> Tensor | float:
        """The price of activity and of its changes; zero if they have none."""
        penalty: Tensor | float = 0.0
        if self.activity:
            penalty = self.activity * dropped.square().mean()
        if self.slowness and raw.shape[1] > 1:
            penalty = penalty + self.slowness * raw.diff(dim=1).square().mean()
        return penalty

    def _embedded(self, x: Tensor) -> Tensor:
        rate, table = self.rates["embedding"], self.embedding.weight
        if self.training and rate:
            table = table * F.dropout(table.new_ones(len(table), 1), rate)
        return embedded(x, table)


def _dropped(layer: Recurrent, rate: float) -> nn.Module:
    """A layer whose recurrent weights are dropped at a rate, once it is known to have some."""
    if not rate:
        return layer
    if not recurrent_names(layer):
        raise InputError(
            f"expected cells with a recurrent matrix for weight_dropout={rate}, but "
            f"{type(layer.cells[0]).__name__} has none. Try hidden_dropout, or another cell."
        )
    return weight_drop(layer, rate)


def _for_each(cell: LayerCell | Sequence[LayerCell], hidden: Sequence[int]) -> list[Any]:
    """The cell of each layer: one for all, or a list of as many as there are layers."""
    if not isinstance(cell, list | tuple):
        return [cell] * len(hidden)
    if len(cell) != len(hidden):
        raise InputError(
            f"expected as many cells as there are layers, {len(hidden)} with "
            f"hidden={[*hidden]}, but got {len(cell)}. Give one for each layer, or one for all."
        )
    return [*cell]
