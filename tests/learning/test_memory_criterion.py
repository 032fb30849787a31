"""The networks with a memory solve short copy and associative recall.

The thesis (Table 3.3) calls a model successful if its validation cost, the binary cross entropy of
a bit, is below 0.02. Here the cost is the loss of our tasks: the cross entropy of a softmax over
whole symbols of 3 bits, as a mean over all steps for copy, blanks included, and over the answers
for recall. A bit is never less likely than the symbol it belongs to, so on the steps that count,
0.02 for the symbol is at least as strict as 0.02 for each of its bits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells import AuxiliaryReward, initial_baseline, reinforce_loss
from attractor.models import SequenceTagger
from attractor.tasks import IGNORE, TASKS, Batch, Task
from learning.training import evaluate, updates

CRITERION = 0.02
TASK_OPTIONS: dict[str, dict[str, int]] = {
    "copy": {"lag": 5, "length": 5},
    "recall": {"items": 3, "least": 2, "length": 1, "bits": 3},
}


class Trial(NamedTuple):
    """A network, and the updates within which seed 0 solves each task, with a third to spare."""

    cell: str
    units: int
    lr: float
    most: dict[str, int]
    options: dict[str, Any]


TRIALS = {
    "tardis": Trial("tardis", 120, 3e-3, {"copy": 1000, "recall": 1900}, {}),
    "tardis-reinforce": Trial(
        "tardis", 120, 3e-3, {"copy": 2300, "recall": 1600}, {"estimator": "reinforce"}
    ),
    "ntm": Trial("ntm", 100, 1e-2, {"copy": 1500, "recall": 1100}, {"cells": 16}),
    "dntm": Trial(
        "dntm", 100, 3e-3, {"copy": 3100, "recall": 1600}, {"cells": 16, "content_size": 16}
    ),
}


def plain(task: Task, model: SequenceTagger) -> Callable[[Batch], Tensor]:
    return lambda batch: task.loss(model, batch)


def reinforced(
    task: Task, model: SequenceTagger, reward: AuxiliaryReward
) -> Callable[[Batch], Tensor]:
    """The loss of the answers, that of the reads, and that of the reward R' itself."""
    baseline = initial_baseline()

    def loss(batch: Batch) -> Tensor:
        nonlocal baseline
        output, _, states = model.recurrent(batch.x, return_states=True)
        x, y = batch.x.transpose(0, 1), batch.y.transpose(0, 1)  # rewards go by steps
        rewards = reward(states.r[:, 0], x, y)
        reads, baseline = reinforce_loss(states.log_prob[:, 0], rewards, baseline, discount=0.9)
        answers = F.cross_entropy(
            model.readout(output).flatten(0, 1), batch.y.flatten(), ignore_index=IGNORE
        )
        total: Tensor = answers + reads / len(x) - rewards.mean()
        return total

    return loss


def solve(key: str, name: str, seed: int, most: int) -> tuple[int, float]:
    """Updates until the criterion is met, in hundreds, and the least validation loss."""
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    trial = TRIALS[name]
    task = TASKS[key](**TASK_OPTIONS[key])
    model = SequenceTagger(
        trial.cell, task.input_size, trial.units, task.output_size, generator=g, **trial.options
    )
    parts = nn.ModuleList([model])
    loss = plain(task, model)
    if name == "tardis-reinforce":
        reward = AuxiliaryReward(4 + 32, task.input_size, task.output_size, generator=g)
        parts.append(reward)
        loss = reinforced(task, model, reward)
    best = float("inf")
    for done in updates(task, loss, parts.parameters(), lr=trial.lr, seed=seed):
        if done % 100 == 0:
            best = min(best, evaluate(task, model, "valid")[0])
        if best < CRITERION or done >= most:
            return done, best
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
@pytest.mark.parametrize("key", TASK_OPTIONS)
def test_validation_loss_falls_below_the_criterion(key: str, name: str) -> None:
    _, best = solve(key, name, seed=0, most=TRIALS[name].most[key])
    assert best < CRITERION
