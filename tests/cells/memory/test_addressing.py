"""Finding a place in a memory, by hand and at the edges."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.cells.memory import cosine, sharpen, shift, standardise, unit

close = torch.testing.assert_close


def test_cosine_by_hand() -> None:
    key = torch.tensor([[[3.0, 4.0], [0.0, -2.0]]])
    memory = torch.tensor([[[4.0, 3.0], [0.0, 5.0], [-6.0, -8.0]]])
    expected = torch.tensor([[[0.96, 0.8, -1.0], [-0.6, -1.0, 0.8]]])
    close(cosine(key, unit(memory, floor=1e-8), floor=1e-8), expected)


def test_below_the_floor() -> None:
    """A vector shorter than the floor is divided by the floor."""
    close(unit(torch.tensor([0.5e-4, 0.0]), floor=1e-4), torch.tensor([0.5, 0.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cosine_of_nothing_has_a_finite_slope_twice(dtype: torch.dtype) -> None:
    key = torch.zeros(1, 1, 3, dtype=dtype, requires_grad=True)
    memory = torch.zeros(1, 4, 3, dtype=dtype, requires_grad=True)
    found = cosine(key, unit(memory, floor=1e-8), floor=1e-8).square().sum()
    grads = torch.autograd.grad(found, (key, memory), create_graph=True)
    twice = torch.autograd.grad([g.sum() for g in grads], (key, memory), allow_unused=True)
    assert all(g is None or g.isfinite().all() for g in (*grads, *twice))


def test_shift_by_hand() -> None:
    weights = torch.tensor([1.0, 0.0, 0.0, 0.0])
    close(shift(weights, torch.tensor([0.2, 0.5, 0.3])), torch.tensor([0.5, 0.3, 0.0, 0.2]))
    close(shift(weights, torch.tensor([0.0, 1.0])), weights)
    close(shift(weights, torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])), torch.eye(4)[2])


def test_sharpen_by_hand() -> None:
    weights = torch.tensor([0.5, 0.3, 0.0, 0.2])
    close(sharpen(weights, torch.tensor([2.0])), torch.tensor([0.25, 0.09, 0.0, 0.04]) / 0.38)
    close(sharpen(weights, torch.tensor([1.0])), weights)


def test_sharpen_where_the_powers_vanish() -> None:
    """(1/128)^40 is zero in single precision, and so would be the sum to divide by."""
    weights = torch.full((128,), 1 / 128, requires_grad=True)
    sharpness = torch.tensor([40.0], requires_grad=True)
    found = sharpen(weights, sharpness)
    close(found, torch.full((128,), 1 / 128))
    grads = torch.autograd.grad((found * torch.randn(128)).sum(), (weights, sharpness))
    assert all(g.isfinite().all() for g in grads)


def test_sharpen_zeros_has_a_finite_slope_twice() -> None:
    weights = torch.tensor([1.0, 0.0, 1e-30, 1e-12], requires_grad=True)
    sharpness = torch.tensor([1.5], requires_grad=True)
    found = (sharpen(weights, sharpness) * torch.arange(4.0)).sum()
    grads = torch.autograd.grad(found, (weights, sharpness), create_graph=True)
    twice = torch.autograd.grad([g.sum() for g in grads], (weights, sharpness))
    assert all(g.isfinite().all() for g in (*grads, *twice))


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    cells=st.integers(1, 9),
    width=st.integers(1, 5),
    sharpness=st.floats(1, 50),
)
def test_weights_stay_weights(seed: int, cells: int, width: int, sharpness: float) -> None:
    g = torch.Generator().manual_seed(seed)
    weights = torch.softmax(4 * torch.randn(2, cells, generator=g), -1)
    shifts = torch.softmax(torch.randn(2, width, generator=g), -1)
    moved = shift(weights, shifts)
    close(moved.sum(-1), torch.ones(2))
    sharp = sharpen(moved, torch.full((2, 1), sharpness))
    close(sharp.sum(-1), torch.ones(2))
    assert (sharp >= 0).all()
    assert torch.equal(sharp.argmax(-1), moved.argmax(-1))


def test_half_precision_is_widened() -> None:
    weights = torch.full((4,), 0.25, dtype=torch.bfloat16)
    assert sharpen(weights, torch.ones(1, dtype=torch.bfloat16)).dtype == torch.float32
    vectors = torch.ones(2, 3, dtype=torch.bfloat16)
    assert unit(vectors, floor=1e-8).dtype == torch.float32
    assert unit(vectors.double(), floor=1e-8).dtype == torch.float64


def test_standardise_by_hand() -> None:
    counts = torch.tensor([3.0, 1.0, 1.0, 3.0])
    close(standardise(counts, eps=0.0), torch.tensor([1.0, -1.0, -1.0, 1.0]))
    assert not standardise(torch.zeros(4), eps=1e-5).any()
    found = standardise(torch.tensor([1.0, 0.0]), eps=0.75)
    close(found, torch.tensor([0.5, -0.5]) / math.sqrt(0.25 + 0.75))
