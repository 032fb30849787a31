"""Computed targets that train networks, tried on a few samples of noise and a few updates."""

from pathlib import Path
from typing import Any

import pytest
import torch

from attractor.continual import Learner, train
from attractor.models import MLP
from attractor.reproduction.computed import growing, learners, strokes
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream, split_images
from tasks.test_strokes import write


def noise(tasks: int) -> Stream:
    """Tasks of a few images of noise, with the classes of digits."""
    g = torch.Generator().manual_seed(0)
    data = Data(torch.randn(20, 784, generator=g), torch.arange(20) % 10)
    each = [ArrayTask(f"task {n}", n, data, data, tuple(range(10))) for n in range(tasks)]
    return Stream("noise", each)


def test_gradients_are_told_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def learner(*given: Any, iterations: int, **more: Any) -> Learner:
        return Learner(*given, iterations=5, **more)

    monkeypatch.setattr(learners, "image_sets", lambda **_: noise(2))
    monkeypatch.setattr(learners, "Learner", learner)
    for course in learners.two_tasks.__wrapped__().values():
        assert len(course["gradient"]) == len(course["loss"]) == 10
        assert min(course["gradient"]) > 1e-4


def test_shares_of_rates_are_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*given: Any, iterations: int, **more: Any) -> Any:
        return train(*given, iterations=1, **more)

    monkeypatch.setattr(learners, "permuted_images", lambda **_: noise(10))
    monkeypatch.setattr(learners, "train", trained)
    found = [one.value for one in learners.rates(None)]
    assert 1 < max(found) <= 100
    assert min(found) >= 0


def test_a_network_that_grows_is_trained_before_it_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "STEPS", 100)
    (task, _) = split_images(dataset="digits", size=5).arrays()
    model = MLP([64, 16, 10], generator=torch.Generator().manual_seed(0))
    assert growing.trained(model, task, 0) > 0.6


def test_lengths_of_strokes_are_means_of_digits_and_of_sequences(tmp_path: Path) -> None:
    write(tmp_path)  # a digit of class c has c + 2 steps
    found = {one.column: one.value for one in strokes.lengths(tmp_path)}
    assert found["mean strokes of a digit"] == pytest.approx(4.5 + 2, rel=0.01)
    for digits in (5, 10, 15):
        length = found[f"mean length of a sequence, {digits} digits"]
        assert length == pytest.approx(digits * 6.5, rel=0.05)
