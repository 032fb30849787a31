"""A rule with several sets of weights at once, each for learners of its own."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from attractor.meta.settings import normal
from attractor.optimisers import Rule, State, View
from attractor.optimisers.rule import Update
from attractor.optimisers.state import map_tensors
from attractor.optimisers.sweep import sweep_learners


def trainable(rule: Rule) -> dict[str, nn.Parameter]:
    """The weights of a rule that are not frozen."""
    return {name: p for name, p in rule.named_parameters() if p.requires_grad}


def draw_moves(rule: Rule, count: int, sigma: float, generator: Generator) -> dict[str, Tensor]:
    """So many random moves of each weight that is not frozen, ``(count, *shape)``."""
    return {
        name: sigma * normal((count, *p.shape), like=p, generator=generator)
        for name, p in trainable(rule).items()
    }


class Opposed:
    """A rule's update of several learners, each under weights of its own.

    By the rule's kernel, if it has one, and else by torch for all at once.
    """

    def __init__(self, rule: Rule, weights: dict[str, Tensor]) -> None:
        self.module, self.weights = _Update(rule), weights
        count = len(next(iter(weights.values())))
        self.rule = rule
        self.rules = [] if rule.numbers() is None else [self._of_one(k) for k in range(count)]

    @classmethod
    def both_ways(cls, rule: Rule, moves: Mapping[str, Tensor]) -> Self:
        """One learner under each of the moves, then one under each of their opposites."""
        own = trainable(rule)
        return cls(
            rule, {f"rule.{n}": torch.cat([own[n] + m, own[n] - m]) for n, m in moves.items()}
        )

    @classmethod
    def alike(cls, rule: Rule, count: int) -> Self:
        """All of so many learners under the weights that the rule has."""
        own = dict(rule.named_parameters())
        return cls(rule, {f"rule.{n}": p.detach().expand(count, *p.shape) for n, p in own.items()})

    def _of_one(self, learner: int) -> Rule:
        """The rule with the weights of one learner."""
        rule = copy.deepcopy(self.module.rule)
        moved = {name.removeprefix("rule."): w[learner] for name, w in self.weights.items()}
        rule.load_state_dict(moved, strict=False)
        return rule

    def __call__(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        if self.rules:
            swept = sweep_learners(self.rules, grads, state, params, view)
            if swept is not None:
                return swept

        def update(weights: Any, *inputs: Any) -> Any:
            return functional_call(self.module, weights, (view, *inputs))

        seen, told = (None if one is None else 0 for one in (view.context, view.loss))
        moved = vmap(update, in_dims=(0, 0, 0, 0, 0, seen, told), randomness="same")
        steps, each, shared = moved(
            self.weights, grads, state.each, state.shared, params, view.context, view.loss
        )
        return steps, State(each, shared)

    def settled(self, params: Tensor, state: State, view: View) -> Tensor:
        """Where each is to be judged."""

        def settle(weights: Any, *inputs: Any) -> Any:
            return functional_call(_Settled(self.module.rule), weights, (view, *inputs))

        found: Tensor = vmap(settle)(self.weights, state.each, state.shared, params)
        return found


class _Settled(nn.Module):
    """Where a rule wants one learner judged, as a forward pass."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, view: View, each: Any, shared: Any, params: Tensor) -> Tensor:
        state = State(each, shared).map(lambda t: t[None])
        return self.rule.settled(params[None], state, view)[0]


class _Update(nn.Module):
    """A rule's update of one learner as a forward pass, so that it can be run with any weights."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def forward(
        self,
        view: View,
        grads: Tensor,
        each: Any,
        shared: Any,
        params: Tensor,
        context: Any,
        loss: Tensor | None,
    ) -> Any:
        state = State(each, shared).map(lambda t: t[None])
        context, loss = (None if one is None else one[None] for one in (context, loss))
        seen = view._replace(context=context, loss=loss)
        steps, after = self.rule.update(grads[None], state, params[None], seen)
        each, shared = map_tensors(lambda t: t[0], tuple(after))
        return steps[0], each, shared
