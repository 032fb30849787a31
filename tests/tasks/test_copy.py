"""The copying memory task, against sequences written by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator

from attractor.errors import InputError
from attractor.tasks import IGNORE, CopyMemory
from attractor.tasks.copy import copy_tokens
from tasks.models import saying


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_tokens_of_two_sequences_of_different_lag() -> None:
    symbols = torch.tensor([[3, 5], [1, 2]])
    x, y = copy_tokens(symbols, torch.tensor([4, 1]), marker=9)
    assert x.tolist() == [[3, 5, 0, 0, 0, 9, 0, 0], [1, 2, 9, 0, 0, 0, 0, 0]]
    i = IGNORE
    assert y.tolist() == [[0, 0, 0, 0, 0, 0, 3, 5], [0, 0, 0, 1, 2, i, i, i]]


@pytest.mark.parametrize("lag", [1, 2, 100, 200])
def test_a_drawn_sequence_is_laid_out_as_in_the_thesis(lag: int) -> None:
    batch = CopyMemory(lag=lag).draw(16, generator=seeded())
    x, y = batch.x, batch.y
    assert x.shape == (16, lag + 20, 10)
    assert y.shape == (16, lag + 20)
    assert torch.equal(x.sum(-1), torch.ones(16, lag + 20))
    tokens = x.argmax(-1)
    assert tokens[:, :10].min() >= 1
    assert tokens[:, :10].max() <= 8
    assert (tokens[:, 10 : lag + 9] == 0).all()
    assert (tokens[:, lag + 9] == 9).all()
    assert (tokens[:, lag + 10 :] == 0).all()
    assert (y[:, : lag + 10] == 0).all()
    assert torch.equal(y[:, lag + 10 :], tokens[:, :10])


def test_all_symbols_are_equally_likely() -> None:
    y = CopyMemory(lag=1).draw(4000, generator=seeded()).y
    share = y[:, 11:].flatten().bincount(minlength=9)[1:] / 40000
    torch.testing.assert_close(share, torch.full((8,), 1 / 8), atol=0.01, rtol=0)


@pytest.mark.parametrize(("lag", "expected"), [(100, 0.173), (200, 0.095)])
def test_the_baseline_is_the_loss_of_a_model_without_memory(lag: int, expected: float) -> None:
    task = CopyMemory(lag=lag)
    batch = task.draw(8, generator=seeded())
    # sure of the blanks, and of nothing about the symbols
    output = torch.full((*batch.y.shape, 9), -1e9)
    output[:, : lag + 10, 0] = 0
    output[:, lag + 10 :, 1:] = 0
    by_hand = 10 * math.log(8) / (lag + 20)
    assert task.loss(saying(output), batch).item() == pytest.approx(by_hand, rel=1e-5)
    assert task.baseline == pytest.approx(by_hand)
    assert round(task.baseline, 3) == expected


def test_the_baseline_of_variable_lags_is_the_loss_over_all_steps_asked() -> None:
    task = CopyMemory(lag=30, variable=True)
    y = task.draw(20000, generator=seeded()).y
    recalled, asked = int((y > 0).sum()), int((y != IGNORE).sum())
    assert recalled == 10 * 20000
    assert task.baseline == pytest.approx(recalled * math.log(8) / asked, rel=0.01)


def test_variable_lags_run_from_one_to_the_longest() -> None:
    batch = CopyMemory(lag=5, variable=True).draw(2000, generator=seeded())
    lags = batch.x[..., 9].argmax(1) - 9
    counts = lags.bincount()
    assert counts[0] == 0
    assert len(counts) == 6
    assert counts[1:].min() > 300
    assert torch.equal((batch.y != IGNORE).sum(1), lags + 20)


def test_a_perfect_answer_has_no_loss_and_full_accuracy() -> None:
    task = CopyMemory(lag=9, variable=True)
    batch = task.draw(8, generator=seeded())
    output = 1e4 * torch.nn.functional.one_hot(batch.y.clamp(min=0), 9).float()
    asked = int((batch.y != IGNORE).sum())
    assert task.measure(saying(output), batch) == {"loss": (0, asked), "accuracy": (asked, asked)}


def test_other_alphabets_and_lengths() -> None:
    task = CopyMemory(lag=3, symbols=2, length=4)
    batch = task.draw(5, generator=seeded())
    assert batch.x.shape == (5, 11, 4)
    assert task.output_size == 3
    assert batch.y.max() == 2


@pytest.mark.parametrize("option", ["lag", "symbols", "length"])
def test_impossible_options_are_refused(option: str) -> None:
    options: dict[str, Any] = {option: 0}
    with pytest.raises(InputError, match=f"expected {option} to be at least"):
        CopyMemory(**options)


def test_problems_follow_each_other_without_a_reset() -> None:
    task = CopyMemory(lag=3, symbols=5, length=2, problems=4)
    batch = task.draw(6, generator=seeded())
    assert batch.x.shape == (6, 4 * 7, 7)
    tokens, y = batch.x.argmax(-1).view(6, 4, 7), batch.y.view(6, 4, 7)
    assert torch.equal(y[:, :, 5:], tokens[:, :, :2])
    assert (tokens[:, :, 4] == 6).all()
    assert not torch.equal(tokens[:, 0], tokens[:, 1])
    assert task.baseline == CopyMemory(lag=3, symbols=5, length=2).baseline


def test_one_problem_is_drawn_as_ever() -> None:
    """The same numbers as before there were several, so that old runs go on."""
    batch = CopyMemory(lag=4, length=3).draw(2, generator=seeded(5))
    symbols = torch.randint(1, 9, (3, 2), generator=seeded(5)).T
    x, y = copy_tokens(symbols, torch.tensor([4, 4]), 9)
    assert torch.equal(batch.x.argmax(-1), x)
    assert torch.equal(batch.y, y)


@pytest.mark.parametrize("variable", [False, True])
def test_random_labels_have_nothing_to_do_with_what_is_shown(variable: bool) -> None:
    task = CopyMemory(lag=5, variable=variable, random_labels=True)
    batch = task.draw(2000, generator=seeded())
    symbols = batch.y[batch.y > 0].view(2000, 10)  # where it is asked is as ever
    shown = batch.x.argmax(-1)[:, :10]
    assert abs((symbols == shown).float().mean().item() - 1 / 8) < 0.01
    share = symbols.flatten().bincount(minlength=9)[1:] / symbols.numel()
    torch.testing.assert_close(share, torch.full((8,), 1 / 8), atol=0.01, rtol=0)


def test_options_of_problems_are_checked() -> None:
    with pytest.raises(InputError, match="problems to be at least 1, but got 0"):
        CopyMemory(problems=0)
    with pytest.raises(InputError, match="random_labels"):
        CopyMemory(random_labels="yes")  # type: ignore[arg-type]


def test_sizes_of_numpy_are_taken_as_pythons_own() -> None:
    few: Any = np.uint8(255)  # to which it cannot add one
    task = CopyMemory(lag=np.int64(5), symbols=few, length=np.int64(2))  # type: ignore[arg-type]
    assert [task.input_size, task.output_size, task.marker] == [257, 256, 256]
    assert type(task.input_size) is int
