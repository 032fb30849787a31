"""rnn, lstm and gru are torch.nn's with copied weights, in outputs and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils._pytree import tree_leaves

import attractor
from attractor.cells import Recurrent, copy_from_torch, copy_to_torch

KINDS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("rnn", nn.RNN, {}, {}),
    ("rnn", nn.RNN, {"nonlinearity": "relu"}, {"nonlinearity": "relu"}),
    ("lstm", nn.LSTM, {}, {}),
    ("lstm", nn.LSTM, {"proj_size": 3}, {"proj_size": 3}),
    ("gru", nn.GRU, {"reset": "after"}, {}),
]
FORMS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"batch_first": True, "bias": False},
]


def pair(kind: Any, form: dict[str, Any]) -> Any:
    key, theirs, ours, other = kind
    torch.manual_seed(0)
    target = theirs(5, 7, **other, **form)
    return copy_from_torch(Recurrent(key, 5, 7, **ours, **form), target), target


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_in_outputs_and_gradients(kind: Any, form: dict[str, Any]) -> None:
    ours, theirs = pair(kind, form)
    x = torch.randn(6, 4, 5)
    answers, gradients = [], []
    for layer in (ours, theirs):
        inputs = x.clone().requires_grad_()
        output, state = layer(inputs)
        loss = output.square().mean() + sum(leaf.sin().mean() for leaf in tree_leaves(state))
        loss.backward()
        answers.append([output, *tree_leaves(state)])
        gradients.append(inputs.grad)
    torch.testing.assert_close(answers[0], answers[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-6, rtol=0)
    # the gradients of the weights, brought into torch's layout by the copying itself
    moved = type(theirs)(5, 7, **kind[3], **form)
    for parameter in ours.parameters():
        parameter.data = parameter.grad
    copy_to_torch(ours, moved)
    for name, expected in theirs.named_parameters():
        if "bias_hh" not in name:  # ours is the sum of the two, so bias_ih has its gradient
            found: Tensor = dict(moved.named_parameters())[name]
            torch.testing.assert_close(found.data, expected.grad, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_on_packed_and_unbatched_input_with_a_given_state(kind: Any) -> None:
    ours, theirs = pair(kind, {"num_layers": 2, "bidirectional": True})
    sequences = [torch.randn(n, 5) for n in (3, 6, 1, 6)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    start = torch.utils._pytree.tree_map(torch.randn_like, theirs(packed)[1])
    (a, s), (b, t) = ours(packed, start), theirs(packed, start)
    torch.testing.assert_close(a.data, b.data, atol=1e-6, rtol=0)
    torch.testing.assert_close(tree_leaves(s), tree_leaves(t), atol=1e-6, rtol=0)
    assert all(torch.equal(p, q) for p, q in zip(a[1:], b[1:], strict=True))
    (a, s), (b, t) = ours(sequences[0]), theirs(sequences[0])
    torch.testing.assert_close(a, b, atol=1e-6, rtol=0)
    torch.testing.assert_close(tree_leaves(s), tree_leaves(t), atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_come_back(kind: Any) -> None:
    ours, theirs = pair(kind, {})
    x = torch.randn(4, 2, 5)
    before = theirs(x)[0]
    fresh = type(theirs)(5, 7, **kind[3])
    torch.testing.assert_close(copy_to_torch(ours, fresh)(x)[0], before)


POSITIONAL: list[tuple[str, tuple[Any, ...]]] = [
    ("LSTM", (5, 7, 2, False, True, 0.5, True, 3, "meta", torch.float64)),
    ("GRU", (5, 7, 2, False, True, 0.5, True)),
    ("RNN", (5, 7, 2, "relu", False, True, 0.5, True)),
]


@pytest.mark.parametrize(("name", "arguments"), POSITIONAL)
def test_positional_arguments_are_torchs(name: str, arguments: tuple[Any, ...]) -> None:
    ours, theirs = getattr(attractor, name)(*arguments), getattr(nn, name)(*arguments)
    for option in ("num_layers", "batch_first", "dropout", "bidirectional"):
        assert getattr(ours, option) == getattr(theirs, option)
    assert (ours.cells[0].bias is not None) == theirs.bias
    assert getattr(ours.cells[0], "proj_size", 0) == theirs.proj_size
    assert getattr(ours.cells[0], "nonlinearity", "relu") == getattr(theirs, "nonlinearity", "relu")
    weight = next(ours.parameters())
    assert (weight.device, weight.dtype) == (theirs.weight_ih_l0.device, theirs.weight_ih_l0.dtype)
    ours.flatten_parameters()


def test_positional_arguments_of_any_layer() -> None:
    arguments = (5, 7, 2, True, True, 0.5, True, "meta", torch.float64)
    for layer in (attractor.GRU(*arguments), Recurrent("gru", *arguments)):
        found = (layer.num_layers, layer.batch_first, layer.dropout, layer.bidirectional)
        assert found == (2, True, 0.5, True)
        weight = next(layer.parameters())
        assert (weight.device.type, weight.dtype) == ("meta", torch.float64)
    assert Recurrent("lstm", 5, 7, 1, False).get_submodule("cells.0").bias is None


def test_arguments_out_of_place_are_refused() -> None:
    layers: Any = attractor
    with pytest.raises(attractor.InputError, match="GRU expects bias to be True .* got 'relu'"):
        layers.GRU(5, 7, 1, "relu")
    with pytest.raises(TypeError, match="multiple values for keyword argument 'proj_size'"):
        layers.LSTM(5, 7, 1, True, False, 0.0, False, 3, proj_size=3)
    with pytest.raises(TypeError, match="GRU takes at most 9 positional .* bias.*, but got 10"):
        layers.GRU(5, 7, 1, True, False, 0.0, False, None, None, 1)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_saved_loads(kind: Any, form: dict[str, Any]) -> None:
    key, theirs, ours, other = kind
    model = nn.ModuleDict({"rnn": theirs(5, 7, **other, **form), "head": nn.Linear(7, 2)})
    saved = model.state_dict()
    before = {name: tensor.clone() for name, tensor in saved.items()}
    layer = Recurrent(key, 5, 7, **ours, **form)
    fresh = nn.ModuleDict({"rnn": layer, "head": nn.Linear(7, 2)})
    assert str(fresh.load_state_dict(saved)) == "<All keys matched successfully>"
    assert {name: tensor.tolist() for name, tensor in saved.items()} == {
        name: tensor.tolist() for name, tensor in before.items()
    }
    x = torch.randn(6, 4, 5)
    torch.testing.assert_close(layer(x)[0], model["rnn"](x)[0], atol=1e-6, rtol=0)
    alone = Recurrent(key, 5, 7, **ours, **form)
    alone.load_state_dict(model["rnn"].state_dict())
    assert torch.equal(alone(x)[0], layer(x)[0])


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        (attractor.GRU(5, 7), nn.GRU(5, 7), 'Try GRU\\(..., reset="after"\\)'),
        (Recurrent("janet", 5, 7), nn.LSTM(5, 7), "an RNN, LSTM or GRU to load .* got JANETCell"),
        (attractor.LSTM(5, 7), nn.LSTM(5, 7, 2), 'Unexpected key.*"weight_ih_l1"'),
        (attractor.LSTM(5, 7, 2), nn.LSTM(5, 7), 'Missing key.*"cells.1.weight_ih"'),
        (attractor.LSTM(5, 7, bias=False), nn.LSTM(5, 7), 'Unexpected key.*"bias_ih_l0"'),
        (attractor.LSTM(5, 7), nn.LSTM(5, 7, bias=False), 'Missing key.*"cells.0.bias"'),
        (attractor.LSTM(5, 7), nn.LSTM(5, 7, proj_size=3), 'Unexpected key.*"weight_hr_l0"'),
        (attractor.LSTM(5, 7), nn.GRU(5, 7), "size mismatch for cells.0.weight_ih"),
        (attractor.LSTM(5, 7, peepholes=True), nn.LSTM(5, 7), 'Missing key.*"cells.0.peephole"'),
    ],
)
def test_what_torch_saved_of_another_layer_is_refused(ours: Any, theirs: Any, text: str) -> None:
    with pytest.raises((attractor.InputError, RuntimeError), match=f"(?s){text}"):
        ours.load_state_dict(theirs.state_dict())


@pytest.mark.parametrize("training", [False, True])
def test_packed_sequences_in_a_compiled_layer(training: bool) -> None:
    layer = attractor.LSTM(5, 7, 2, bidirectional=True).train(training)
    packed = pack_sequence([torch.randn(n, 5) for n in (3, 6, 1, 6)], enforce_sorted=False)
    torch.compiler.reset()
    run: Any = torch.compile(layer, backend="eager")
    with torch.set_grad_enabled(training):
        found, state = run(packed)
    expected, end = layer(packed)
    torch.testing.assert_close(found.data, expected.data)
    torch.testing.assert_close(state, end)
    assert found.data.requires_grad == training


def test_dropout_is_on_the_outputs_of_every_layer_but_the_last() -> None:
    layer = attractor.GRU(5, 7, 3, dropout=0.5)
    x = torch.ones(40, 8, 5)
    read: list[Tensor] = []

    def spy(cell: Any) -> None:
        prepare = cell.prepare

        def look(given: Tensor) -> Any:
            read.append(given)
            return prepare(given)

        cell.prepare = look

    for cell in layer.cells:
        spy(cell)
    output, _ = layer(x)
    assert torch.equal(read[0], x)
    for given in read[1:]:
        assert 0.4 < (given == 0).float().mean() < 0.6
    assert not (output == 0).any()


def test_one_layer_has_nothing_to_drop() -> None:
    with pytest.warns(
        UserWarning, match="dropout=0.9 acts between layers, but there is one"
    ) as told:
        layer = attractor.GRU(5, 7, dropout=0.9)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="Try num_layers=2, or leave dropout out") as told:
        Recurrent(["gru"], 5, [7], dropout=0.9)
    assert told[0].filename == __file__
    x = torch.randn(4, 2, 5)
    assert torch.equal(layer(x)[0], layer.eval()(x)[0])


def test_dropout_between_layers_only_in_training() -> None:
    layer = attractor.GRU(5, 7, 2, dropout=1.0)
    x = torch.randn(4, 2, 5)
    silent, _ = layer(x)
    blind, _ = layer(torch.randn(4, 2, 5))
    torch.testing.assert_close(silent, blind)
    layer.eval()
    assert not torch.equal(layer(x)[0], silent)


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        (("gru", {}), nn.GRU(5, 7), 'Try GRU\\(..., reset="after"\\)'),
        (("janet", {}), nn.LSTM(5, 7), "same kind .* but got JANETCell and torch's LSTM"),
        (("lstm", {}), nn.LSTM(5, 8), "same sizes and options"),
        (("lstm", {"peepholes": True}), nn.LSTM(5, 7), "same sizes and options"),
        (("rnn", {}), nn.RNN(5, 7, nonlinearity="relu"), "same sizes and options"),
    ],
)
def test_layers_that_do_not_match_are_refused(ours: Any, theirs: Any, text: str) -> None:
    key, options = ours
    with pytest.raises(attractor.InputError, match=text):
        copy_from_torch(Recurrent(key, 5, 7, **options), theirs)
