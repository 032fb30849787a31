"""The denoising task, against sequences written by hand."""

import math

import pytest
import torch
from torch import Generator

from attractor.errors import InputError
from attractor.tasks import IGNORE, Denoise
from attractor.tasks.denoise import denoise_tokens
from tasks.models import saying


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_tokens_of_two_sequences() -> None:
    symbols, positions = torch.tensor([[3, 5], [1, 2]]), torch.tensor([[0, 3], [1, 2]])
    x, y = denoise_tokens(symbols, positions, lag=4, marker=9)
    assert x.tolist() == [[3, 0, 0, 5, 9, 0, 0], [0, 1, 2, 0, 9, 0, 0]]
    i = IGNORE
    assert y.tolist() == [[i, i, i, i, i, 3, 5], [i, i, i, i, i, 1, 2]]


@pytest.mark.parametrize("lag", [10, 11, 100])
def test_a_drawn_sequence_holds_its_symbols_in_order(lag: int) -> None:
    batch = Denoise(lag=lag).draw(16, generator=seeded())
    x, y = batch.x, batch.y
    assert x.shape == (16, lag + 11, 10)
    tokens = x.argmax(-1)
    assert (tokens[:, lag] == 9).all()
    assert (tokens[:, lag + 1 :] == 0).all()
    assert (y[:, : lag + 1] == IGNORE).all()
    for sequence, answer in zip(tokens[:, :lag], y[:, lag + 1 :], strict=True):
        # ten are left: no two symbols share a place, so the places are drawn without replacement
        assert sequence[sequence != 0].tolist() == answer.tolist()


def test_places_are_equally_likely() -> None:
    x = Denoise(lag=20).draw(5000, generator=seeded()).x
    taken = (x[:, :20, 0] == 0).float().mean(0)
    torch.testing.assert_close(taken, torch.full((20,), 0.5), atol=0.03, rtol=0)


@pytest.mark.parametrize("symbols", [2, 8])
def test_symbols_are_equally_likely_and_the_marker_is_none_of_them(symbols: int) -> None:
    task = Denoise(lag=9, symbols=symbols, length=5)
    batch = task.draw(4000, generator=seeded())
    assert batch.x.shape == (4000, 15, symbols + 2)
    assert batch.x.shape[2] == task.input_size == task.output_size + 1
    assert (batch.x[:, 9, symbols + 1] == 1).all()
    answers = batch.y[:, 10:]
    assert answers.shape == (4000, 5)
    for place in range(5):
        shares = answers[:, place].bincount(minlength=symbols + 1) / 4000
        expected = torch.full((symbols,), 1 / symbols)
        torch.testing.assert_close(shares[1:], expected, atol=0.03, rtol=0)
    assert (answers[:, 0] == answers[:, 1]).float().mean() == pytest.approx(1 / symbols, abs=0.03)
    assert (answers[0] != answers[1]).any()


def test_only_the_last_steps_count() -> None:
    task = Denoise(lag=30)
    batch = task.draw(4, generator=seeded())
    output = torch.randn(*batch.y.shape, 9, generator=seeded())
    assert task.measure(saying(output), batch)["loss"][1] == 40
    other = output.clone()
    other[:, :31] = 0
    assert torch.equal(task.loss(saying(output), batch), task.loss(saying(other), batch))


def test_the_baseline_is_the_loss_of_a_model_without_memory() -> None:
    task = Denoise(lag=30)
    batch = task.draw(4, generator=seeded())
    output = torch.full((*batch.y.shape, 9), -1e9)
    output[..., 1:] = 0
    assert task.loss(saying(output), batch).item() == pytest.approx(math.log(8))
    assert task.baseline == pytest.approx(math.log(8))


def test_more_symbols_than_places_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least length=10, .* but got lag=9\. Try lag=100\."):
        Denoise(lag=9)
    with pytest.raises(InputError, match=r"at least length=3, .* but got lag=2\. Try lag=30\."):
        Denoise(lag=2, length=3)
    for name, least in (("lag", 1), ("symbols", 2), ("length", 1)):
        given: dict[str, int] = {name: least - 1}
        with pytest.raises(InputError, match=f"{name} to be at least {least}, but got"):
            Denoise(**given)
    assert Denoise(lag=3, symbols=2, length=3).marker == 3
