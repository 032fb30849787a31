from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from attractor.errors import InputError
from attractor.models import (
    DRAW,
    LanguageModel,
    PairClassifier,
    SequenceClassifier,
    SequenceTagger,
    StrokeReader,
)
from attractor.tasks import Batch
from attractor.tasks.answers import cross_entropy


@pytest.mark.parametrize("bidirectional", [False, True])
def test_classifier_answers_from_the_end_of_each_sequence(bidirectional: bool) -> None:
    model = SequenceClassifier("gru", 3, 5, 4, bidirectional=bidirectional)
    sequences = [torch.randn(n, 3) for n in (4, 7, 1)]
    packed = model(pack_sequence(sequences, enforce_sorted=False))
    for row, x in enumerate(sequences):
        alone = model(x[None])
        torch.testing.assert_close(packed[row], alone[0])
        _, state = model.recurrent(x[None])
        torch.testing.assert_close(alone, model.readout(torch.cat(list(state), dim=-1)))


def test_tagger_answers_at_each_step() -> None:
    model = SequenceTagger("lstm", 3, 5, 4, num_layers=2)
    sequences = [torch.randn(n, 3) for n in (4, 7)]
    packed = unpack_sequence(model(pack_sequence(sequences, enforce_sorted=False)))
    for x, y in zip(sequences, packed, strict=True):
        torch.testing.assert_close(y, model(x[None])[0])


def test_the_generator_decides_all_weights() -> None:
    one, same = (
        SequenceTagger("rnn", 3, 5, 4, generator=torch.Generator().manual_seed(7)).state_dict()
        for _ in range(2)
    )
    torch.testing.assert_close(dict(one), dict(same))


def test_samples_always_come_first() -> None:
    with pytest.raises(InputError, match="expected no batch_first, .* but got batch_first=False"):
        SequenceTagger("rnn", 3, 5, 4, batch_first=False)


def test_no_outputs_and_lists_of_series_are_refused() -> None:
    with pytest.raises(InputError, match="expected output_size to be at least 1, but got 0"):
        SequenceClassifier("lstm", 3, 4, 0)
    with pytest.raises(InputError, match=r"a PackedSequence, but got list\. Try .*pack_sequence"):
        SequenceClassifier("lstm", 3, 4, 2)([torch.zeros(2, 3), torch.zeros(1, 3)])


def test_dtype_and_device() -> None:
    model = SequenceClassifier("rnn", 3, 5, 4, dtype=torch.float64, device="meta")
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert model(torch.zeros(1, 2, 3, dtype=torch.float64, device="meta")).shape == (1, 4)


@pytest.mark.parametrize(
    "model",
    [
        lambda **to: LanguageModel("gru", 7, 4, [6, 4], tied=True, **to),
        lambda **to: PairClassifier("gru", 7, 4, 6, 3, **to),
    ],
)
def test_embeddings_are_where_the_layers_are(model: Any) -> None:
    made = model(dtype=torch.float64)
    assert {p.dtype for p in made.parameters()} == {torch.float64}
    said = made(torch.zeros(2, 5, dtype=torch.long))
    assert (said[0] if isinstance(said, tuple) else said).dtype == torch.float64
    assert {p.device.type for p in model(device="meta").parameters()} == {"meta"}


def test_what_trains_choices_is_where_the_layer_is() -> None:
    options: dict[str, Any] = {"estimator": "reinforce", "reward": "auxiliary"}
    model = SequenceTagger("tardis", 3, 6, 7, dtype=torch.float64, **options)
    x = torch.zeros(2, 5, 3, dtype=torch.float64)
    loss = cross_entropy(model, Batch(x, torch.zeros(2, 5, dtype=torch.long)))
    torch.autograd.backward(loss)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    away = SequenceTagger("tardis", 3, 6, 7, device="meta", **options)
    assert {t.device.type for t in away.state_dict().values()} == {"meta"}


@pytest.mark.parametrize("kind", [SequenceClassifier, SequenceTagger])
def test_the_read_out_starts_as_asked_for_and_the_rest_as_ever(kind: Any) -> None:
    def made(**options: Any) -> Any:
        return kind("gru", 10, 80, 9, generator=torch.Generator().manual_seed(0), **options)

    plain, wide = made(), made(readout_init="xavier")
    assert plain.readout.weight.abs().max() <= 80**-0.5
    assert wide.readout.weight.std().item() == pytest.approx((2 / 89) ** 0.5, rel=0.1)
    for one, other in zip(plain.recurrent.parameters(), wide.recurrent.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(InputError, match="to fill weights, but got 'wide'"):
        made(readout_init="wide")


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (SequenceClassifier, (2, 4, 3)),
        (SequenceTagger, (2, 4, 3)),
        (StrokeReader, (2, 4, 3)),
        (PairClassifier, (9, 4, 6, 2)),
    ],
)
def test_sizes_of_numpy_are_taken_as_pythons_own(kind: Any, sizes: tuple[int, ...]) -> None:
    assert repr(kind("gru", *map(np.int64, sizes))) == repr(kind("gru", *sizes))


def test_sizes_of_numpy_in_language_models_and_draw() -> None:
    made = LanguageModel("gru", np.int64(9), np.int64(4), [np.int64(6)])  # type: ignore[arg-type, list-item]
    assert repr(made) == repr(LanguageModel("gru", 9, 4, [6]))
    small: Any = np.uint8(20)  # whose square it has no room for
    draw = DRAW((1, 28, 28), 6, 2, steps=2, read=small, write=small)
    assert draw(torch.rand(3, 1, 28, 28)).shape == (3,)


@pytest.mark.parametrize("shape", [(5, 3), (3,), (2, 4, 5, 3)])
def test_one_answer_is_for_a_batch_of_sequences(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"sequences \(batch, time, 3\), but got .*Try x\[None\]"):
        SequenceClassifier("gru", 3, 4, 2)(torch.zeros(shape))


@pytest.mark.parametrize("kind", [SequenceClassifier, SequenceTagger, StrokeReader])
@pytest.mark.parametrize(
    ("cell", "units", "count"), [("lstm", 8, 1), (["lstm"], 8, 1), ("lstm", [8], np.int64(1))]
)
def test_dropout_needs_a_place_between_layers(kind: Any, cell: Any, units: Any, count: Any) -> None:
    message = r"at least two layers for dropout, .* but got dropout=0\.9 and one layer\. Try more"
    with pytest.raises(InputError, match=message):
        kind(cell, 3, units, 2, num_layers=count, dropout=0.9)
    kind(cell, 3, units, 2, num_layers=count, dropout=0.0)


@pytest.mark.parametrize("kind", [SequenceClassifier, SequenceTagger, StrokeReader])
def test_dropout_is_taken_where_there_are_layers(kind: Any) -> None:
    for cell, units, count in (("lstm", 8, 2), (["lstm", "gru"], 8, 1), ("lstm", [8, 4], 1)):
        assert kind(cell, 3, units, 2, num_layers=count, dropout=0.9).recurrent.dropout == 0.9
