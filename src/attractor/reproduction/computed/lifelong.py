"""What lifelong learning costs as levels are added: GEM's gradients and memory, and columns."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator

from attractor.continual import GEM, STRATEGIES
from attractor.continual.lifelong import levels
from attractor.models import MLP, make_model
from attractor.reproduction.computed.counts import size
from attractor.reproduction.computed.found import Found
from attractor.tasks.streams import permuted_images

LEVELS, KEPT, UNITS = 20, 10, 128
"""Levels of the benchmark, sequences that are kept of each, units of the small LSTM."""

TWICE = f"at level {LEVELS} over level {LEVELS // 2}"


def costs(data: Path | None = None) -> Iterator[Found]:
    """How costs grow with the levels (001, section 5.4.5), without a training.

    Numbers of the memory are those of inputs and answers, without the steps that fill up shorter
    sequences; a copy of the network has as many as it has parameters.
    """
    for kind, row in (("copy", "copying"), ("recall", "recalling")):
        stream = levels(kind, count=LEVELS)
        model = make_model(
            {"cell": "lstm", "hidden_size": UNITS},
            (stream[0].input_size,),
            stream[0].output_size,
            each_step=stream[0].answers == "each step",
            generator=Generator().manual_seed(0),
        )
        gem = GEM(KEPT * LEVELS, memory="ring")
        gem.start(model, stream, generator=Generator().manual_seed(0))
        gradients, kept = [], [0]
        for place, level in enumerate(stream):
            batch = level.samples(torch.arange(KEPT))
            gem.observe(batch)
            gradients.append(1 + len(gem.episodes.before(place)))
            kept.append(kept[-1] + batch.x.numel() + batch.y.numel())
        half = LEVELS // 2
        yield Found(row, f"gradients of an update, {TWICE}", gradients[-1] / gradients[half - 1])
        yield Found(row, f"numbers in the memory, {TWICE}", kept[-1] / kept[half])
        copies = LEVELS * size(model)
        yield Found(row, "numbers in the memory over those of a network a level", kept[-1] / copies)
    few, many = (columns(tasks) for tasks in (4, 8))
    yield Found("Progressive Nets", "parameters after eight tasks over four", many / few)


def columns(tasks: int) -> int:
    """Parameters of progressive networks after some tasks."""
    generator = Generator().manual_seed(0)
    drawn = permuted_images(dataset="digits", tasks=tasks, generator=generator)
    model = MLP([64, 16, 10], generator=generator)
    strategy = STRATEGIES["progressive"]()
    return size(strategy.start(model, replace(drawn, identity=True), generator=generator))
