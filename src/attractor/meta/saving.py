"""What a trainer of rules is made of, as tensors by name: for checkpoints."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam
from torch.utils import _pytree as pytree

from attractor.meta.learners import Learners
from attractor.optimisers import Rule, State


def rule_tensors(rule: Rule, adam: Adam) -> dict[str, Tensor]:
    """A rule's weights, and what Adam remembers of them."""
    tensors = {f"rule.{name}": value.clone() for name, value in rule.state_dict().items()}
    for index, entries in adam.state_dict()["state"].items():
        for name, value in entries.items():
            tensors[f"adam.{index}.{name}"] = value.clone()
    return tensors


def load_rule_tensors(rule: Rule, adam: Adam, tensors: dict[str, Tensor]) -> None:
    """Give both back what `rule_tensors` took."""
    rule.load_state_dict(under(tensors, "rule."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in under(tensors, "adam.").items():
        index, entry = name.split(".", 1)
        state.setdefault(int(index), {})[entry] = value
    adam.load_state_dict({**adam.state_dict(), "state": state})


def learner_tensors(learners: Learners, params: Tensor, state: State) -> dict[str, Tensor]:
    """Where learners are, what the rule remembers of them, and their batches to come."""
    leaves = {f"state.{i}": leaf for i, leaf in enumerate(pytree.tree_leaves(state))}
    found = {"params": params} | leaves
    found |= {f"buffers.{name}": value for name, value in learners.buffers.items()}
    found |= {f"sampler.{name}": value for name, value in learners.sampler.state_dict().items()}
    # each in memory of its own, as a file wants them
    return {name: value.clone() for name, value in found.items()}


def load_learner_tensors(
    rule: Rule, learners: Learners, tensors: dict[str, Tensor]
) -> tuple[Tensor, State]:
    """Give learners back what `learner_tensors` took; their parameters and the rule's state."""
    place = learners.start.device
    buffers, leaves = under(tensors, "buffers.", place), under(tensors, "state.", place)
    learners.buffers = {name: buffers[name] for name in learners.buffers}
    learners.sampler.load_state_dict(under(tensors, "sampler."))
    params = tensors["params"].to(place, copy=True)
    spec = pytree.tree_structure(rule.init(params[:, :1]))
    state: Any = pytree.tree_unflatten([leaves[str(i)] for i in range(len(leaves))], spec)
    return params, state


def under(
    tensors: dict[str, Tensor], prefix: str, place: torch.device | None = None
) -> dict[str, Tensor]:
    """Copies, perhaps elsewhere, of the tensors whose names start with a prefix, without it."""
    return {
        name.removeprefix(prefix): value.to(place or value.device, copy=True)
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
