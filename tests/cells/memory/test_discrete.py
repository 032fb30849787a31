"""Choosing one cell: the noise, the choice, its gradients."""

import pytest
import torch
from torch import Tensor

from attractor.cells.memory import choose, gumbel, logistic, one_hot_of_largest, straight_through

close = torch.testing.assert_close
LOGITS = torch.tensor([0.5, -1.0, 2.0, 0.0])


def test_gumbel_noise_samples_the_softmax() -> None:
    torch.manual_seed(0)
    noise = gumbel(40_000, 4, like=LOGITS)
    frequencies = choose(LOGITS.expand_as(noise), noise).weights.mean(0)
    close(frequencies, torch.softmax(LOGITS, -1), atol=0.01, rtol=0)


@pytest.mark.parametrize("logit", [-1.5, 0.0, 0.7])
def test_logistic_noise_opens_a_gate_with_its_probability(logit: float) -> None:
    """One Gumbel draw instead would open a gate of logit 0 in 63 of 100 cases."""
    torch.manual_seed(0)
    opened = (torch.tensor(logit) + logistic(40_000, like=LOGITS) > 0).float().mean()
    close(opened, torch.tensor(logit).sigmoid(), atol=0.01, rtol=0)


def test_noise_is_where_and_what_it_should_be() -> None:
    for draw in (gumbel, logistic):
        noise = draw(2, 3, like=torch.zeros(1, dtype=torch.float64, device="meta"))
        assert (noise.shape, noise.dtype, noise.is_meta) == ((2, 3), torch.float64, True)


def test_without_noise_the_likeliest() -> None:
    weights, log_prob = choose(LOGITS)
    assert weights.tolist() == [0, 0, 1, 0]
    close(log_prob, torch.log_softmax(LOGITS, -1)[2])


def test_log_probability_has_a_gradient_and_the_choice_has_none() -> None:
    logits = LOGITS.clone().requires_grad_()
    weights, log_prob = choose(logits, torch.tensor([9.0, 0.0, 0.0, 0.0]))
    assert not weights.requires_grad
    (gradient,) = torch.autograd.grad(log_prob, logits)
    close(gradient, torch.tensor([1.0, 0, 0, 0]) - torch.softmax(LOGITS, -1))


def test_straight_through_is_exact_forwards_and_soft_backwards() -> None:
    soft_logits = (LOGITS / 3).requires_grad_()
    soft = torch.softmax(soft_logits, -1)
    hard = one_hot_of_largest(LOGITS)
    values = torch.randn(4)
    found = straight_through(hard, soft)
    assert torch.equal(found, hard)
    (gradient,) = torch.autograd.grad((found * values).sum(), soft_logits, retain_graph=True)
    (expected,) = torch.autograd.grad((soft * values).sum(), soft_logits)
    close(gradient, expected)


def test_choices_under_vmap() -> None:
    logits = torch.randn(3, 5, 4)

    def one(logits: Tensor) -> Tensor:
        return choose(logits).weights

    assert torch.equal(torch.func.vmap(one)(logits), one_hot_of_largest(logits))


def test_half_precision_is_widened() -> None:
    assert choose(LOGITS.bfloat16()).log_prob.dtype == torch.float32
