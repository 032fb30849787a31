"""What a trainer of rules is made of, as nested dictionaries: for checkpoints."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor
from torch.optim import Adam

from attractor.meta.learners import Learners
from attractor.meta.unroll import Position
from attractor.optimisers import Rule
from attractor.tasks import Batch


def trained(rule: Rule, adam: Adam, generator: Generator) -> dict[str, Any]:
    """A rule's weights, what Adam remembers of them, and what all that is random comes from."""
    remembered = adam.state_dict()["state"]
    return {
        "rule": copied(rule.state_dict()),
        "adam": {str(index): copied(entries) for index, entries in remembered.items()},
        "generator": generator.get_state(),
        "random": torch.get_rng_state(),  # from which dropout and some cells draw
    }


def load_trained(rule: Rule, adam: Adam, saved: Mapping[str, Any]) -> None:
    """Give both back what `trained` took."""
    rule.load_state_dict(saved["rule"])
    state = {int(index): copied(entries) for index, entries in saved["adam"].items()}
    adam.load_state_dict({**adam.state_dict(), "state": state})


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
