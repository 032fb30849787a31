"""Optimisers side by side: the same initial weights, the same batches, the same evaluation."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from attractor.errors import InputError
from attractor.meta.learners import Problem
from attractor.optimisers import Maker, attach
from attractor.training import Diverged, Plan, Supervised


@dataclass
class Trial:
    """How one learner fared with one optimiser.

    `train` holds the loss on each batch before its update; `steps`, `loss` and `accuracy` are
    those of the held-out evaluations. A learner that diverged has infinite losses and accuracies of
    0 from there on. An objective without data, such as `Quadratic`, has its own value in the place
    of the held-out loss, and NaN for its accuracy.
    """

    optimiser: str
    seed: int
    train: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)

    @property
    def diverged(self) -> bool:
        """Whether the last loss is not finite."""
        return not math.isfinite(self.loss[-1])


def compare(
    optimisers: Mapping[str, Maker],
    problem: Problem,
    *,
    steps: int,
    seeds: Sequence[int],
    evaluate_every: int | None = None,
    split: Any = "test",
    on_curve: Callable[[Trial], None] = lambda curve: None,
) -> list[Trial]:
    """Train the same learners with each optimiser.

    Args:
        optimisers: by name, what makes each.
        problem: what the learners are.
        steps: updates of each learner.
        seeds: one learner for each; a seed decides its initial weights and all its batches.
        evaluate_every: updates between evaluations on `split`; None evaluates at the end only.
        split: ``"test"`` or ``"valid"``; choose learning rates on the latter.
        on_curve: told of each curve when it is complete.

    Example:
        >>> from functools import partial
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 8, 10], generator=g), Digits(order="flat"), 32)
        >>> [curve] = compare(
        ...     {"SGD": partial(torch.optim.SGD, lr=0.1)}, problem, steps=20, seeds=[0]
        ... )
        >>> len(curve.train), curve.steps
        (20, [20])
    """
    if steps < 1 or not optimisers:
        raise InputError(
            f"expected at least one step and one optimiser, but got {steps} and "
            f"{len(optimisers)}. Try steps=100."
        )
    if evaluate_every is not None and evaluate_every < 1:
        raise InputError(
            f"expected evaluate_every to be at least 1, but got {evaluate_every}. Leave it out to "
            "evaluate at the end only."
        )
    curves = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        network = problem.model(generator)
        batches = generator.get_state()
        for name, make in optimisers.items():
            curve = Trial(name, seed)
            generator.set_state(batches)
            _follow(
                curve,
                copy.deepcopy(network),
                make,
                problem,
                steps,
                evaluate_every,
                split,
                generator,
            )
            curves.append(curve)
            on_curve(curve)
    return curves


def _follow(
    curve: Trial,
    network: nn.Module,
    make: Maker,
    problem: Problem,
    steps: int,
    every: int | None,
    split: Any,
    generator: torch.Generator,
) -> None:
    plan = Plan(steps, problem.batch_size, log_every=1, eval_every=None, eval_batch_size=1000)
    optimiser = attach(make, network)
    training = Supervised(network, problem.task, optimiser, plan, generator=generator)
    alive = True
    for step in range(1, steps + 1):
        loss = math.inf
        if alive:
            try:
                [row] = training.advance()
                loss = row["loss"]
            except Diverged:
                alive = False
        curve.train.append(loss)
        if step == steps or (every is not None and step % every == 0):
            found = training.measure(split) if alive else {}
            reached = found.get("loss", math.inf)
            ended = math.isfinite(reached)
            curve.steps.append(step)
            curve.loss.append(reached if ended else math.inf)
            curve.accuracy.append(found.get("accuracy", math.nan) if ended else 0.0)
