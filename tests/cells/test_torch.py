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


def test_positional_arguments_are_torchs() -> None:
    ours = attractor.LSTM(5, 7, 2, True, True, 0.5, True)
    theirs = nn.LSTM(5, 7, 2, True, True, 0.5, True)
    for name in ("num_layers", "batch_first", "dropout", "bidirectional"):
        assert getattr(ours, name) == getattr(theirs, name)
    ours.flatten_parameters()


def test_torchs_fourth_argument_of_rnn_is_not_taken_for_a_bias() -> None:
    with pytest.raises(attractor.InputError, match="bias, to be True or False, but got 'relu'"):
        attractor.RNN(5, 7, 1, "relu")


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
