"""The multilayer perceptron against its equation."""

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.models import MLP


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_it_is_its_equation() -> None:
    model = MLP([6, 5, 4, 3], activation="tanh", generator=generator(), dtype=torch.float64)
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    h = x.reshape(7, 6).numpy()
    weights = [p.detach().numpy() for p in model.parameters()]
    for W, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        h = np.tanh(h @ W.T + b)
    expected = h @ weights[-2].T + weights[-1]
    np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(("hidden", "count"), [(32, 25_450), (20, 15_910)])
def test_the_base_learners_have_their_sizes(hidden: int, count: int) -> None:
    assert sum(p.numel() for p in MLP([784, hidden, 10]).parameters()) == count


def test_starts_have_their_bounds_and_come_from_the_generator() -> None:
    first, second = (MLP([100, 50, 10], init="xavier", generator=generator()) for _ in range(2))
    weight = first.layers[0].weight
    assert isinstance(weight, torch.Tensor)
    assert torch.equal(weight, second.layers[0].weight)  # type: ignore[arg-type]
    assert 0.95 * 0.2 < float(weight.detach().abs().max()) <= 0.2
    assert not any(p.any() for name, p in first.named_parameters() if name.endswith("bias"))
    like_torch = MLP([100, 50, 10], generator=generator()).layers[0].weight
    assert isinstance(like_torch, torch.Tensor)
    assert 0.095 < float(like_torch.detach().abs().max()) <= 0.1


def test_dropout_acts_in_training_only() -> None:
    model = MLP([4, 50, 2], dropout=0.5)
    x = torch.ones(3, 4)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_bad_sizes_and_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"sizes of the input.* got \[5\]"):
        MLP([5])
    with pytest.raises(InputError, match="activation"):
        MLP([5, 5], activation="rely")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="init"):
        MLP([5, 5], init="he")  # type: ignore[arg-type]
