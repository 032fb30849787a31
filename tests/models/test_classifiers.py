"""HCN, Res-MLP and heads against their equations and published sizes."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from attractor import InputError
from attractor.models import HCN, MLP, MultiHead, ResMLP, SequenceTagger

Floats = NDArray[np.float64]


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_published_sizes() -> None:
    assert count(HCN([784, 100, 100, 10])) == 168_110
    assert count(MLP([784, 175, 175, 10])) == 169_935  # Large-MLP
    assert count(MLP([784, 100, 100, 10])) == count(ResMLP([784, 100, 100, 10])) == 89_610


def relu(x: Floats) -> Floats:
    return np.maximum(x, 0)


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def apply(layer: nn.Module, x: Floats) -> Floats:
    W, b = (p.detach().numpy() for p in layer.parameters())
    result: Floats = x @ W.T + b
    return result


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_hcn_is_its_equations(depth: int) -> None:
    model = HCN([6, *[5] * depth, 3], init="torch").double()
    x = torch.randn(4, 6, dtype=torch.float64)
    k = relu(apply(model.first, x.numpy()))
    for layer, gate in zip(model.layers, model.gates, strict=True):
        T = sigmoid(apply(gate, x.numpy()))
        k = (1 - T) * k + T * relu(apply(layer, k))
    np.testing.assert_allclose(model(x).detach(), apply(model.last, k), atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_res_mlp_is_its_equations(depth: int) -> None:
    model = ResMLP([6, *[5] * depth, 3], init="torch").double()
    x = torch.randn(4, 6, dtype=torch.float64)
    n = relu(apply(model.first, x.numpy()))
    for layer in model.layers:
        n = n + relu(apply(layer, n))
    np.testing.assert_allclose(model(x).detach(), apply(model.last, n), atol=1e-12)


def test_gates_scale_the_gradient_of_their_layer() -> None:
    """Section 6.2.4: the gradient of layer 2 is T times that of a layer without a highway."""
    model = HCN([6, 5, 5, 3]).double()
    weight = model.get_parameter("layers.0.weight")
    found = []
    for T in (0.25, 1 - 1e-12):
        with torch.no_grad():
            model.get_parameter("gates.0.weight").zero_()
            model.get_parameter("gates.0.bias").fill_(np.log(T / (1 - T)))  # T everywhere
            model.get_parameter("last.bias").zero_()
        y = model(torch.ones(4, 6, dtype=torch.float64))
        (gradient,) = torch.autograd.grad(y.sum(), weight)
        found.append(gradient)
    torch.testing.assert_close(found[0], 0.25 * found[1])


@pytest.mark.parametrize("network", [HCN, ResMLP])
def test_weights_are_the_generators(network: type[HCN] | type[ResMLP]) -> None:
    one, same = (
        network([6, 5, 5, 3], generator=torch.Generator().manual_seed(0)) for _ in range(2)
    )
    for a, b in zip(one.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)
    for name, p in one.named_parameters():
        if name.endswith("bias"):
            assert not p.any()
        else:
            assert p.abs().max() <= (6 / sum(p.shape)) ** 0.5


@pytest.mark.parametrize("network", [HCN, ResMLP])
def test_dropout_is_for_training_only(network: type[HCN] | type[ResMLP]) -> None:
    model = network([6, 50, 50, 3], dropout=0.5)
    x = torch.randn(4, 6)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


@pytest.mark.parametrize("network", [HCN, ResMLP])
@pytest.mark.parametrize("sizes", [[6, 3], [6, 5, 4, 3], [6, 0, 3]])
def test_layers_that_cannot_be_passed_by_are_refused(
    network: type[HCN] | type[ResMLP], sizes: list[int]
) -> None:
    with pytest.raises(
        InputError, match=rf"equally wide, and of the output of {network.__name__}, but got"
    ):
        network(sizes)


def test_heads_answer_for_their_task_alone() -> None:
    body = MLP([4, 5, 6])
    model = MultiHead(body, [(0, 1), (4, 5), (2, 3)])
    x, task = torch.randn(3, 4), torch.tensor([1, 2, 0])
    y = model(x, task)
    allowed = [[4, 5], [2, 3], [0, 1]]
    for row, (answers, classes) in enumerate(zip(y, allowed, strict=True)):
        assert answers.isfinite().nonzero().flatten().tolist() == classes
        assert torch.equal(answers[classes], body(x)[row, classes])
    assert "hidden" not in model.state_dict()


def test_heads_answer_at_each_step_of_packed_sequences() -> None:
    body = SequenceTagger("gru", 2, 5, 4)
    model = MultiHead(body, [(0, 1), (2, 3)])
    sequences = [torch.randn(n, 2) for n in (2, 4, 3)]
    task = torch.tensor([1, 0, 1])
    packed = model(pack_sequence(sequences, enforce_sorted=False), task)
    for x, one, answers in zip(sequences, task, unpack_sequence(packed), strict=True):
        alone = model(x[None], one[None])[0]
        torch.testing.assert_close(answers, alone)
        assert answers.isfinite().all(0).nonzero().flatten().tolist() == [
            2 * int(one),
            2 * int(one) + 1,
        ]
