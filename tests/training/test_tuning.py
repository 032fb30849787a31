"""Choosing a rate: which one is taken, what is told of each, and going on where it was stopped."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from attractor.state import cloned
from attractor.training import Diverged, Tuning

LOSSES = {0.1: math.nan, 0.2: 0.7, 0.3: 0.4, 0.4: 0.5, 0.5: None}
"""By rate, the loss on validation data after two updates; the last one diverges at the second."""


class Training:
    """Two updates, of which nothing is computed."""

    def __init__(self, rate: float) -> None:
        self.rate, self.step, self.plan = rate, 0, SimpleNamespace(steps=2)

    @property
    def done(self) -> bool:
        return self.step == 2

    def advance(self) -> list[Any]:
        self.step += 1
        if self.done and LOSSES[self.rate] is None:
            raise Diverged("the loss became inf", "Try another.")
        return [{"split": "train", "loss": 1.0}]

    def measure(self, split: str) -> dict[str, float | None]:
        assert split == "valid"
        return {"loss": LOSSES[self.rate]}

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]


def tuning(*grid: float) -> Tuning:
    made: Any = Training
    return Tuning(grid, made)


def test_the_lowest_finite_loss_gives_the_rate_and_is_told() -> None:
    process = tuning(*LOSSES)
    assert process.planned == 10
    rows = []
    while not process.done:
        rows += process.advance()
    assert process.step == 10
    assert process.rate == 0.3
    assert process.losses == [math.inf, 0.7, 0.4, 0.5, math.inf]
    assert rows == [
        {"split": "tuning", "lr": 0.2, "loss": 0.7},
        {"split": "tuning", "lr": 0.3, "loss": 0.4},
        {"split": "tuning", "lr": 0.4, "loss": 0.5},
    ]


def test_the_best_so_far_is_known_before_the_end() -> None:
    process = tuning(0.2, 0.3, 0.4)
    while len(process.losses) < 1:
        process.advance()
    assert (process.rate, process.done) == (0.2, False)


@pytest.mark.parametrize("after", range(1, 11))
def test_it_goes_on_where_it_was_stopped(after: int) -> None:
    whole, again = tuning(*LOSSES), tuning(*LOSSES)
    for _ in range(after):
        whole.advance()
    again.load_state_dict(cloned(whole.state_dict()))
    assert (again.step, again.done) == (after, after == 10)
    while not whole.done:
        assert again.current.rate == whole.current.rate  # type: ignore[attr-defined]
        assert again.advance() == whole.advance()
    assert (again.step, again.rate, again.losses) == (10, 0.3, whole.losses)
