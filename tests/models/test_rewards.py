"""REINFORCE where not every step is asked, or bits are: against NumPy, and in each model."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor
from torch.nn.utils.rnn import pack_sequence

from attractor.cells import initial_baseline, log_likelihoods, reinforce_loss
from attractor.errors import InputError
from attractor.models import LanguageModel, PairClassifier, SequenceTagger, StrokeReader
from attractor.models.choices import Reward, drawn
from attractor.tasks import IGNORE, Penalised

TARDIS: dict[str, Any] = {
    "cells": 4, "address_size": 3, "content_size": 5, "estimator": "reinforce"
}  # fmt: skip
REWARDS: list[Reward] = ["likelihood", "auxiliary"]


def generator(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def test_choices_before_the_first_reward_earn_what_is_left_of_it() -> None:
    """Seven choices, of which the last three are rewarded."""
    log_probs = -torch.rand(7, 4, generator=generator(), dtype=torch.float64)
    rewards = -3 * torch.rand(3, 4, generator=generator(1), dtype=torch.float64)
    loss, after = reinforce_loss(log_probs, rewards, initial_baseline(like=rewards), discount=0.7)
    R = rewards.numpy()
    mean = 0.1 * R.mean(1)
    centred = R - mean[:, None]
    scale = max(1.0, np.sqrt(0.1 * centred.var()))
    expected = 0.0
    for t in range(7):
        for j in range(max(t, 4), 7):
            expected -= (0.7 ** (j - t) * centred[j - 4] / scale * log_probs[t].numpy()).sum() / 4
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(after.mean.numpy(), mean)
    with pytest.raises(InputError, match=r"\(3, 4\) and \(7, 4\)"):
        reinforce_loss(rewards, log_probs, initial_baseline(), discount=0.7)


def test_the_likelihood_of_bits() -> None:
    said = 2 * torch.randn(2, 3, 4, generator=generator(), dtype=torch.float64)
    y = torch.randint(2, (2, 3, 4), generator=generator(1))
    y[0, 1] = IGNORE
    p = 1 / (1 + np.exp(-said.numpy()))
    each = np.where(y == 1, np.log(p), np.log(1 - p)) * (y.numpy() != IGNORE)
    np.testing.assert_allclose(log_likelihoods(said, y).numpy(), each.sum(-1), rtol=1e-12)


def test_ragged_choices_end_together() -> None:
    model = StrokeReader("tardis", 2, 6, 4, generator=generator(), **TARDIS)
    layer, sizes = model.recurrent, (3, 5, 1)
    each = [torch.randn(n, layer.input_size, generator=generator(n)) for n in sizes]
    packed = pack_sequence(each, enforce_sorted=False)
    _, _, states = layer(packed, return_states=True)
    seen = drawn(packed, states, asked=2)
    assert seen.read is not None
    assert seen.log_prob.shape == (5, 3)
    for row, n in enumerate(sizes):
        assert not seen.log_prob[: 5 - n, row].any()
        torch.testing.assert_close(seen.log_prob[5 - n :, row], states.log_prob[:n, 0, row])
        kept = min(n, 2)
        torch.testing.assert_close(seen.read[2 - kept :, row], states.r[n - kept : n, 0, row])
        torch.testing.assert_close(seen.shown[row, 2 - kept :], each[row][n - kept :])


def taught(model: torch.nn.Module, output: Any, y: Tensor) -> Tensor:
    """The gradient that the choices of a model get by an answer; the price itself is zero."""
    assert isinstance(output, Penalised)
    assert not isinstance(output.penalty, Tensor)
    cost = output.penalty(y)
    torch.autograd.backward(cost)
    (grad,) = (p.grad for n, p in model.named_parameters() if n.endswith("attention_out"))
    assert grad is not None
    assert bool(grad.any())
    return cost.detach()


@pytest.mark.parametrize("reward", REWARDS)
def test_pairs(reward: Reward) -> None:
    model = PairClassifier("tardis", 20, 5, 6, 3, generator=generator(), reward=reward, **TARDIS)
    words = [torch.randint(20, (n,), generator=generator(n)) for n in (4, 7)]
    output = model(pack_sequence(words, enforce_sorted=False))
    assert output.said.shape == (2, 3)
    assert taught(model, output, torch.tensor([2, 0])) == 0
    assert model.classifier.choices is not None
    assert len(model.classifier.choices.mean) == 1
    assert model.eval()(pack_sequence(words, enforce_sorted=False)).shape == (2, 3)


@pytest.mark.parametrize("reward", REWARDS)
def test_strokes(reward: Reward) -> None:
    model = StrokeReader("tardis", 4, 6, 10, generator=generator(), reward=reward, **TARDIS)
    strokes = [torch.randn(n, 4, generator=generator(n)) for n in (9, 6)]
    y = torch.tensor([[1, 7, 3], [0, 0, 9]])
    packed = pack_sequence(strokes)
    output = model(packed, y)
    assert output.said.shape == (2, 3, 10)
    assert taught(model, output, y) == 0
    assert model.choices is not None
    assert len(model.choices.mean) == 3
    assert model.eval()(packed, 3).shape == (2, 3, 10)


def test_a_stroke_reader_teaches_the_choices_of_its_reading_too() -> None:
    model = StrokeReader("tardis", 4, 6, 10, generator=generator(), reward="likelihood", **TARDIS)
    x, y = torch.randn(2, 8, 4, generator=generator(1)), torch.tensor([[1, 7], [4, 2]])
    torch.manual_seed(3)
    output = model(x, y)
    torch.manual_seed(3)
    fed = torch.zeros(2, 2, 15)
    fed[:, 0, 4] = 1
    fed[torch.arange(2), 1, 5 + y[:, 0]] = 1
    sequence = torch.cat([torch.nn.functional.pad(x, (0, 11)), fed], 1)
    heard, _, states = model.recurrent(sequence, return_states=True)
    said, log_probs = heard[:, 8:], states.log_prob[:, 0]
    assert log_probs[:8].any()
    torch.testing.assert_close(output.said, model.readout(said))
    rewards = log_likelihoods(model.readout(said), y).T
    expected, _ = reinforce_loss(log_probs, rewards, initial_baseline(), discount=0.9)
    (wanted,) = torch.autograd.grad(
        expected / 2, [p for n, p in model.named_parameters() if n.endswith("attention_out")]
    )
    taught(model, output, y)
    (grad,) = (p.grad for n, p in model.named_parameters() if n.endswith("attention_out"))
    torch.testing.assert_close(grad, wanted)


@pytest.mark.parametrize("reward", REWARDS)
def test_a_language_model_has_both_prices(reward: Reward) -> None:
    given = {"reward": reward, "activity": 2.0, "weight_dropout": 0.2, **TARDIS}
    model = LanguageModel("tardis", 12, 5, [6], generator=generator(), **given)
    x = torch.randint(12, (3, 9), generator=generator(1))
    torch.manual_seed(0)
    output, state = model(x)
    torch.manual_seed(0)
    dropped, _ = model.layers[0](model.embedding(x))
    assert taught(model, output, x).item() == pytest.approx(2 * dropped.square().mean().item())
    assert len(state) == 1
    with pytest.raises(InputError, match="one layer whose choices REINFORCE trains, but got 2"):
        LanguageModel("tardis", 12, 5, [6, 6], **given)


@pytest.mark.parametrize("reward", REWARDS)
def test_bits(reward: Reward) -> None:
    model = SequenceTagger("tardis", 3, 6, 4, generator=generator(), reward=reward, **TARDIS)
    x = torch.randn(2, 5, 3, generator=generator(1))
    y = torch.randint(2, (2, 5, 4), generator=generator(2)).float()
    y[:, :2] = IGNORE
    taught(model, model(x), y)
