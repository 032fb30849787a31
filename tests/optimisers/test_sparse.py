"""Pruned networks: how much is gone, files that are smaller for it, and fewer units."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import (
    compact,
    dense_state_dict,
    load_sparse,
    save_sparse,
    sparse_state_dict,
    sparsity,
)
from contracts.cells import seeded
from contracts.optimisers import Net


def prune(model: Any, share: float, seed: int = 0) -> Any:
    """Set about a share of the weights to zero."""
    g = seeded(seed)
    for parameter in model.parameters():
        gone = torch.rand(parameter.shape, generator=g) < share
        parameter.data[gone] = 0
    return model


def bits(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().view(-1).view(torch.uint8).tolist()


def same_bits(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].shape == tensor.shape
        assert found[name].dtype == tensor.dtype
        assert bits(found[name]) == bits(tensor)


def test_sparsity() -> None:
    model: Any = MLP([10, 5, 2])
    assert sparsity(model) == 0
    model.layers[0].weight.data[0] = 0
    model.layers[1].bias.data = torch.tensor([-0.0, 1e-45])
    assert sparsity(model) == 11 / 67
    assert sparsity(nn.Identity()) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97, 1.0])
def test_a_sparse_state_dict_has_an_exact_inverse(dtype: torch.dtype, share: float) -> None:
    model = prune(Net(width=30), share).to(dtype)
    weight = model.features[0].weight.data.view(-1)
    weight[:4] = torch.tensor([-0.0, float("nan"), float("-inf"), 1e-7]).to(dtype)
    same_bits(dense_state_dict(sparse_state_dict(model)), model.state_dict())


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(0, 9), max_size=4),
    share=st.floats(0, 1),
    transposed=st.booleans(),
)
def test_any_shape(shape: list[int], share: float, transposed: bool) -> None:
    values = prune(nn.ParameterList([torch.randn(shape, generator=seeded(1))]), share)
    if transposed and len(shape) > 1:
        values[0].data = values[0].data.transpose(0, 1)
    same_bits(dense_state_dict(sparse_state_dict(values)), values.state_dict())


@pytest.mark.parametrize(
    ("share", "ratio"),
    [(0.0, 1.01), (0.49, 0.56), (0.6068, 0.44), (0.6894, 0.36), (0.8371, 0.21)],
)
def test_files_are_smaller_by_what_is_gone(share: float, ratio: float, tmp_path: Path) -> None:
    """At the published shares of M2SGD: a bit for each weight, four bytes for each kept one."""
    model = prune(MLP([784, 32, 10], generator=seeded()), share)
    dense, sparse = tmp_path / "dense.safetensors", tmp_path / "sparse.safetensors"
    save_file(model.state_dict(), dense)
    save_sparse(model, sparse)
    assert sparse.stat().st_size < ratio * dense.stat().st_size
    fresh = MLP([784, 32, 10])
    fresh.load_state_dict(load_sparse(sparse))
    same_bits(fresh.state_dict(), model.state_dict())


def test_tied_weights_and_numbers_of_other_kinds(tmp_path: Path) -> None:
    model = prune(nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9), nn.BatchNorm1d(9)), 0.9)
    model[1].weight = model[0].weight
    model.register_buffer("flags", torch.zeros(40, dtype=torch.bool))
    model.register_buffer("wave", torch.zeros(40, dtype=torch.complex64))
    save_sparse(model, tmp_path / "m.safetensors")
    same_bits(load_sparse(tmp_path / "m.safetensors"), model.state_dict())


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_sparse(prune(nn.Linear(50, 3), 0.9), path)
    whole = path.read_bytes()
    for contents in (whole[:-4], b"", whole[9:]):
        path.write_bytes(contents)
        with pytest.raises(InputError, match="missing, damaged or of another kind. Save"):
            load_sparse(path)
    save_file(nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(InputError, match="of another kind"):
        load_sparse(path)
    with pytest.raises(InputError, match="missing"):
        load_sparse(tmp_path / "nowhere")
    odd = nn.Module()
    odd.register_parameter("a:b", nn.Parameter(torch.ones(1)))
    with pytest.raises(InputError, match="names without a colon, but got 'a:b'"):
        sparse_state_dict(odd)


def says_the_same(model: Any) -> Any:
    before = copy.deepcopy(model.state_dict())
    smaller = compact(model)
    x = torch.randn(50, model.layers[0].in_features, generator=seeded(3))
    torch.testing.assert_close(smaller(x), model(x), atol=1e-6, rtol=1e-6)
    same_bits(model.state_dict(), before)
    fresh = MLP(
        [x.shape[1], *sizes(smaller)], activation=model.activation
    )  # what is left is a network like any other
    fresh.load_state_dict(smaller.state_dict())
    torch.testing.assert_close(fresh(x), smaller(x), atol=0, rtol=0)
    return smaller


def sizes(model: Any) -> list[int]:
    return [layer.out_features for layer in model.layers]


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_units_that_nothing_reads_go(activation: Any) -> None:
    model: Any = MLP([6, 8, 5, 3], activation=activation, generator=seeded())
    model.layers[2].weight.data[:, [1, 2]] = 0
    model.layers[1].weight.data[[0, 3, 4], 7] = 0  # read by units 1 and 2 alone, which go
    assert sizes(says_the_same(model)) == [7, 3, 3]


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_units_that_read_nothing_go(activation: Any) -> None:
    model: Any = MLP([6, 8, 5, 3], activation=activation, generator=seeded())
    model.layers[0].weight.data[[0, 4]] = 0
    model.layers[0].bias.data[0] = 0
    model.layers[1].weight.data[2] = 0
    model.layers[1].weight.data[2, 4] = 1.5  # reads a unit that is constant, so it is one too
    assert sizes(says_the_same(model)) == [6, 4, 3]


def test_nothing_goes_where_everything_matters() -> None:
    assert sizes(says_the_same(MLP([6, 8, 3], generator=seeded()))) == [8, 3]
    assert sizes(says_the_same(MLP([6, 3], generator=seeded()))) == [3]


def test_a_network_that_is_a_constant_keeps_one_unit_a_layer() -> None:
    model: Any = MLP([6, 8, 5, 3], generator=seeded())
    model.layers[1].weight.data.zero_()
    smaller = says_the_same(model)
    assert sizes(smaller) == [1, 1, 3]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    share=st.floats(0.3, 0.98),
    hidden=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    activation=st.sampled_from(["relu", "tanh", "sigmoid"]),
)
def test_any_pruned_network_says_the_same(
    seed: int, share: float, hidden: list[int], activation: Any
) -> None:
    model = prune(MLP([4, *hidden, 2], activation=activation, generator=seeded(seed)), share, seed)
    once = says_the_same(model)
    assert sizes(compact(once)) == sizes(once)  # all that can go goes at once


@pytest.mark.parametrize("model", [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)), Net()])
def test_only_perceptrons_are_compacted(model: nn.Module) -> None:
    with pytest.raises(InputError, match="attractor.models.MLP, .* Save it with save_sparse"):
        compact(model)
