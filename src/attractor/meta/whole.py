"""Evolution strategies over whole trainings: few numbers of a rule, judged as a user judges it."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.meta.distribution import Distribution
from attractor.meta.estimate import WORSE, Stretch
from attractor.meta.learners import Learners, Problem
from attractor.meta.opposed import Opposed, draw_moves, trainable
from attractor.meta.settings import bounds, check_counts, check_numbers, draw_horizon
from attractor.meta.unroll import shown
from attractor.optimisers import Rule
from attractor.tasks import Batch

JUDGED = 500
"""Held-out samples on which learners are judged, at most."""
TINY = 1e-12
"""The least share of its first loss that a learner can be told to have reached."""


class Whole:
    r"""Estimates the meta-gradient from trainings of which none is cut.

    .. math::
        \hat g = \frac{1}{2 \sigma^2 P M} \sum_{i=1}^P \sum_{j=1}^M \epsilon_{ij} \,
        b \tanh\left( \frac{\ell_i(\eta + \epsilon_{ij}) - \ell_i(\eta - \epsilon_{ij})}{b}
        \right), \qquad
        \ell_i = \frac{1}{K} \sum_{k=0}^{K - 1} \log L_i(T_i / 2^k), \quad
        \epsilon_{ij} \sim N(0, \sigma^2)

    In each of P trainings of :math:`T_i` updates, 2M learners start alike and see the same batches,
    the rule's weights moved M ways and their opposites. They are judged on held-out data, at the
    end, half-way and so on, where the rule wants them judged; an objective without data by its own
    value. What counts is the difference of logarithms, so that every training weighs the same
    whatever its losses are, and none, however it went, for more than b.

    Nothing is persistent, nothing is biased, and an update of the rule costs P trainings: for
    rules with few weights. For those with networks, `Evolution` goes on after some updates.

    Args:
        rule: what is trained.
        problems: what its learners are, taking turns.
        updates: of the rule, in all.
        trainings: P.
        moves: M.
        steps: :math:`T`, or two numbers between which it is drawn, evenly on a logarithmic scale.
        marks: K.
        sigma: :math:`\sigma`.
        bound: b.
        clip: bound of a loss, in times that with which a learner began. If no loss of any learner
            is below it, the rule stays as it is.
        generator: draws everything that is random.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import Anytime
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> rule = Anytime()
        >>> found = Whole(rule, [problem], trainings=2, steps=10, generator=torch.Generator())
        >>> found.stretch().lost is None, rule.mixture.grad.shape
        (True, torch.Size([3]))

    Departs from the paper: differences are bounded and of logarithms; learners of one training
    share its randomness.

    References:
        Salimans et al. (2017), Evolution strategies as a scalable alternative to reinforcement
        learning, arXiv:1703.03864; Metz et al. (2019), arXiv:1810.10180, for learned optimisers.
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
        updates: int = 100,
        trainings: int = 8,
        moves: int = 4,
        steps: int | tuple[int, int] = 100,
        marks: int = 4,
        sigma: float = 0.05,
        bound: float = 0.2,
        clip: float = 10.0,
        generator: Generator,
    ) -> None:
        check_counts(
            updates=(updates, None),
            trainings=(trainings, None),
            moves=(moves, None),
            marks=(marks, None),
        )
        bounds(steps)
        check_numbers(sigma=sigma, bound=bound, clip=clip)
        if min(sigma, bound, clip) <= 0:
            raise InputError(
                f"expected sigma, bound and clip to be above 0, but got {sigma}, {bound} and "
                f"{clip}. Leave them out for the defaults."
            )
        self.rule, self.problems = rule, list(problems)
        self.planned = self.rounds = updates
        self.trainings, self.moves, self.steps, self.marks = trainings, moves, steps, marks
        self.sigma, self.bound, self.clip = sigma, bound, clip
        self.generator = generator
        self.step = 0

    @property
    def done(self) -> bool:
        """Whether all updates are done."""
        return self.step >= self.planned

    @torch.no_grad()
    def stretch(self) -> Stretch:
        """All trainings of an update of the rule."""
        weights = trainable(self.rule)
        estimate = {name: torch.zeros_like(value) for name, value in weights.items()}
        every: list[Tensor] = []
        alive = False
        for index in range(self.trainings):
            moves = draw_moves(self.rule, self.moves, self.sigma, self.generator)
            losses = self._losses(self.step * self.trainings + index, moves)
            every.append(losses)
            alive |= bool(losses.min() < self.clip)
            above, below = losses.log().mean(1).chunk(2)
            counted = self.bound * torch.tanh((above - below) / self.bound)
            weight = counted / (2 * self.sigma**2 * self.moves * self.trainings)
            for name, move in moves.items():
                estimate[name] += torch.tensordot(weight.to(move), move, dims=1)
        self.step += 1
        if alive:
            for name, value in weights.items():
                value.grad = estimate[name]
        return Stretch(
            torch.stack([one.log().mean() for one in every]).mean().exp().item(),
            torch.stack([one[:, -1].log().mean() for one in every]).mean().exp().item(),
            lost=None if alive else f"at update {self.step}",
            well=alive,
            moves=alive,
            worse=bool(torch.cat([one[:, -1] for one in every]).median() > WORSE),
        )

    def _losses(self, started: int, moves: Mapping[str, Tensor]) -> Tensor:
        """Of a training under moves one way and the other, ``(2 moves, marks)``."""
        horizon = draw_horizon(self.steps, self.generator)
        problem = self.problems[started % len(self.problems)]
        made = problem.made(problem.draw(self.generator))
        learners = Learners(made, 1, copies=2 * self.moves, generator=self.generator)
        opposed = Opposed.both_ways(self.rule, moves)
        return shares(opposed, learners, horizon, self.marks, self.clip)

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes, but for the rule and the generator."""
        return {"step": self.step}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.step = state["step"]


def shares(opposed: Opposed, learners: Learners, horizon: int, marks: int, clip: float) -> Tensor:
    """Train learners from beginning to end: their held-out losses, as shares of the first.

    Args:
        opposed: what they are trained by.
        learners: what it trains.
        horizon: updates.
        marks: how often they are judged: at the horizon, half of it, and so on.
        clip: bound of a share; what is no number counts as this.

    Shape:
        the shares ``(learners, marks)``, the horizon's last; fewer marks in a short training.
    """
    rule = opposed.rule
    params = learners.first_params(rule)
    state = learners.first_state(rule, params)
    judged = _held_out(learners)
    first = learners.judge(params, judged)
    when = {horizon >> k for k in range(marks)}
    losses = []
    for update in range(1, horizon + 1):
        batch = learners.draw()
        here, gradient = learners.gradients(params, batch)
        view = shown(rule, learners, batch, here)
        steps, state = opposed(learners.told(gradient), state, params, view)
        params = learners.held(params, params + steps)
        if update in when:
            losses.append(learners.judge(opposed.settled(params, state, view), judged))
    share = torch.stack(losses, 1) / first[:, None]
    return torch.nan_to_num(share, nan=clip, posinf=clip).clamp(TINY, clip)


def _held_out(learners: Learners) -> Batch:
    """Held-out samples for every learner; of an objective without data, what it is shown."""
    found = next(iter(learners.problem.task.held_out("valid", JUDGED)), None)
    if found is None:
        return learners.draw()
    count = len(learners.start)
    x, y = (getattr(found, name).expand(count, *getattr(found, name).shape) for name in ("x", "y"))
    return learners.placed(Batch(x, y))
