"""Optimisers by name, side by side on a perceptron: a quick look without a configuration."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from attractor.errors import InputError
from attractor.estimates import estimate
from attractor.experiments.kinds.parts import model_for, task_for
from attractor.experiments.rules import named
from attractor.meta import Problem, Trial, compare
from attractor.runs.drive import Context


def compare_on(
    optimisers: Sequence[str],
    task: str,
    *,
    hidden: list[int],
    steps: int,
    batch_size: int,
    seeds: Sequence[int],
    split: str = "test",
    data: Path | None = None,
    threads: int = 1,
    on_curve: Callable[[Trial], None] = lambda curve: None,
) -> list[Trial]:
    """Train the same perceptrons with each optimiser.

    Args:
        optimisers: as `named` reads them.
        task: the key of a task that can show its images at once.
        hidden: sizes of the perceptron's hidden layers.
        steps: updates of each learner.
        batch_size: samples in a batch.
        seeds: one learner for each.
        split: ``"test"``, or ``"valid"`` to choose a rate.
        data: the data root.
        threads: of torch; networks of this size are no faster with more.
        on_curve: told of each curve when it is complete.

    Example:
        >>> [curve] = compare_on(
        ...     ["sgd:lr=0.1"], "digits", hidden=[8], steps=5, batch_size=16, seeds=[0]
        ... )
        >>> curve.steps
        [5]
    """
    if split not in ("test", "valid"):
        raise InputError(f"expected the split test or valid, but got {split!r}. Try test.")
    torch.set_num_threads(threads)
    model = {"name": "mlp", "hidden": hidden}
    made = task_for({"name": task}, model, Context(data))
    problem = Problem(
        lambda g: model_for(model, made, generator=g),
        made,
        batch_size,
    )
    factories = {text: named(text) for text in optimisers}
    return compare(factories, problem, steps=steps, seeds=seeds, split=split, on_curve=on_curve)


def rows(curves: Sequence[Trial]) -> list[dict[str, Any]]:
    """One line for each optimiser, the lowest loss first, those that diverged last.

    Means and intervals are of the learners that did not diverge, None where there is none.
    """
    found = []
    for name in dict.fromkeys(curve.optimiser for curve in curves):
        mine = [curve for curve in curves if curve.optimiser == name]
        ended = [curve for curve in mine if not curve.diverged]
        found.append(
            {
                "optimiser": name,
                **_estimated("loss", [curve.loss[-1] for curve in ended]),
                **_estimated("accuracy", [curve.accuracy[-1] for curve in ended]),
                "seeds": len(mine),
                "diverged": len(mine) - len(ended),
            }
        )
    return sorted(found, key=lambda row: (row["diverged"], row["loss"] or 0.0))


def _estimated(name: str, values: Sequence[float]) -> dict[str, float | None]:
    if not values or not all(map(math.isfinite, values)):
        return {name: None, f"± {name}": None}
    mean = estimate(values)
    return {name: mean.mean, f"± {name}": mean.half_width}
