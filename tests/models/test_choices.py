"""Choices of where to read that are trained in the one loop, against NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.models import SequenceTagger
from attractor.models.choices import Reward, drawn
from attractor.tasks import IGNORE, Batch, CopyMemory, Judged, Penalised
from attractor.tasks.answers import cross_entropy
from reference import tardis

SIZES = {"cells": 4, "address_size": 3, "content_size": 5, "estimator": "reinforce"}


def tagger(reward: Reward | None, **options: Any) -> SequenceTagger:
    generator = Generator().manual_seed(0)
    given = {**SIZES, "reward": reward, **options}
    return SequenceTagger("tardis", 3, 6, 7, generator=generator, **given).double()


def shown(seed: int, steps: int = 9) -> tuple[Tensor, Tensor]:
    g = Generator().manual_seed(seed)
    x = torch.randn(4, steps, 3, generator=g, dtype=torch.float64)
    y = torch.randint(7, (4, steps), generator=g)
    y[1, 5:] = IGNORE
    return x, y


def log_softmax(scores: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The log-likelihood of y ``(batch, time)``, zero where nothing is asked."""
    norm = np.log(np.exp(scores).sum(-1))
    picked = np.take_along_axis(scores, np.maximum(y, 0)[..., None], -1)[..., 0]
    return np.where(y == IGNORE, 0.0, picked - norm)


@pytest.mark.parametrize("reward", ["likelihood", "auxiliary"])
def test_the_loss_of_choices_is_that_of_the_reference(reward: Reward) -> None:
    """Over two batches, of which the second is shorter, so that the averages move."""
    model = tagger(reward, discount=0.6)
    assert model.choices is not None
    mean, variance = np.zeros(9), 0.0
    for seed, steps in ((0, 9), (1, 7)):
        x, y = shown(seed, steps)
        torch.manual_seed(seed)
        said = model(x)
        assert isinstance(said, Penalised)
        torch.manual_seed(seed)  # the same choices again
        output, _, states = model.recurrent(x, return_states=True)
        torch.testing.assert_close(said.said, model.readout(output))
        if reward == "auxiliary":
            auxiliary = model.choices.auxiliary
            assert auxiliary is not None
            r = states.r[:, 0].transpose(0, 1)
            scores = (r @ auxiliary.weight_ro.T + x @ auxiliary.weight_io.T).detach()
        else:
            scores = said.said.detach()
        rewards = log_softmax(scores.numpy(), y.numpy())
        signal, now, variance = tardis.learning_signal(rewards, mean[:steps], variance, 0.6)
        mean[:steps] = now
        log_probs = states.log_prob[:, 0].detach().numpy().T
        expected = tardis.reinforce_loss(log_probs, signal) / steps
        if reward == "auxiliary":
            expected -= rewards.sum() / (y != IGNORE).sum().item()
        found = model.choices(said.said, drawn(x, states), y)
        assert found.item() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(model.choices.mean.numpy(), mean)


@pytest.mark.parametrize("reward", [None, "likelihood", "auxiliary"])
def test_only_rewards_train_the_choices(reward: Reward | None) -> None:
    x, y = shown(0)
    model = tagger(reward)
    torch.autograd.backward(cross_entropy(model, Batch(x, y)))
    (grad,) = (p.grad for n, p in model.named_parameters() if n.endswith("attention_out"))
    assert (grad is not None and bool(grad.any())) == (reward is not None)


def test_a_batch_that_asks_for_nothing_costs_nothing() -> None:
    model, (x, y) = tagger("auxiliary"), shown(0)
    assert model.choices is not None
    output, _, states = model.recurrent(x, return_states=True)
    nothing = torch.full_like(y, IGNORE)
    assert model.choices(model.readout(output), drawn(x, states), nothing).item() == 0


def test_the_choices_are_taught_and_the_loss_is_that_of_the_task() -> None:
    """The same gradients as of the choices' own loss, beside a loss that can be read."""
    grads = []
    for teach in (True, False):
        model, (x, y) = tagger("auxiliary"), shown(0)
        assert model.choices is not None
        torch.manual_seed(3)
        if teach:
            said = model(x)
            assert not isinstance(said.penalty, Tensor)
            cost = said.penalty(y)
            assert cost.item() == 0
        else:
            output, _, states = model.recurrent(x, return_states=True)
            cost = model.choices(model.readout(output), drawn(x, states), y)
        torch.autograd.backward(cost)
        grads.append([p.grad for p in model.parameters() if p.grad is not None])
    assert len(grads[0]) == len(grads[1]) > 0
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


def test_in_evaluation_nothing_is_priced() -> None:
    model = tagger("auxiliary").eval()
    x, _ = shown(0)
    assert model(x).shape == (4, 9, 7)


def test_the_averages_go_on_from_a_saved_state() -> None:
    model, (x, y) = tagger("likelihood"), shown(0)
    cross_entropy(model, Batch(x, y))
    other = tagger("likelihood")
    other.load_state_dict(model.state_dict())
    assert other.choices is not None
    assert model.choices is not None
    assert len(other.choices.mean) == 9
    assert torch.equal(other.choices.mean, model.choices.mean)
    assert torch.equal(other.choices.variance, model.choices.variance)
    assert other.choices.variance > 0


@pytest.mark.parametrize(
    ("cell", "options", "message"),
    [
        ("lstm", {}, "a cell that draws where to read"),
        ("tardis", {"estimator": "gumbel"}, r"draws where to read, .* got TARDISCell\(3, 6, "),
        ("dntm", {"discrete": False}, "a cell that draws where to read"),
        ("tardis", {"estimator": "reinforce", "num_layers": 2}, "one layer in one direction"),
        ("dntm", {"discrete": True, "reward": "auxiliary"}, "whose state has what was read"),
        ("tardis", {"estimator": "reinforce", "reward": "praise"}, "likelihood"),
        ("tardis", {"estimator": "reinforce", "discount": 1.5}, "discount to be from 0 to 1"),
    ],
)
def test_what_cannot_be_rewarded_is_refused(
    cell: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        SequenceTagger(cell, 3, 6, 7, **{"reward": "likelihood", **options})


def test_discrete_dntm_and_packed_sequences() -> None:
    model = SequenceTagger("dntm", 3, 6, 7, cells=5, discrete=True, reward="likelihood")
    x, y = shown(0)
    torch.autograd.backward(cross_entropy(model, Batch(x.float(), y)))
    packed = torch.nn.utils.rnn.pack_sequence([x[0].float(), x[1, :5].float()])
    with pytest.raises(InputError, match="sequences of one length"):
        model(packed)


@pytest.mark.parametrize(
    ("outputs", "y"), [(1, torch.tensor([[0, 1, 1]])), (2, torch.full((1, 3, 2), 0.3))]
)
def test_answers_without_a_likelihood_are_refused(outputs: int, y: Tensor) -> None:
    """A number at each step, and numbers that are no bits: a reward would be of something else."""
    model = SequenceTagger("tardis", 3, 6, outputs, estimator="reinforce", reward="likelihood")
    task = Judged(CopyMemory(lag=3), lambda said, y: said.square().mean())
    with pytest.raises(InputError, match=r"whole numbers from 0 to [01] for a reward.* Leave rew"):
        task.loss(model.train(), Batch(torch.zeros(1, 3, 3), y))
