"""REINFORCE's loss against the NumPy reference and by hand."""

import numpy as np
import pytest
import torch

from attractor.cells import AuxiliaryReward, Baseline, initial_baseline, reinforce_loss
from attractor.cells.memory.reinforce import discounted_returns, learning_signal
from attractor.errors import InputError
from cells.against import agree, array
from reference import tardis


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_equals_the_reference(discount: float, scale: float) -> None:
    """Over three batches, so that the averages move; with rewards on both sides of the floor."""
    baseline = initial_baseline(like=torch.empty(0, dtype=torch.float64))
    mean, variance = np.zeros(6), 0.0
    for _ in range(3):
        rewards = scale * torch.randn(6, 4, dtype=torch.float64)
        log_probs = -torch.rand(6, 4, dtype=torch.float64)
        signal, _ = learning_signal(rewards, baseline, discount=discount)
        loss, baseline = reinforce_loss(log_probs, rewards, baseline, discount=discount)
        theirs, mean, variance = tardis.learning_signal(array(rewards.T), mean, variance, discount)
        agree(signal, theirs.T)
        agree(baseline.mean, mean)
        assert baseline.variance.item() == pytest.approx(variance)
        assert loss.item() == pytest.approx(tardis.reinforce_loss(array(log_probs.T), theirs))


def test_returns_by_hand() -> None:
    rewards = torch.tensor([[1.0], [-2.0], [4.0]])
    assert discounted_returns(rewards, 0.5)[:, 0].tolist() == [1.0, 0.0, 4.0]


def test_gradient_is_the_signal_and_stays_out_of_the_rewards() -> None:
    log_probs = torch.randn(5, 3, requires_grad=True)
    rewards = torch.randn(5, 3, requires_grad=True)
    signal, _ = learning_signal(rewards, initial_baseline(5), discount=0.9)
    loss, _ = reinforce_loss(log_probs, rewards, initial_baseline(5), discount=0.9)
    found, none = torch.autograd.grad(loss, (log_probs, rewards), allow_unused=True)
    torch.testing.assert_close(found, -signal / 3)
    assert none is None


def test_a_baseline_serves_sequences_of_any_length() -> None:
    baseline = initial_baseline()
    for steps in (3, 6, 2):
        rewards = torch.ones(steps, 2)
        _, baseline = reinforce_loss(torch.zeros(steps, 2), rewards, baseline, discount=1.0)
    expected = 1 - 0.9 ** torch.tensor([3.0, 3.0, 2.0, 1.0, 1.0, 1.0])
    torch.testing.assert_close(baseline.mean, expected)


def test_two_runs_with_one_baseline_do_not_meet() -> None:
    """The averages are a value: the old ones are as they were."""
    old = initial_baseline(2)
    reinforce_loss(torch.zeros(2, 2), torch.ones(2, 2), old, discount=1.0)
    assert old == Baseline(old.mean, old.variance)
    assert not old.mean.any()


def test_auxiliary_reward_equals_the_reference_and_trains_itself_only() -> None:
    reward = AuxiliaryReward(5, 2, 7, dtype=torch.float64)
    r = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    x, y = torch.randn(4, 3, 2, dtype=torch.float64), torch.randint(7, (4, 3))
    found = reward(r, x, y)
    weights = {"W_o_r": array(reward.weight_ro), "W_o_x": array(reward.weight_io)}
    for row in range(3):
        expected = tardis.auxiliary_reward(
            weights, array(r[:, row]), array(x[:, row]), array(y[:, row])
        )
        agree(found[:, row], expected)
    found.sum().backward()
    assert r.grad is None
    assert reward.weight_ro.grad is not None


def test_auxiliary_reward_is_zero_where_nothing_is_asked() -> None:
    y = torch.tensor([[1, -100], [-100, 0]])
    found = AuxiliaryReward(5, 2, 7)(torch.randn(2, 2, 5), torch.randn(2, 2, 2), y)
    assert torch.equal(found != 0, y != -100)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"\(5, 1, 3\) and \(5, 3\). .* states.log_prob\[:, 0\]"):
        reinforce_loss(torch.zeros(5, 1, 3), torch.zeros(5, 3), initial_baseline(), discount=1.0)
    with pytest.raises(InputError, match="discount from 0 to 1, but got 1.5"):
        reinforce_loss(torch.zeros(5, 3), torch.zeros(5, 3), initial_baseline(), discount=1.5)


def test_the_auxiliary_reward_trains_its_own_matrices_alone() -> None:
    reward = AuxiliaryReward(4, 3, 5)
    r, x = torch.randn(2, 4, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    reward(r, x, torch.tensor([0, 4])).sum().backward()
    assert r.grad is None
    assert x.grad is None
    assert all(p.grad is not None for p in reward.parameters())
