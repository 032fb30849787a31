"""The matrix of rotations by its kernel, beside the one that torch multiplies out."""

from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import Recurrent
from attractor.cells.kernels import STATUS
from attractor.cells.kernels.fused import fused
from attractor.cells.kernels.rotation import turns
from attractor.cells.rotations import angles, layout, matrix
from contracts.cells import seeded

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


def draw(*shape: int, dtype: torch.dtype) -> Tensor:
    return (3 * torch.randn(shape, generator=seeded(sum(shape)), dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(
    ("size", "capacity"), [(2, None), (32, None), (2, 1), (2, 4), (13, 7), (16, 5)]
)
def test_matrix_and_gradients_are_those_of_torch(
    size: int, capacity: int | None, complex_: bool, dtype: torch.dtype
) -> None:
    layers = layout(object, size, capacity)
    counts = [angles(layers), angles(layers), size][: 3 if complex_ else 1]
    given = [draw(count, dtype=dtype).requires_grad_() for count in counts]
    expected = matrix(size, layers, *given)
    found = turns(size, capacity, *given)
    assert len(found) == 1 + complex_
    joined = torch.cat(found, dim=1)
    weight = draw(*expected.shape, dtype=dtype)
    both = [torch.autograd.grad((w * weight).sum(), given) for w in (joined, expected)]
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(joined, expected, rtol=0, atol=tolerance)
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=20 * tolerance)


def test_one_half_alone_has_gradients_and_strides_do_not_matter() -> None:
    size, layers = 8, layout(object, 8, None)
    room = draw(2 * angles(layers), dtype=torch.float64).requires_grad_()
    given = (room[::2], room[1::2], draw(size, dtype=torch.float64))
    whole, half = matrix(size, layers, *given), turns(size, None, *given)[1]
    weight = draw(2 * size, size, dtype=torch.float64)
    found, expected = (
        torch.autograd.grad((w * weight).sum(), room)[0] for w in (half, whole[:, size:])
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["eurnn", "goru"])
def test_many_units_keep_to_the_layers(name: str) -> None:
    few, many = (Recurrent(name, 1, size, capacity=1) for size in (512, 513))
    x = torch.zeros(2, 1, 1)
    for module, there in ((few, True), (many, False)):
        cell: Any = module.cells[0]
        assert (fused(cell, x, cell.initial_state(1), None, False) is not None) == there


def test_nothing_moves_a_real_state_without_bias_and_its_gradient_comes_through() -> None:
    module = Recurrent("eurnn", 2, 8, real=True, bias=False, dtype=torch.float64)
    x = torch.zeros(3, 1, 2, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(module(x)[0].sum(), x)
    assert (grad != 0).all()
