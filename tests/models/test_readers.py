"""Reading strokes and pairs of sentences, beside torch's own modules."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from attractor.cells import CELLS, copy_to_torch
from attractor.errors import InputError
from attractor.models import PairClassifier, StrokeReader


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def lstm_of(layer: Any) -> nn.LSTM:
    made = nn.LSTM(layer.input_size, layer.hidden_size, batch_first=True)
    copy_to_torch(layer, made)
    return made


def test_symbols_follow_the_strokes_each_fed_back() -> None:
    model = StrokeReader("lstm", 2, 6, 3, generator=seeded())
    lstm = lstm_of(model.recurrent)
    x, y = torch.randn(2, 5, 2, generator=seeded(1)), torch.tensor([[2, 0, 1], [1, 1, 2]])
    zeros = torch.zeros
    read = torch.cat([x, zeros(2, 5, 4)], 2)
    start = torch.tensor([0, 0, 1.0, 0, 0, 0]).expand(2, 1, 6)
    fed = torch.cat([zeros(2, 2, 3), nn.functional.one_hot(y[:, :2], 3).float()], 2)
    everything = lstm(torch.cat([read, start, fed], 1))[0]
    torch.testing.assert_close(model(x, y), model.readout(everything[:, 5:]))


@pytest.mark.parametrize("packed", [False, True])
def test_a_schedule_counts_a_batch_once_and_goes_on_over_its_symbols(packed: bool) -> None:
    torch.manual_seed(0)
    options: Any = {"discrete": True, "anneal": 3, "cells": 4}
    model = StrokeReader("dntm", 2, 6, 3, generator=seeded(), **options)
    cell: Any = model.recurrent.cells[0]
    x: Any = torch.randn(2, 5, 2, generator=seeded(1))
    y = torch.tensor([[2, 0, 1], [1, 1, 2]])
    if packed:
        x = pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
    for batch in range(1, 4):
        model(x, y)
        assert cell.batches == batch
    with pytest.raises(InputError, match=r"own symbols in training .* Try the right symbols"):
        model(x, 3)
    assert model.eval()(x, 3).shape == (2, 3, 3)
    assert cell.batches == 3


def test_right_symbols_follow_packed_strokes_where_each_ends() -> None:
    model = StrokeReader("lstm", 2, 6, 3, generator=seeded())
    x, y = torch.randn(3, 7, 2, generator=seeded(1)), torch.tensor([[2, 0], [1, 1], [0, 2]])
    lengths = torch.tensor([4, 7, 2])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    for row, (length, answer) in enumerate(zip(lengths.tolist(), model(packed, y), strict=True)):
        expected = model(x[row : row + 1, :length], y[row : row + 1])[0]
        torch.testing.assert_close(answer, expected)


def test_its_own_symbols_are_fed_back_where_none_are_given() -> None:
    model = StrokeReader("gru", 2, 6, 3, generator=seeded())
    nn.init.normal_(model.readout.weight, std=5, generator=seeded(2))
    x = 8 * torch.randn(40, 5, 2, generator=seeded(1))
    free = model(x, 6)
    torch.testing.assert_close(model(x, free.argmax(-1)), free)
    assert len({tuple(row) for row in free.argmax(-1).tolist()}) > 1


def test_packed_strokes_end_where_they_end() -> None:
    model = StrokeReader("lstm", 2, 6, 3, generator=seeded())
    x, lengths = torch.randn(3, 7, 2, generator=seeded(1)), torch.tensor([4, 7, 2])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    together = model(packed, 4)
    for row, length, expected in zip(x, lengths.tolist(), together, strict=True):
        torch.testing.assert_close(model(row[None, :length], 4)[0], expected)


def test_a_word_outside_the_vocabulary_of_pairs_is_named() -> None:
    model = PairClassifier("gru", 5, 4, 6, 3, generator=seeded())
    with pytest.raises(InputError, match=r"tokens from 0 to 4, .* but got 9 at \[0, 1\]"):
        model(torch.tensor([[1, 9, 2]]))


def test_what_pairs_and_readers_cannot_be_made_of_or_told_is_refused() -> None:
    with pytest.raises(InputError, match="expected vocabulary to be at least 1, but got -1"):
        PairClassifier("gru", -1, 4, 6, 3)
    with pytest.raises(InputError, match="tokens as a tensor of whole numbers, but got list"):
        PairClassifier("gru", 5, 4, 6, 3)([[1, 2], [3]])
    with pytest.raises(InputError, match=r"symbols from 0 to 2, .* but got 0 to 3"):
        StrokeReader("gru", 4, 8, 3)(torch.zeros(2, 5, 4), torch.tensor([[1, 0], [3, 0]]))
    with pytest.raises(InputError, match=r"symbols from 0 to 2, .* but got 0 to 7"):
        StrokeReader("gru", 4, 8, 3)(torch.zeros(2, 5, 4), torch.tensor([[1, 0], [2, 7]]))
    with pytest.raises(InputError, match=r"at least one step .*, but got the shape \(2, 0, 4\)"):
        StrokeReader("gru", 4, 8, 3)(torch.zeros(2, 0, 4), torch.tensor([[1, 0], [2, 2]]))
    with pytest.raises(InputError, match="but got a list.* pack_sequence for several"):
        StrokeReader("gru", 4, 8, 3)([torch.zeros(5, 4)], 2)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (0, "expected said to be at least 1, but got 0"),
        (2.0, r"expected said to be a whole number, but got 2\.0"),
        (
            torch.zeros(3, 2).long(),
            r"symbols \(batch, n\) of each of 2 sequences, .* \(3, 2\)",
        ),
        (torch.zeros(2).long(), r"of each of 2 sequences, but got the shape \(2,\)"),
        (torch.zeros(2, 0).long(), r"the shape \(2, 0\)\. Give a row of at least one symbol"),
        (torch.zeros(2, 1), r"symbols as whole numbers, but got torch\.float32\. Try said\.long"),
    ],
)
def test_symbols_that_are_not_those_of_the_sequences_are_refused(
    said: Any, message: str, packed: bool
) -> None:
    x: Any = torch.zeros(2, 5, 4)
    if packed:
        x = pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
    with pytest.raises(InputError, match=message):
        StrokeReader("gru", 4, 8, 3)(x, said)


def test_strokes_of_other_features_are_told_as_they_came() -> None:
    model = StrokeReader("gru", 4, 8, 10)
    message = r"StrokeReader expects input_size=4, but x has shape \(2, 5, 3\), .* dimension is 3"
    with pytest.raises(InputError, match=message):
        model(torch.zeros(2, 5, 3), 1)
    packed = pack_padded_sequence(torch.zeros(2, 5, 3), torch.tensor([5, 5]), batch_first=True)
    with pytest.raises(InputError, match=r"expects input_size=4, .* whose last dimension is 3"):
        model(packed, 1)
    with pytest.raises(InputError, match=r"\(batch, time, 4\), but got the shape \(5, 4\)"):
        model(torch.zeros(5, 4), 1)


def test_symbols_may_be_of_a_smaller_type() -> None:
    model = StrokeReader("gru", 4, 8, 10, generator=seeded())
    x, y = torch.randn(2, 5, 4, generator=seeded(1)), torch.tensor([[1, 7], [4, 2]])
    torch.testing.assert_close(model(x, y.int()), model(x, y))


def test_readers_and_pairs_of_different_layers() -> None:
    reader = StrokeReader(["lstm", "gru"], 4, [6, 5], 10, generator=seeded())
    x, y = torch.randn(2, 5, 4, generator=seeded(1)), torch.tensor([[1, 7], [4, 2]])
    free = reader(x, 2)
    torch.testing.assert_close(reader(x, free.argmax(-1)), free)
    assert reader(x, y).shape == (2, 2, 10)
    pairs = PairClassifier(["lstm", "gru"], 5, 4, [6, 5], 3, generator=seeded())
    for layer in (reader.recurrent, pairs.classifier.recurrent):
        cells: Any = layer.cells
        found = [(type(one).__name__, one.hidden_size) for one in cells]
        assert found == [("LSTMCell", 6), ("GRUCell", 5)]
    assert pairs(torch.tensor([[1, 3, 2]])).shape == (1, 3)


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_every_cell_reads_strokes(cell: str) -> None:
    options: Any = {"length": 12} if cell.startswith("decaynet") else {}
    model = StrokeReader(cell, 4, 8, 10, generator=seeded(), **options)
    x, y = torch.randn(2, 9, 4, generator=seeded(1)), torch.tensor([[3, 1, 9], [0, 4, 4]])
    torch.autograd.backward(nn.functional.cross_entropy(model(x, y).flatten(0, 1), y.flatten()))
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.recurrent.parameters())


def test_a_pair_is_answered_at_its_own_end() -> None:
    model = PairClassifier("lstm", 20, 4, 6, 3, generator=seeded())
    lstm = lstm_of(model.classifier.recurrent)
    x, lengths = torch.randint(20, (3, 8), generator=seeded(1)), torch.tensor([5, 8, 3])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    found = model(packed)
    for row, length, answer in zip(x, lengths.tolist(), found, strict=True):
        last = lstm(model.embedding(row[None, :length]))[0][0, -1]
        torch.testing.assert_close(answer, model.classifier.readout(last))
    torch.testing.assert_close(model(x[1:2])[0], found[1])


def test_dropout_of_a_pair_is_applied_twice() -> None:
    model = PairClassifier("gru", 20, 4, 6, 3, dropout=0.5, generator=seeded())
    x = torch.randint(20, (2, 8), generator=seeded(1))
    seen: list[tuple[Tensor, Tensor]] = []
    model.dropout.register_forward_hook(lambda _, given, got: seen.append((given[0], got)))
    said = model(x)
    (shown, dropped), (last, left) = seen
    torch.testing.assert_close(shown, model.embedding(x))
    assert (dropped == 0).any()
    torch.testing.assert_close(last, model.classifier.last(dropped)[0])
    assert (left == 0).any()
    torch.testing.assert_close(said, model.classifier.readout(left))
    assert torch.equal(model.eval()(x), model(x))


def test_dropout_of_pairs_between_layers_has_a_rate_of_its_own() -> None:
    x = torch.randint(20, (2, 8), generator=seeded(1))
    blind = PairClassifier("gru", 20, 4, [6, 5], 3, hidden_dropout=1.0, generator=seeded())
    torch.testing.assert_close(blind(x), blind(x.flip(1)))
    assert not torch.equal(blind.eval()(x), blind(x.flip(1)))
    message = r"two layers for hidden_dropout, .* but got hidden_dropout=0\.5 and one layer\. Try"
    with pytest.raises(InputError, match=message):
        PairClassifier("gru", 20, 4, 6, 3, hidden_dropout=0.5)
    with pytest.raises(InputError, match="expected hidden_dropout to be from 0 to 1"):
        PairClassifier("gru", 20, 4, [6, 5], 3, hidden_dropout=2)


def test_a_reader_that_goes_on_has_one_direction() -> None:
    with pytest.raises(InputError, match="expected one direction"):
        StrokeReader("gru", 4, 8, 10, bidirectional=True)


@pytest.mark.parametrize("shape", [(5,), (2, 5, 3)])
def test_pairs_are_read_in_batches(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"words \(batch, time\), but got .*\. Try x\[None\]"):
        PairClassifier("gru", 9, 4, 6, 2)(torch.zeros(shape, dtype=torch.long))


def test_embedded_words_of_pairs_start_evenly_within_a_tenth() -> None:
    drawn = PairClassifier("gru", 200, 50, 4, 3, generator=seeded()).embedding.weight.detach()
    assert 0.099 < float(drawn.abs().max()) <= 0.1
    assert float(drawn.std()) == pytest.approx(0.1 / 3**0.5, rel=0.02)
