"""Trainings that are always the same, by which the best weights of a rule are told."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attractor.meta.distribution import Distribution
from attractor.meta.learners import Learners, Problem
from attractor.meta.opposed import Opposed
from attractor.meta.saving import copied
from attractor.meta.settings import check_counts, draw_horizon
from attractor.meta.whole import shares
from attractor.optimisers import Rule

SEED = 2**31 - 1
"""Of all that is random in these trainings, so that they are not those of meta-training."""
MARKS, CLIP = 4, 10.0


class Validation:
    r"""Measures a rule on the same trainings again and again, and keeps its best weights.

    .. math::
        \exp \text{mean} \log \left( L(T / 2^k) / L(0) \right), \qquad k = 0, \dots, 3

    over all trainings and learners: held-out losses as shares of the first, at the end of a
    training of :math:`T` updates, half-way and so on.

    Args:
        rule: what is measured.
        problems: what its learners are, taking turns.
        steps: updates of a training, or two numbers between which they are drawn.
        trainings: how many.
        learners: of each training, side by side.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import Anytime
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> validation = Validation(Anytime(), [problem], steps=20, trainings=2)
        >>> validation.measure() == validation.measure() < 1
        True
    """

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem | Distribution],
        *,
        steps: int | tuple[int, int],
        trainings: int = 20,
        learners: int = 4,
    ) -> None:
        check_counts(trainings=(trainings, None), learners=(learners, None))
        self.rule, self.problems = rule, list(problems)
        self.steps, self.trainings, self.learners = steps, trainings, learners
        self.best, self.weights = math.inf, copied(rule.state_dict())

    @torch.no_grad()
    def measure(self) -> float:
        """The mean share of the first loss that is left; the weights with the least are kept."""
        found = torch.stack([self._logarithm(index) for index in range(self.trainings)])
        share = found.mean().exp().item()
        if share < self.best:
            self.best, self.weights = share, copied(self.rule.state_dict())
        return share

    def _logarithm(self, index: int) -> Tensor:
        generator = Generator().manual_seed(SEED - index)
        horizon = draw_horizon(self.steps, generator)
        problem = self.problems[index % len(self.problems)]
        made = problem.made(problem.draw(generator))
        with torch.random.fork_rng(devices=[]):  # from which dropout draws, and some networks
            torch.manual_seed(SEED - index)
            learners = Learners(made, self.learners, generator=generator)
            same = Opposed.alike(self.rule, self.learners)
            return shares(same, learners, horizon, MARKS, CLIP).log().mean()

    def state_dict(self) -> dict[str, Any]:
        """The best so far."""
        return {"best": self.best, "weights": copied(self.weights)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.best, self.weights = state["best"], copied(state["weights"])
