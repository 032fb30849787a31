"""Evolution strategies, persistent or not: meta-gradients without a graph, for any horizon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.meta.distribution import Distribution
from attractor.meta.estimate import WORSE, Stretch
from attractor.meta.learners import Learners, Problem
from attractor.meta.opposed import Opposed, draw_moves, trainable
from attractor.meta.saving import copied, learning, load_learning
from attractor.meta.settings import (
    bounds,
    check_choices,
    check_counts,
    check_numbers,
    draw_horizon,
)
from attractor.meta.unroll import Objective, Position, follow
from attractor.optimisers import Rule

LEAST = 0.01
"""What is added to losses before their logarithms are taken."""


class Evolution:
    r"""Estimates the meta-gradient by moving the rule's weights at random.

    .. math::
        \hat g = \frac{1}{2 \sigma^2 P} \sum_{i=1}^P \xi_i
        \left( L_i(\eta + \epsilon_i) - L_i(\eta - \epsilon_i) \right), \qquad
        \xi_i \leftarrow \xi_i + \epsilon_i, \quad \epsilon_i \sim N(0, \sigma^2)

    P pairs of learners run with the rule's weights moved one way and the other. Losses are those
    of one short stretch, but what multiplies them is the sum of all moves since a learner began:
    so the estimate is not biased by cutting a long training into short pieces, as truncated
    backpropagation is. Only the forward pass is needed, so memory does not grow with the stretch.

    If it is not persistent, :math:`\xi_i = \epsilon_i`: plain evolution strategies, whose estimate
    is that of one stretch, biased unless a stretch is all of a learner's life.

    Args:
        rule: what is trained.
        problems: what its learners are; each pair keeps to one at a time, taking turns.
        persistent: whether moves add up over a learner's life.
        updates: of the rule, in all.
        pairs: of learners: P, or as many times P as there are `moves`.
        moves: pairs that start alike and see the same batches, under moves of their own: together
            they cost little more than one where networks are small.
        steps: updates of each learner before a fresh one takes its place; a pair draws a number
            between the two for each learner, evenly on a logarithmic scale.
        unroll: updates of the learners between two of the rule.
        sigma: :math:`\sigma`.
        clip: bound of a loss, in times that with which a learner began, so that one that diverges
            does not decide. If no learner ends a stretch below it, all are given up and the rule
            stays as it is.
        objective: an update is judged on the ``"next"`` batch, or on the ``"same"``.
        logarithm: count the logarithms of losses (and 0.01), so that what halves a small loss
            counts for as much as what halves a large one.
        settled: judge learners where the rule wants them judged: at its average, if it keeps one.
        generator: draws everything that is random.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import DMSGD
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> rule = DMSGD(hidden_size=4)
        >>> found = Evolution(rule, [problem], pairs=2, steps=10, unroll=5,
        ...                   generator=torch.Generator()).stretch()
        >>> found.lost is None, rule.static.grad.shape
        (True, torch.Size([1]))

    Departs from the paper: all pairs start at the beginning of a learner and at different
    horizons if `steps` is a pair, not at random points of it.

    References:
        Vicol et al. (2021), Unbiased gradient estimation in unrolled computation graphs with
        persistent evolution strategies, arXiv:2112.13835.
    """

    what = "updates"
    advice = "Try a smaller lr, a smaller sigma, or a larger clip."
    clamp: float | None = None
    norm: float | None = 1.0

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem | Distribution],
        *,
        persistent: bool = True,
        updates: int = 100,
        pairs: int = 4,
        moves: int = 1,
        steps: int | tuple[int, int] = 100,
        unroll: int = 20,
        sigma: float = 0.01,
        clip: float = 5.0,
        objective: Objective = "next",
        logarithm: bool = False,
        settled: bool = False,
        generator: Generator,
    ) -> None:
        check_counts(
            updates=(updates, None),
            pairs=(pairs, None),
            moves=(moves, None),
            unroll=(unroll, min(bounds(steps))),
        )
        check_numbers(sigma=sigma, clip=clip)
        if min(sigma, clip) <= 0:
            raise InputError(
                f"expected sigma and clip to be above 0, but got {sigma} and {clip}. Leave them "
                "out for the defaults."
            )
        check_choices(objective=(objective, get_args(Objective)))
        self.rule, self.problems, self.persistent = rule, list(problems), persistent
        self.planned = self.rounds = updates
        self.steps, self.unroll, self.moves = steps, unroll, moves
        self.sigma, self.clip, self.objective = sigma, clip, objective
        self.logarithm, self.settled = logarithm, settled
        self.generator = generator
        self.step = 0
        self.started = 0
        self.pairs = [self._fresh() for _ in range(pairs)]

    @property
    def done(self) -> bool:
        """Whether all updates are done."""
        return self.step >= self.planned

    def stretch(self) -> Stretch:
        """One stretch of every pair."""
        weights = trainable(self.rule)
        estimate = {name: torch.zeros_like(value) for name, value in weights.items()}
        losses, ends, alive = [], [], False
        for index, pair in enumerate(self.pairs):
            above, below = pair.stretch(self)
            losses.append((above + below) / 2)
            ends.append(torch.cat([above[:, -1], below[:, -1]]) / pair.first)
            alive |= bool(torch.minimum(above, below)[:, -1].min() < self.clip * pair.first)
            # shorter stretches, before a horizon, count for less: each update counts alike
            difference = (self._counted(above) - self._counted(below)).sum(1) / self.unroll
            weight = difference / (2 * self.sigma**2 * self.moves)
            for name, moved in pair.moved.items():
                estimate[name] += torch.tensordot(weight.to(moved), moved, dims=1)
            if pair.updates >= pair.horizon:
                self.pairs[index] = self._fresh()
        self.step += 1
        if alive:
            for name, value in weights.items():
                value.grad = estimate[name] / len(self.pairs)
        else:
            self.pairs = [self._fresh() for _ in self.pairs]
        return Stretch(
            torch.stack([one.mean() for one in losses]).mean().item(),
            torch.stack([one[:, -1].mean() for one in losses]).mean().item(),
            lost=None if alive else f"at update {self.step}",
            well=alive,
            moves=alive,
            worse=bool(torch.cat(ends).median() > WORSE),
        )

    def _counted(self, losses: Tensor) -> Tensor:
        return (losses + LEAST).log() if self.logarithm else losses

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes, but for the rule and the generator."""
        pairs = [pair.state_dict() for pair in self.pairs]
        return {"step": self.step, "started": self.started, "pairs": pairs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.pairs = []
        for saved in state["pairs"]:
            # checkpoints of 0.1 have nothing that was drawn
            pair = self._pair(saved["problem"], saved["horizon"], saved.get("drawn", {}))
            pair.load_state_dict(saved)
            self.pairs.append(pair)
        self.step, self.started = state["step"], state["started"]

    def _fresh(self) -> _Pair:
        horizon = draw_horizon(self.steps, self.generator)
        problem = self.started % len(self.problems)
        self.started += 1
        return self._pair(problem, horizon, self.problems[problem].draw(self.generator))

    def _pair(self, problem: int, horizon: int, drawn: dict[str, Any]) -> _Pair:
        return _Pair(self.rule, self.problems, problem, horizon, drawn, self.moves, self.generator)


class _Pair:
    """Learners that start alike and see the same batches, two under each opposite move."""

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem | Distribution],
        problem: int,
        horizon: int,
        drawn: dict[str, Any],
        moves: int,
        generator: Generator,
    ) -> None:
        self.rule, self.problem, self.horizon, self.drawn = rule, problem, horizon, drawn
        self.updates = 0
        made = problems[problem].made(drawn)
        self.learners = Learners(made, 1, copies=2 * moves, generator=generator)
        params = self.learners.first_params(rule)
        state = self.learners.first_state(rule, params)
        self.position = Position(params, state, self.learners.draw())
        with torch.no_grad():
            first = self.learners.losses(params, self.position.batch)[0].item()
        self.first = first if 0 < first < math.inf else 1.0
        """The loss with which the learners, which start alike, began."""
        self.moved = {n: p.new_zeros(moves, *p.shape) for n, p in trainable(rule).items()}

    @torch.no_grad()
    def stretch(self, by: Evolution) -> tuple[Tensor, Tensor]:
        """Run both for some updates, as far as their horizon; the bounded losses of each."""
        rule, most = self.rule, by.clip * self.first
        moves = draw_moves(rule, by.moves, by.sigma, by.generator)
        count = min(by.unroll, self.horizon - self.updates)
        opposed = Opposed.both_ways(rule, moves)
        self.position, passed = follow(
            rule,
            self.learners,
            self.position,
            opposed,
            self.position.params.new_zeros(count, 1, 1),
            objective=by.objective,
            settle=opposed.settled if by.settled else None,
        )
        self.updates += count
        for name, move in moves.items():
            self.moved[name] = self.moved[name] + move if by.persistent else move
        losses = torch.stack([one.losses for one in passed], dim=1)
        above, below = torch.nan_to_num(losses, nan=most, posinf=most).clamp(max=most).chunk(2)
        return above, below

    def state_dict(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "horizon": self.horizon,
            "drawn": self.drawn,
            "updates": self.updates,
            "first": self.first,
            "moved": copied(self.moved),
            "learners": learning(self.learners, self.position),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.position = load_learning(self.rule, self.learners, state["learners"])
        moved = copied(state["moved"], self.position.params.device)
        # checkpoints of 0.1 have one move without a dimension for it
        self.moved = {name: moved[name].view_as(like) for name, like in self.moved.items()}
        self.updates = state["updates"]
        self.first = state.get("first", self.first)  # checkpoints of 0.1 have none
