"""Truncated backpropagation: the meta-gradient through the learners' updates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor

from attractor.meta.distribution import Distribution
from attractor.meta.estimate import Stretch
from attractor.meta.learners import Learners, Problem
from attractor.meta.saving import learning, load_learning
from attractor.meta.settings import (
    bounds,
    check_above_zero,
    check_choices,
    check_counts,
    check_numbers,
    draw_horizon,
    normal,
)
from attractor.meta.unroll import Objective, Position, Unrolled, first_order, second_order
from attractor.optimisers import Rule

COUNTS = ("round", "updates", "horizon", "first")
"""The round, the learners' updates in it, how many they will be, and what they lost at first."""


class BPTT:
    r"""The gradient of the learners' losses, unroll by unroll.

    A round starts `together` fresh learners of one problem, the problems taking turns. They are
    updated `steps` times by the rule; after every `unroll` updates, the rule's weights move
    against the gradient of the losses in that stretch, and the learners and the rule's state go
    on from where they are, cut off from their past.

    Args:
        rule: what is trained.
        problems: what its learners are, round by round.
        learners: how many learners in all.
        steps: updates of each learner; a pair draws a number for each round between the two,
            evenly on a logarithmic scale.
        unroll: updates between two of the rule.
        together: learners at once, whose losses are averaged.
        order: 1 takes the learners' gradients as constants; 2 differentiates through them.
        objective: an update is judged on the ``"next"`` batch, or on the ``"same"``.
        perturb: standard deviation of the noise on learners' parameters after their first
            update; it falls with the number of updates, as 1/t.
        absurd: a round whose learners end with more than so many times the loss that they began
            with counts as one that diverged, though its losses are finite; ``math.inf`` for none.
        generator: draws everything that is random.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import MetaSGD
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> rule = MetaSGD(size=310)
        >>> found = BPTT(rule, [problem], steps=4, unroll=2, generator=torch.Generator()).stretch()
        >>> found.lost is None, rule.rates.grad.shape
        (True, torch.Size([310]))

    Departs from the paper: the last update of each unroll counts, which Algorithm 1 leaves
    without a meta-gradient. Learners whose losses, parameters or meta-gradient are no longer
    finite are given up, and that unroll does not update the rule; nor does an unroll at whose end
    their loss is absurd.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474; Kuo (2021), thesis, Algorithm 1.
    """

    what = "rounds"
    advice = "Try a smaller lr, a shorter unroll, or another generator seed."
    clamp: float | None = 1.0
    norm: float | None = None

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem | Distribution],
        *,
        learners: int = 20,
        steps: int | tuple[int, int] = 100,
        unroll: int = 20,
        together: int = 1,
        order: Literal[1, 2] = 1,
        objective: Objective = "next",
        perturb: float = 0.0,
        absurd: float = 50.0,
        generator: Generator,
    ) -> None:
        check_counts(
            learners=(learners, None),
            together=(together, learners),
            unroll=(unroll, min(bounds(steps))),
        )
        check_numbers(perturb=perturb)
        check_above_zero(absurd=absurd)
        check_choices(order=(order, (1, 2)), objective=(objective, get_args(Objective)))
        self.rule, self.problems = rule, list(problems)
        self.count, self.rounds = learners, -(-learners // together)
        self.steps, self.unroll, self.together = steps, unroll, together
        self.order, self.objective = order, objective
        self.perturb, self.absurd, self.generator = perturb, absurd, generator
        self.round = 0
        self.updates = 0
        self.horizon = 0
        self.first = math.nan
        self.drawn: dict[str, Any] = {}
        self.learners: Learners | None = None
        self.position: Position | None = None

    @property
    def planned(self) -> int:
        """Updates of the rule in all, at most: rounds may be shorter than the longest."""
        return self.rounds * -(-max(bounds(self.steps)) // self.unroll)

    @property
    def done(self) -> bool:
        """Whether all learners have had their updates."""
        return self.round >= self.rounds

    def stretch(self) -> Stretch:
        """One unroll."""
        if self.learners is None or self.position is None:
            self._start_round()
        assert self.learners is not None
        assert self.position is not None
        count = min(self.unroll, self.horizon - self.updates)
        engine = first_order if self.order == 1 else second_order
        done = engine(
            self.rule, self.learners, self.position, self._noise(count), objective=self.objective
        )
        where = f"at step {self.updates + count} of round {self.round + 1}"
        if not self._finite(done):
            self._end_round()
            return Stretch(math.nan, math.nan, lost=where, moves=False)
        self.updates += count
        self.position = done.end
        loss, last = done.losses.mean().item(), done.losses[-1].mean().item()
        worse = 0 < self.absurd * self.first < last
        if self.updates < self.horizon:
            return Stretch(loss, last, moves=not worse)
        self._end_round()
        lost = where if worse else None
        return Stretch(loss, last, lost=lost, well=not worse, moves=not worse)

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes, but for the rule and the generator."""
        now = None
        if self.learners is not None and self.position is not None:
            now = learning(self.learners, self.position)
        counts = {name: getattr(self, name) for name in COUNTS}
        return {**counts, "drawn": self.drawn, "learners": now}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        for name in COUNTS:
            setattr(self, name, state[name])
        self.drawn = state.get("drawn", {})  # checkpoints of 0.1 have none
        self.learners = self.position = None
        if state["learners"] is not None:
            count = len(state["learners"]["params"])
            self.learners = Learners(self._problem(), count, generator=self.generator)
            self.position = load_learning(self.rule, self.learners, state["learners"])

    def _problem(self) -> Problem:
        return self._source().made(self.drawn)

    def _source(self) -> Problem | Distribution:
        return self.problems[self.round % len(self.problems)]

    def _start_round(self) -> None:
        count = min(self.together, self.count - self.round * self.together)
        self.drawn = self._source().draw(self.generator)
        self.learners = Learners(self._problem(), count, generator=self.generator)
        params = self.learners.first_params(self.rule)
        state = self.learners.first_state(self.rule, params)
        self.position = Position(params, state, self.learners.draw())
        self.updates = 0
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # dropout draws as without this
            self.first = self.learners.losses(params, self.position.batch).mean().item()
        self.horizon = draw_horizon(self.steps, self.generator)

    def _end_round(self) -> None:
        self.round += 1
        self.learners = self.position = None

    def _noise(self, count: int) -> Tensor:
        assert self.position is not None
        params = self.position.params
        if not self.perturb:
            return params.new_zeros(count, 1, 1)
        times = torch.arange(self.updates + 1, self.updates + count + 1).to(params)
        drawn = normal((count, *params.shape), like=params, generator=self.generator)
        return (self.perturb / times)[:, None, None] * drawn

    def _finite(self, done: Unrolled) -> bool:
        slopes = [p.grad for p in self.rule.parameters() if p.grad is not None]
        tensors = [done.losses, done.end.params, *slopes]
        return all(bool(t.isfinite().all()) for t in tensors)
