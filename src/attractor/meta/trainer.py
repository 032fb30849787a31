"""Meta-training: learner after learner, the rule gets better at training them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor, nn

from attractor.errors import unknown
from attractor.meta.divergence import Patience
from attractor.meta.learners import Learners, Problem
from attractor.meta.saving import learning, load_learning, load_random, load_trained, trained
from attractor.meta.settings import (
    bounds,
    check_choices,
    check_counts,
    check_generator,
    check_numbers,
    check_trainable,
    draw_horizon,
    measured,
    normal,
)
from attractor.meta.unroll import Objective, Position, Unrolled, first_order, second_order
from attractor.optimisers import Rule
from attractor.training.process import Row, finish

COUNTS = ("step", "round", "updates", "horizon")
"""Updates of the rule so far; the round, the learners' updates in it, and how many they will be."""


class MetaTrainer:
    r"""Trains a rule, one unroll at a time: Algorithm 1 of the thesis, and what goes beyond it.

    A round starts `together` fresh learners of one problem, the problems taking turns. They are
    updated `steps` times by the rule; after every `unroll` updates, the rule's weights move
    against the gradient of the losses in that stretch, and the learners and the rule's state go
    on from where they are, cut off from their past.

    Args:
        rule: what is trained, in place.
        problems: what its learners are, round by round.
        learners: how many learners in all.
        steps: updates of each learner; a pair draws a number for each round between the two,
            evenly on a logarithmic scale.
        unroll: updates between two of the rule.
        together: learners at once, whose losses are averaged.
        lr: of Adam, which updates the rule.
        clamp: bound of each entry of the meta-gradient.
        order: 1 takes the learners' gradients as constants; 2 differentiates through them.
        objective: an update is judged on the ``"next"`` batch, or on the ``"same"``.
        perturb: standard deviation of the noise on learners' parameters after their first
            update; it falls with the number of updates, as 1/t.
        generator: draws everything that is random.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import LSTMOptimiser
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> generator = torch.Generator().manual_seed(0)
        >>> trainer = MetaTrainer(
        ...     LSTMOptimiser(hidden_size=4), [problem], learners=1, steps=4, unroll=2,
        ...     generator=generator,
        ... )
        >>> while not trainer.done:
        ...     [row] = trainer.advance()
        >>> trainer.step, sorted(row)
        (2, ['last', 'loss', 'split'])

    Departs from the paper: the last update of each unroll counts, which Algorithm 1 leaves
    without a meta-gradient. Learners whose losses, parameters or meta-gradient are no longer
    finite are given up, and that unroll does not update the rule. After five such rounds in a
    row, or the last two, or all there are, a `Diverged` says so and the rule has the weights
    again with which a round last went well.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474; Kuo (2021), thesis, Algorithm 1.
    """

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem],
        *,
        learners: int = 20,
        steps: int | tuple[int, int] = 100,
        unroll: int = 20,
        together: int = 1,
        lr: float = 1e-3,
        clamp: float = 1.0,
        order: Literal[1, 2] = 1,
        objective: Objective = "next",
        perturb: float = 0.0,
        generator: Generator,
    ) -> None:
        check_counts(
            learners=(learners, None),
            together=(together, learners),
            unroll=(unroll, min(bounds(steps))),
            problems=(len(problems), None),
        )
        check_numbers(lr=lr, clamp=clamp, perturb=perturb)
        check_choices(order=(order, (1, 2)), objective=(objective, get_args(Objective)))
        check_generator(generator)
        check_trainable(rule)
        self.rule, self.problems = rule, list(problems)
        self.count, self.rounds = learners, -(-learners // together)
        self.steps, self.unroll, self.together = steps, unroll, together
        self.clamp, self.order, self.objective = clamp, order, objective
        self.perturb, self.generator = perturb, generator
        self.adam = torch.optim.Adam(rule.parameters(), lr=lr)
        self.step = 0
        self.round = 0
        self.updates = 0
        self.horizon = 0
        self.patience = Patience(
            rule,
            self.rounds,
            "rounds",
            "Try a smaller lr, a shorter unroll, or another generator seed.",
        )
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

    def advance(self) -> list[Row]:
        """One unroll, and one update of the rule; its losses, unless learners were given up."""
        if self.learners is None or self.position is None:
            self._start_round()
        assert self.learners is not None
        assert self.position is not None
        count = min(self.unroll, self.horizon - self.updates)
        engine = first_order if self.order == 1 else second_order
        self.adam.zero_grad()
        done = engine(
            self.rule, self.learners, self.position, self._noise(count), objective=self.objective
        )
        self.step += 1
        if not self._finite(done):
            where = f"at step {self.updates + count} of round {self.round + 1}"
            self.patience.lost(where, last=self.round + 1 == self.rounds)
            self._end_round()
            return []
        self.updates += count
        ended = self.updates >= self.horizon
        if ended:
            self.patience.well()
        nn.utils.clip_grad_value_(self.rule.parameters(), self.clamp)
        self.adam.step()
        self.position = done.end
        if ended:
            self._end_round()
        return measured(done.losses.mean().item(), done.losses[-1].mean().item())

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes: tensors and plain values, in dictionaries."""
        now = None
        if self.learners is not None and self.position is not None:
            now = learning(self.learners, self.position)
        return {
            **trained(self.rule, self.adam, self.generator),
            **{name: getattr(self, name) for name in COUNTS},
            "patience": self.patience.state_dict(),
            "learners": now,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        load_trained(self.rule, self.adam, state)
        self.patience.load_state_dict(state["patience"])
        for name in COUNTS:
            setattr(self, name, state[name])
        self.learners = self.position = None
        if state["learners"] is not None:
            count = len(state["learners"]["params"])
            self.learners = Learners(self._problem(), count, generator=self.generator)
            self.position = load_learning(self.rule, self.learners, state["learners"])
        load_random(self.generator, state)

    def _problem(self) -> Problem:
        return self.problems[self.round % len(self.problems)]

    def _start_round(self) -> None:
        count = min(self.together, self.count - self.round * self.together)
        self.learners = Learners(self._problem(), count, generator=self.generator)
        params = self.learners.first_params(self.rule)
        state = self.learners.first_state(self.rule, params)
        self.position = Position(params, state, self.learners.draw())
        self.updates = 0
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


def train(
    rule: Rule,
    problems: Sequence[Problem],
    *,
    on_row: Callable[[Row], None] = lambda row: None,
    generator: Generator | None = None,
    **options: Any,
) -> list[Row]:
    """Meta-train a rule in one call.

    Args:
        rule: what is trained, in place.
        problems: what its learners are.
        on_row: told of each update of the rule.
        generator: draws everything that is random; it must be given.
        options: of `MetaTrainer`.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import MetaSGD
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> generator = torch.Generator().manual_seed(0)
        >>> history = train(
        ...     MetaSGD(size=310), [problem], learners=2, steps=6, unroll=3, generator=generator
        ... )
        >>> [row["loss"] > 0 for row in history]
        [True, True, True, True]
    """
    known = {*inspect.signature(MetaTrainer).parameters} - {"rule", "problems"}
    for name in options:
        if name not in known:
            raise unknown("option of MetaTrainer", name, known)
    trainer = MetaTrainer(rule, problems, generator=check_generator(generator), **options)

    def tell(rows: list[Row]) -> None:
        for row in rows:
            on_row(row)

    return finish(trainer, on_rows=tell)
