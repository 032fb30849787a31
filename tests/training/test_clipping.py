"""A gradient is cut to its norm as torch cuts it, and where torch's norm overflows too."""

import math

import pytest
import torch
from torch import Tensor, nn

from attractor.models import SequenceClassifier
from attractor.tasks import Batch, Digits
from attractor.training import Plan, Supervised
from attractor.training.clipping import cut_to_norm


def drawn(scale: float) -> list[Tensor]:
    """Two tensors of unequal sizes with gradients, and one without."""
    generator = torch.Generator().manual_seed(3)
    tensors = [torch.zeros(5, 3, requires_grad=True), torch.zeros(7, requires_grad=True)]
    for one in tensors:
        one.grad = scale * torch.randn(one.shape, generator=generator)
    return [*tensors, torch.zeros(2, requires_grad=True)]


@pytest.mark.parametrize("limit", [0.3, 2.0, 1e3, math.inf])
def test_it_cuts_as_torch_does(limit: float) -> None:
    ours, theirs = drawn(4.0), drawn(4.0)
    norm = cut_to_norm(ours, limit)
    assert norm == float(nn.utils.clip_grad_norm_(theirs, limit))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=0)


@pytest.mark.parametrize("scale", [3e19, 1e30, 3e37])
def test_a_square_that_overflows_is_no_matter(scale: float) -> None:
    large, small = drawn(scale), drawn(1.0)
    norm = cut_to_norm(large, 0.3)
    assert norm == pytest.approx(scale * cut_to_norm(small, 0.3), rel=1e-6)
    for mine, other in zip(large, small, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-8)


def test_an_infinite_gradient_has_an_infinite_norm() -> None:
    tensors = drawn(1.0)
    assert tensors[1].grad is not None
    tensors[1].grad[2] = -math.inf
    assert cut_to_norm(tensors, 1.0) == math.inf


def test_without_gradients_there_is_nothing_to_cut() -> None:
    assert cut_to_norm([torch.zeros(3, requires_grad=True)], 1.0) == 0


class Loud(Digits):
    """Digits, with a loss that is far too large."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return 1e25 * super().loss(model, batch)


def test_a_training_goes_on_where_the_norm_overflows() -> None:
    generator = torch.Generator().manual_seed(0)
    model = SequenceClassifier("rnn", 8, 16, 10, generator=generator)
    training = Supervised(
        model,
        Loud(order="rows"),
        torch.optim.SGD(model.parameters(), lr=0.1),
        Plan(1, 16, clip=0.5),
        generator=generator,
    )
    before = [parameter.detach().clone() for parameter in model.parameters()]
    training.advance()
    moved = [new - old for new, old in zip(model.parameters(), before, strict=True)]
    assert training.norm > 1e23
    assert math.sqrt(sum(float(m.detach().square().sum()) for m in moved)) == pytest.approx(
        0.05, rel=1e-4
    )
