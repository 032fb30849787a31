"""The copying memory task, against sequences written by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Generator

from attractor.errors import InputError
from attractor.tasks import IGNORE, CopyMemory
from attractor.tasks.copy import copy_tokens


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_tokens_of_two_sequences_of_different_lag() -> None:
    symbols = torch.tensor([[3, 1], [5, 2]])
    x, y = copy_tokens(symbols, torch.tensor([4, 1]), marker=9)
    assert x.T.tolist() == [[3, 5, 0, 0, 0, 9, 0, 0], [1, 2, 9, 0, 0, 0, 0, 0]]
    i = IGNORE
    assert y.T.tolist() == [[0, 0, 0, 0, 0, 0, 3, 5], [0, 0, 0, 1, 2, i, i, i]]


@pytest.mark.parametrize("lag", [1, 2, 100, 200])
def test_a_drawn_sequence_is_laid_out_as_in_the_thesis(lag: int) -> None:
    x, y = CopyMemory(lag=lag).draw(16, generator=seeded())
    assert x.shape == (lag + 20, 16, 10)
    assert y.shape == (lag + 20, 16)
    assert torch.equal(x.sum(-1), torch.ones(lag + 20, 16))
    tokens = x.argmax(-1)
    assert tokens[:10].min() >= 1
    assert tokens[:10].max() <= 8
    assert (tokens[10 : lag + 9] == 0).all()
    assert (tokens[lag + 9] == 9).all()
    assert (tokens[lag + 10 :] == 0).all()
    assert (y[: lag + 10] == 0).all()
    assert torch.equal(y[lag + 10 :], tokens[:10])


def test_all_symbols_are_equally_likely() -> None:
    _, y = CopyMemory(lag=1).draw(4000, generator=seeded())
    share = y[11:].flatten().bincount(minlength=9)[1:] / 40000
    torch.testing.assert_close(share, torch.full((8,), 1 / 8), atol=0.01, rtol=0)


@pytest.mark.parametrize(("lag", "expected"), [(100, 0.173), (200, 0.095)])
def test_the_baseline_is_the_loss_of_a_model_without_memory(lag: int, expected: float) -> None:
    task = CopyMemory(lag=lag)
    _, y = task.draw(8, generator=seeded())
    # sure of the blanks, and of nothing about the symbols
    output = torch.full((*y.shape, 9), -1e9)
    output[: lag + 10, :, 0] = 0
    output[lag + 10 :, :, 1:] = 0
    by_hand = 10 * math.log(8) / (lag + 20)
    assert task.loss(output, y).item() == pytest.approx(by_hand, rel=1e-5)
    assert task.baseline == pytest.approx(by_hand)
    assert round(task.baseline, 3) == expected


def test_the_baseline_of_variable_lags_is_the_loss_over_all_steps_asked() -> None:
    task = CopyMemory(lag=30, variable=True)
    _, y = task.draw(20000, generator=seeded())
    recalled, asked = int((y > 0).sum()), task.weight(y)
    assert recalled == 10 * 20000
    assert task.baseline == pytest.approx(recalled * math.log(8) / asked, rel=0.01)


def test_variable_lags_run_from_one_to_the_longest() -> None:
    x, y = CopyMemory(lag=5, variable=True).draw(2000, generator=seeded())
    lags = x[..., 9].argmax(0) - 9
    counts = lags.bincount()
    assert counts[0] == 0
    assert len(counts) == 6
    assert counts[1:].min() > 300
    assert torch.equal((y != IGNORE).sum(0), lags + 20)


def test_a_perfect_answer_has_no_loss_and_full_accuracy() -> None:
    task = CopyMemory(lag=9, variable=True)
    _, y = task.draw(8, generator=seeded())
    output = 1e4 * torch.nn.functional.one_hot(y.clamp(min=0), 9).float()
    metrics = task.metrics(output, y)
    assert metrics["loss"] == 0
    assert metrics["accuracy"] == 1


def test_other_alphabets_and_lengths() -> None:
    task = CopyMemory(lag=3, symbols=2, length=4)
    x, y = task.draw(5, generator=seeded())
    assert x.shape == (11, 5, 4)
    assert task.output_size == 3
    assert y.max() == 2


@pytest.mark.parametrize("option", ["lag", "symbols", "length"])
def test_impossible_options_are_refused(option: str) -> None:
    options: dict[str, Any] = {option: 0}
    with pytest.raises(InputError, match=f"expected {option} to be at least"):
        CopyMemory(**options)
