"""The language model beside torch's own modules, and dropout that is really applied."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from attractor.cells import CELLS
from attractor.errors import InputError
from attractor.models import LanguageModel
from attractor.models.language_model import locked
from attractor.tasks import Batch, Penalised
from attractor.tasks.answers import cross_entropy
from attractor.training.carried import Carried


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens(batch: int = 3, time: int = 6, size: int = 11) -> Tensor:
    return torch.randint(size, (batch, time), generator=seeded(1))


@pytest.mark.parametrize("tied", [False, True])
def test_it_is_an_embedding_two_lstms_and_a_linear_layer(tied: bool) -> None:
    model = LanguageModel("lstm", 11, 4, [7, 4], tied=tied, generator=seeded())
    nn.init.uniform_(model.readout.bias)
    one, other = nn.LSTM(4, 7, batch_first=True), nn.LSTM(7, 4, batch_first=True)
    for built, own in zip((one, other), model.layers, strict=True):
        torchs, cell = cast("Any", built), cast("Any", own).cells[0]
        with torch.no_grad():
            torchs.weight_ih_l0.copy_(cell.weight_ih)
            torchs.weight_hh_l0.copy_(cell.weight_hh)
            torchs.bias_ih_l0.copy_(cell.bias)
            torchs.bias_hh_l0.zero_()
    x = tokens()
    inner = one(nn.functional.embedding(x, model.embedding.weight))[0]
    weight = model.embedding.weight if tied else model.readout.weight
    expected = other(inner)[0] @ weight.T + model.readout.bias
    torch.testing.assert_close(model(x)[0], expected)
    assert (model.readout.weight is model.embedding.weight) == tied


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_a_piece_goes_on_where_the_last_one_ended_with_every_cell(cell: str) -> None:
    options: dict[str, Any] = {"length": 8} if cell.startswith("decaynet") else {}
    model = LanguageModel(cell, 11, 4, [8, 4], generator=seeded(), **options).eval()
    x = tokens(2, 8)
    whole, _ = model(x)
    first, state = model(x[:, :5])
    second, _ = model(x[:, 5:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)


def test_each_layer_may_have_its_own_cell() -> None:
    model = LanguageModel(["lstm", "gru"], 20, 8, [16, 8], tied=True, generator=seeded())
    cells = [cell for layer in cast("Any", model.layers) for cell in layer.cells]
    assert [(type(one).__name__, one.input_size, one.hidden_size) for one in cells] == [
        ("LSTMCell", 8, 16),
        ("GRUCell", 16, 8),
    ]
    x = tokens(2, 8)
    whole, _ = model(x)
    first, (below, above) = model(x[:, :5])
    assert (below.h.shape, above.shape) == ((1, 2, 16), (1, 2, 8))
    second, _ = model(x[:, 5:], (below, above))
    torch.testing.assert_close(torch.cat([first, second], 1), whole)


def test_a_cell_of_a_layer_may_have_options_of_its_own() -> None:
    table = {"cell": "nru", "memory_size": 9}
    model = LanguageModel((table, "lstm"), 20, 8, [16, 8])
    assert model.initial_state(2)[0].m.shape == (1, 2, 9)
    alike = LanguageModel(table, 20, 8, [16, 8])
    assert [state.m.shape for state in alike.initial_state(2)] == [(1, 2, 9), (1, 2, 9)]


@pytest.mark.parametrize("cells", [["lstm"], ["lstm", "gru", "rnn"], []])
def test_as_many_cells_as_layers(cells: list[str]) -> None:
    message = rf"as many cells as there are layers, 2 with hidden=\[16, 8\], but got {len(cells)}\."
    with pytest.raises(InputError, match=message):
        LanguageModel(cells, 20, 8, [16, 8])


def test_embedding_dropout_drops_a_word_wherever_it_is() -> None:
    model = LanguageModel("rnn", 200, 3, [3], embedding_dropout=0.4, generator=seeded())
    x = torch.arange(200).repeat(1, 2)
    torch.manual_seed(0)
    shown = model._embedded(x)[0]
    once, again = shown[:200], shown[200:]
    assert torch.equal(once, again)
    gone = (once == 0).all(1)
    assert 50 < int(gone.sum()) < 110
    torch.testing.assert_close(once[~gone], model.embedding.weight[~gone] / 0.6)
    assert torch.equal(model.eval()._embedded(x)[0, :200], model.embedding.weight)


def test_locked_dropout_is_the_same_at_all_steps_and_differs_between_sequences() -> None:
    torch.manual_seed(0)
    x = torch.rand(4, 5, 50) + 1
    kept = locked(x, 0.3, training=True)
    zero = kept == 0
    assert torch.equal(zero, zero[:, :1].expand_as(zero))
    assert not torch.equal(zero[0], zero[1])
    assert 0.2 < float(zero.float().mean()) < 0.4
    torch.testing.assert_close(kept[~zero], x[~zero] / 0.7)
    assert locked(x, 0.3, training=False) is x


def test_weights_are_dropped_in_training_and_whole_again_in_evaluation() -> None:
    model = LanguageModel("lstm", 11, 4, [6], weight_dropout=0.5, generator=seeded())
    (layer,) = model.layers
    dropped: Any = layer
    torch.manual_seed(0)
    weight = dropped.drop()["cells.0.weight_hh"]
    assert 0.3 < float((weight == 0).float().mean()) < 0.7
    x = tokens()
    assert not torch.equal(model(x)[0], model(x)[0])
    model.eval()
    plain = LanguageModel("lstm", 11, 4, [6], generator=seeded()).eval()
    torch.testing.assert_close(model(x)[0], plain(x)[0])


@pytest.mark.parametrize("place", ["input", "hidden", "output"])
def test_each_dropout_is_applied_in_training_alone(place: str) -> None:
    rates: dict[str, Any] = {f"{place}_dropout": 0.5}
    model = LanguageModel("gru", 11, 4, [5, 4], generator=seeded(), **rates)
    x = tokens()
    assert not torch.equal(model(x)[0], model(x)[0])
    model.eval()
    assert torch.equal(model(x)[0], model(x)[0])


def test_what_is_dropped_between_layers_is_dropped_at_all_steps() -> None:
    model = LanguageModel("gru", 11, 4, [50, 50], hidden_dropout=0.3, generator=seeded())
    seen: list[Tensor] = []
    model.layers[1].register_forward_pre_hook(lambda _, given: seen.append(given[0] == 0))
    model(tokens())
    zero = seen[0]
    assert 0.2 < float(zero.float().mean()) < 0.4
    assert torch.equal(zero, zero[:, :1].expand_as(zero))


def test_dropout_of_outputs_hides_them_from_the_last_layer_alone() -> None:
    model = LanguageModel("gru", 11, 4, [5], output_dropout=1.0, generator=seeded())
    said, (state,) = model(tokens())
    assert torch.equal(said, model.readout.bias.expand_as(said))
    assert state.abs().sum().item() > 0


def test_activity_and_its_changes_have_a_price_in_training() -> None:
    model = LanguageModel("gru", 11, 4, [5], activity=2.0, slowness=3.0, generator=seeded())
    x = tokens()
    (layer,) = model.layers
    h = layer(model.embedding(x))[0]
    price = 2 * (h**2).mean() + 3 * ((h[:, 1:] - h[:, :-1]) ** 2).mean()
    said = model(x)[0]
    assert isinstance(said, Penalised)
    torch.testing.assert_close(said.penalty, price)
    batch = Batch(x, x.roll(-1, 1))
    plain = nn.functional.cross_entropy(said.said.flatten(0, 1), batch.y.flatten())
    torch.testing.assert_close(cross_entropy(Carried(model), batch), plain + price)
    assert isinstance(model.eval()(x)[0], Tensor)


def test_what_dropout_leaves_is_what_has_a_price() -> None:
    model = LanguageModel("gru", 11, 4, [5], activity=1.0, output_dropout=0.5, generator=seeded())
    x = tokens()
    torch.manual_seed(3)
    found = model(x)[0].penalty
    (layer,) = model.layers
    torch.manual_seed(3)
    dropped = locked(layer(model.embedding(x))[0], 0.5, training=True)
    torch.testing.assert_close(found, dropped.square().mean())


def test_changes_have_their_price_before_dropout() -> None:
    model = LanguageModel("gru", 11, 4, [5], slowness=3.0, output_dropout=0.5, generator=seeded())
    x = tokens()
    h = cast("Any", model.layers)[0](model.embedding(x))[0]
    torch.testing.assert_close(model(x)[0].penalty, 3 * h.diff(dim=1).square().mean())


def test_bad_options() -> None:
    with pytest.raises(InputError, match="expected a last layer of the embedding's 4 features"):
        LanguageModel("gru", 11, 4, [5], tied=True)
    with pytest.raises(InputError, match="at least one layer"):
        LanguageModel("gru", 11, 4, [])
    with pytest.raises(InputError, match=r"a list of the units .* but got 4\. Try hidden"):
        LanguageModel("lstm", 11, 4, 4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected vocabulary to be at least 1"):
        LanguageModel("lstm", 0, 4, [4])
    with pytest.raises(InputError, match="expected embedding_size to be at least 1"):
        LanguageModel("lstm", 11, 0, [4])
    with pytest.raises(InputError, match=r"tokens \(batch, time\), but got the shape \(5,\)"):
        LanguageModel("lstm", 11, 4, [4])(torch.zeros(5, dtype=torch.long))
    with pytest.raises(InputError, match=r"whole numbers, but got torch\.float32"):
        LanguageModel("lstm", 11, 4, [4])(torch.zeros(2, 5))
    with pytest.raises(InputError, match="expected hidden_dropout to be from 0 to 1"):
        LanguageModel("gru", 11, 4, [4], hidden_dropout=1.5)
    with pytest.raises(InputError, match=r"place where it acts, .*dropout=0\.5.* hidden_dropout"):
        LanguageModel("gru", 11, 4, [4, 4], dropout=0.5)
    tokens, state = torch.zeros(2, 5, dtype=torch.long), (torch.zeros(1, 2, 4),)
    with pytest.raises(InputError, match="the state of each of 2 layers, .* but got 1 tuple"):
        LanguageModel("gru", 11, 4, [4, 4])(tokens, state)


@pytest.mark.parametrize(("token", "rate"), [(11, 0.0), (-1, 0.5)])
def test_a_token_outside_the_vocabulary_is_named_with_its_place(token: int, rate: float) -> None:
    x = tokens()
    x[2, 4] = token
    model = LanguageModel("gru", 11, 4, [5], embedding_dropout=rate)
    message = rf"tokens from 0 to 10, the vocabulary of the model, but got {token} at \[2, 4\]"
    with pytest.raises(InputError, match=message):
        model(x)


@pytest.mark.parametrize("cell", ["decaynet", "decaynet_gru"])
@pytest.mark.parametrize("weight_dropout", [0.0, 0.2])
def test_pieces_that_begin_anew_need_no_length(cell: str, weight_dropout: float) -> None:
    model = LanguageModel(
        cell, 11, 4, [8, 5], carry=False, weight_dropout=weight_dropout, generator=seeded()
    ).eval()
    x, carried = tokens(), Carried(model)
    carried(x[:, :3])
    torch.testing.assert_close(carried(x), model(x)[0])
    told = LanguageModel(cell, 11, 4, [8, 5], length=6, generator=seeded()).eval()
    torch.testing.assert_close(model(x)[0], told(x)[0])


@pytest.mark.parametrize("name", ["carry", "tied", "learn_initial_state"])
def test_words_are_no_truth_values(name: str) -> None:
    options: dict[str, Any] = {name: "no"}
    with pytest.raises(InputError, match=f"{name} to be true or false, but got 'no'"):
        LanguageModel("gru", 11, 4, [4], **options)


@pytest.mark.parametrize("cell", ["gru", ["gru"]])
def test_hidden_dropout_needs_a_place_between_layers(cell: Any) -> None:
    message = r"two layers for hidden_dropout, .* but got hidden_dropout=0\.5 and one layer\. Try"
    with pytest.raises(InputError, match=message):
        LanguageModel(cell, 11, 4, [5], hidden_dropout=0.5)
    LanguageModel(cell, 11, 4, [5], hidden_dropout=0.0)


def test_a_model_that_reads_what_it_is_asked_for_is_refused() -> None:
    message = "one direction .* the next token is what it is asked for, but got bidirectional=True"
    with pytest.raises(InputError, match=message):
        LanguageModel("gru", 9, 4, [6], bidirectional=True)
    LanguageModel("gru", 9, 4, [6], bidirectional=False)


def test_tokens_that_are_no_tensor_are_refused() -> None:
    model, rows = LanguageModel("gru", 9, 4, [6]), [torch.tensor([1, 2, 3]), torch.tensor([4])]
    with pytest.raises(InputError, match=r"but got a PackedSequence\. Try x\[None\] for one"):
        model(pack_sequence(rows))
    with pytest.raises(InputError, match=r"\(batch, time\), but got a list\. .* pad_sequence"):
        model([[1, 2], [3, 4]])


@pytest.mark.parametrize("cell", ["urnn", "eurnn", "irc_sru"])
def test_weight_dropout_needs_a_matrix_on_the_state(cell: str) -> None:
    message = "recurrent matrix for weight_dropout=0.2, but .* has none. Try hidden_dropout"
    with pytest.raises(InputError, match=message):
        LanguageModel(cell, 9, 4, [8], weight_dropout=0.2)


@pytest.mark.parametrize(("options", "bound"), [({}, 0.1), ({"init": 0.4}, 0.4)])
def test_embeddings_start_evenly_within_their_bound(options: dict[str, Any], bound: float) -> None:
    model = LanguageModel("gru", 200, 50, [4], generator=seeded(), **options)
    assert 0.99 * bound < float(model.embedding.weight.abs().max().detach()) <= bound
    assert float(model.embedding.weight.std().detach()) == pytest.approx(bound / 3**0.5, rel=0.02)
