"""Going to the end: every process alike."""

from typing import Any

import torch
from torch import nn

from attractor import meta
from attractor.meta import Problem
from attractor.models import MLP
from attractor.optimisers import MetaSGD
from attractor.tasks import Digits
from attractor.training import Row, finish


class Halving:
    """Halves a number; tells of every second step."""

    def __init__(self, start: float) -> None:
        self.value, self.step = start, 0

    @property
    def done(self) -> bool:
        return self.step == 5

    def advance(self) -> list[Row]:
        self.value, self.step = self.value / 2, self.step + 1
        return [] if self.step % 2 else [{"split": "train", "value": self.value}]

    def state_dict(self) -> Any:
        return {"value": self.value, "step": self.step}

    def load_state_dict(self, state: Any) -> None:
        self.value, self.step = state["value"], state["step"]


def test_it_ends_and_tells_each_row_with_its_step_as_it_comes() -> None:
    told: list[list[Row]] = []
    process = Halving(24.0)
    rows = finish(process, on_rows=told.append)
    assert rows == [
        {"step": 2, "split": "train", "value": 6.0},
        {"step": 4, "split": "train", "value": 1.5},
    ]
    assert told == [[row] for row in rows]
    assert process.done
    assert finish(process) == []


def test_a_rule_is_trained_to_its_end() -> None:
    def learner(generator: torch.Generator) -> nn.Module:
        return MLP([64, 4, 10], generator=generator)

    told: list[Row] = []
    rows = meta.train(
        MetaSGD(size=310),
        [Problem(learner, Digits(order="flat"), 8)],
        learners=2,
        steps=6,
        unroll=3,
        on_row=told.append,
        generator=torch.Generator().manual_seed(0),
    )
    assert told == rows
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert meta.Row is Row
