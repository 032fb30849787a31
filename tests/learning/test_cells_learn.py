"""Every cell learns: copy with a short lag, and digits whose pixels come in a random order.

Each bar is stated beside the cell: steps of 32 sequences, and what seed 0 must reach. Some bars
are close to what a network without memory can get, which is a loss of 0.43 on the short copy (its
`baseline`) and an accuracy of 0.1 on the digits: those cells learn slowly in these few steps.
"""

import time
from typing import Any, NamedTuple

import pytest
import torch

from attractor.cells import CELLS
from attractor.models import SequenceClassifier, SequenceTagger
from attractor.tasks import TASKS, Task
from learning.training import evaluate, updates

SECONDS = 60


class Bar(NamedTuple):
    """How long a cell trains, and what it must reach."""

    steps: int
    bar: float
    options: Any = ()


COPY: dict[str, Bar] = {
    "clockwork": Bar(1500, 0.36),
    "decaynet": Bar(1500, 0.05),
    "decaynet_gru": Bar(1500, 0.2),
    "dntm": Bar(800, 0.35, {"cells": 16}),
    "eurnn": Bar(400, 0.05),
    "fastgrnn": Bar(1500, 0.38),
    "full_urnn": Bar(400, 0.05),
    "goru": Bar(400, 0.05),
    "gru": Bar(1500, 0.36),
    "ihc_gru": Bar(1500, 0.2),
    "ihc_lstm": Bar(1500, 0.2),
    "irc_fastgrnn": Bar(1500, 0.33),
    "irc_gru": Bar(1500, 0.2),
    "irc_lstm": Bar(1500, 0.27),
    "irc_sru": Bar(1500, 0.05),
    "irc_tlstm": Bar(1500, 0.05),
    "janet": Bar(1500, 0.2),
    "lstm": Bar(1500, 0.2),
    "lstm1997": Bar(1500, 0.36),
    "nru": Bar(1500, 0.1),
    "ntm": Bar(800, 0.3, {"cells": 16}),
    "rnn": Bar(1500, 0.4),
    "sru": Bar(1500, 0.2),
    # with the 32 units of the others it stays at the baseline
    "stat_ru": Bar(4000, 0.1, {"hidden_size": 64, "statistics": 64, "recurrent_size": 32}),
    "tardis": Bar(800, 0.3, {"cells": 16}),
    "tlstm": Bar(1500, 0.32),
    "urnn": Bar(400, 0.05),
}
DIGITS: dict[str, Bar] = {
    "clockwork": Bar(300, 0.55),
    "decaynet": Bar(300, 0.35),
    "decaynet_gru": Bar(300, 0.4),
    "dntm": Bar(300, 0.5, {"cells": 16}),
    "eurnn": Bar(300, 0.7),
    "fastgrnn": Bar(300, 0.5),
    "full_urnn": Bar(300, 0.6),
    "goru": Bar(300, 0.6),
    "gru": Bar(300, 0.45),
    "ihc_gru": Bar(300, 0.2),
    "ihc_lstm": Bar(300, 0.15),
    "irc_fastgrnn": Bar(300, 0.2),
    "irc_gru": Bar(300, 0.2),
    "irc_lstm": Bar(300, 0.2),
    "irc_sru": Bar(300, 0.4),
    "irc_tlstm": Bar(300, 0.4),
    "janet": Bar(300, 0.5),
    "lstm": Bar(300, 0.45),
    "lstm1997": Bar(300, 0.25),
    "nru": Bar(300, 0.3),
    "ntm": Bar(300, 0.5, {"cells": 16}),
    "rnn": Bar(300, 0.45),
    "sru": Bar(300, 0.25),
    "stat_ru": Bar(300, 0.3),
    "tardis": Bar(300, 0.3, {"cells": 16}),
    "tlstm": Bar(300, 0.3),
    "urnn": Bar(300, 0.7),
}


def trained(task: Task, key: str, bar: Bar, seed: int = 0) -> tuple[float, float, float]:
    """Loss, accuracy and seconds after training on one core."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    options = dict(bar.options)
    kind = SequenceClassifier if task.answers == "once" else SequenceTagger
    model = kind(
        key,
        task.input_size,
        options.pop("hidden_size", 32),
        task.output_size,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )
    start = time.process_time()
    learning = updates(
        task, lambda batch: task.loss(model, batch), model.parameters(), lr=5e-3, seed=seed
    )
    for _ in range(bar.steps):
        next(learning)
    seconds = time.process_time() - start
    return *evaluate(task, model, "test"), seconds


def test_every_cell_has_a_bar() -> None:
    assert set(COPY) == set(CELLS)
    assert set(DIGITS) == set(CELLS)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(CELLS))
def test_short_copy(key: str) -> None:
    task: Any = TASKS["copy"]
    loss, _, seconds = trained(task(lag=5, length=4, symbols=4), key, COPY[key])
    assert seconds < SECONDS
    assert loss < COPY[key].bar


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(CELLS))
def test_permuted_digits(key: str) -> None:
    task: Any = TASKS["digits"]
    _, accuracy, seconds = trained(task(order="permuted"), key, DIGITS[key])
    assert seconds < SECONDS
    assert accuracy > DIGITS[key].bar
