"""What a trainer of rules is made of, as nested dictionaries: for checkpoints."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from attractor.meta.learners import Learners
from attractor.meta.unroll import Position
from attractor.optimisers import Rule
from attractor.tasks import Batch
from attractor.training.schedules import plain


def trained(
    rule: Rule, optimiser: Optimizer, scheduler: LRScheduler | None, generator: Generator
) -> dict[str, Any]:
    """A rule's weights, what its optimiser remembers, and what all that is random comes from."""
    remembered = optimiser.state_dict()["state"]
    return {
        "rule": copied(rule.state_dict()),
        "optimiser": {str(index): _apart(entries) for index, entries in remembered.items()},
        "rates": [float(group["lr"]) for group in optimiser.param_groups],
        "scheduler": None if scheduler is None else plain(scheduler),
        "generator": generator.get_state(),
        "random": torch.get_rng_state(),  # from which dropout and some cells draw
    }


def load_trained(
    rule: Rule,
    optimiser: Optimizer,
    scheduler: LRScheduler | None,
    saved: Mapping[str, Any],
) -> None:
    """Give them back what `trained` took."""
    rule.load_state_dict(saved["rule"])
    state = {int(index): _apart(entries) for index, entries in saved["optimiser"].items()}
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    for group, rate in zip(optimiser.param_groups, saved["rates"], strict=True):
        group["lr"] = rate
    if scheduler is not None:
        scheduler.load_state_dict(saved["scheduler"])


def _apart(entries: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered of a weight, tensors in memory of their own."""
    return {n: v.clone() if isinstance(v, Tensor) else v for n, v in entries.items()}


def load_random(generator: Generator, saved: Mapping[str, Any]) -> None:
    """Go on drawing where `trained` was; the last thing to be loaded."""
    generator.set_state(saved["generator"])
    torch.set_rng_state(saved["random"])


def learning(learners: Learners, at: Position) -> dict[str, Any]:
    """Where learners are, what the rule remembers of them, and their batches to come."""
    return {
        "params": at.params.clone(),
        "state": copied(at.state.named()),
        "batch": copied({"x": at.batch.x, "y": at.batch.y}),
        "buffers": copied(learners.buffers),
        "sampler": copied(learners.sampler.state_dict()),
    }


def load_learning(rule: Rule, learners: Learners, saved: Mapping[str, Any]) -> Position:
    """Give learners back what `learning` took."""
    place = learners.start.device
    learners.buffers = copied(saved["buffers"], place)
    learners.sampler.load_state_dict(copied(saved["sampler"]))
    params = saved["params"].to(place, copy=True)
    state = rule.init(params, learners.view).filled(copied(saved["state"], place))
    batch = copied(saved["batch"], place)
    return Position(params, state, Batch(batch["x"], batch["y"]))


def copied(tensors: Mapping[str, Tensor], place: torch.device | None = None) -> dict[str, Tensor]:
    """Copies of tensors, each in memory of its own, perhaps elsewhere."""
    return {name: t.detach().to(place or t.device, copy=True) for name, t in tensors.items()}
