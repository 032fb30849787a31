"""Meta-training: learner after learner, the rule gets better at training them."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError, RunError
from attractor.meta.learners import Learners, Problem
from attractor.meta.saving import (
    learner_tensors,
    load_learner_tensors,
    load_rule_tensors,
    rule_tensors,
)
from attractor.meta.unroll import Moment, Objective, Unrolled, first_order, second_order
from attractor.optimisers import Rule
from attractor.tasks import Batch

PATIENCE = 5
"""Rounds of learners in a row that may diverge before training gives up."""


class Progress(NamedTuple):
    """One update of the rule: of which round of learners, after which step, with which losses."""

    round: int
    step: int
    loss: float
    last: float


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
        ...     progress = trainer.advance()
        >>> progress.step
        4

    Departs from the paper: the last update of each unroll counts, which Algorithm 1 leaves
    without a meta-gradient. Learners that diverge are given up, and the rule is not updated by
    them.

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
        shortest = steps if isinstance(steps, int) else min(steps)
        for name, value, most in (
            ("learners", learners, None),
            ("together", together, learners),
            ("unroll", unroll, shortest),
            ("problems", len(problems), None),
        ):
            if value < 1 or (most is not None and value > most):
                limit = "" if most is None else f" and at most {most}"
                raise InputError(
                    f"expected {name} to be at least 1{limit}, but got {value}. Try {name}=1."
                )
        self.rule, self.problems = rule, list(problems)
        self.rounds = -(-learners // together)
        self.steps, self.unroll, self.together = steps, unroll, together
        self.clamp, self.order, self.objective = clamp, order, objective
        self.perturb, self.generator = perturb, generator
        self.adam = torch.optim.Adam(rule.parameters(), lr=lr)
        self.round = 0
        self.step = 0
        self.horizon = 0
        self.failures = 0
        self.learners: Learners | None = None
        self.moment: Moment | None = None

    @property
    def done(self) -> bool:
        """Whether all learners have had their updates."""
        return self.round >= self.rounds

    def advance(self) -> Progress:
        """One unroll, and one update of the rule."""
        if self.learners is None or self.moment is None:
            self._start_round()
        assert self.learners is not None
        assert self.moment is not None
        count = min(self.unroll, self.horizon - self.step)
        engine = first_order if self.order == 1 else second_order
        self.adam.zero_grad()
        done = engine(
            self.rule, self.learners, self.moment, self._noise(count), objective=self.objective
        )
        progress = Progress(
            self.round + 1,
            self.step + count,
            done.losses.mean().item(),
            done.losses[-1].mean().item(),
        )
        if not self._finite(done):
            self._give_up(progress)
            return progress
        nn.utils.clip_grad_value_(self.rule.parameters(), self.clamp)
        self.adam.step()
        self.failures = 0
        self.step += count
        self.moment = done.moment
        if self.step >= self.horizon:
            self._end_round()
        return progress

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes: tensors by name under ``tensors``, the rest plain values."""
        tensors = rule_tensors(self.rule, self.adam)
        tensors["generator"] = self.generator.get_state()
        if self.learners is not None and self.moment is not None:
            params, state, batch = self.moment
            tensors |= learner_tensors(self.learners, params, state)
            tensors |= {"batch.x": batch.x.clone(), "batch.y": batch.y.clone()}
        numbers = {name: getattr(self, name) for name in ("round", "step", "horizon", "failures")}
        return {"tensors": tensors, "numbers": numbers}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        tensors: dict[str, Tensor] = saved["tensors"]
        load_rule_tensors(self.rule, self.adam, tensors)
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
        self.learners = self.moment = None
        if "params" in tensors:
            count = len(tensors["params"])
            self.learners = Learners(self._problem(), count, generator=self.generator)
            params, state = load_learner_tensors(self.rule, self.learners, tensors)
            batch = Batch(tensors["batch.x"].clone(), tensors["batch.y"].clone())
            self.moment = Moment(params, state, batch)
        self.generator.set_state(tensors["generator"])

    def _problem(self) -> Problem:
        return self.problems[self.round % len(self.problems)]

    def _start_round(self) -> None:
        self.learners = Learners(self._problem(), self.together, generator=self.generator)
        params = self.learners.start.to(next(self.rule.parameters()).dtype)
        state = self.learners.first_state(self.rule, params)
        self.moment = Moment(params, state, self.learners.draw())
        self.step = 0
        if isinstance(self.steps, int):
            self.horizon = self.steps
        else:
            low, high = self.steps
            u = torch.rand((), generator=self.generator).item()
            self.horizon = round(low * (high / low) ** u)

    def _end_round(self) -> None:
        self.round += 1
        self.learners = self.moment = None

    def _noise(self, count: int) -> Tensor:
        assert self.moment is not None
        params = self.moment.params
        if not self.perturb:
            return params.new_zeros(count, 1, 1)
        times = torch.arange(self.step + 1, self.step + count + 1, dtype=params.dtype)
        drawn = torch.randn(count, *params.shape, generator=self.generator, dtype=params.dtype)
        return (self.perturb / times)[:, None, None] * drawn

    def _finite(self, done: Unrolled) -> bool:
        slopes = [p.grad for p in self.rule.parameters() if p.grad is not None]
        tensors = [done.losses, done.moment.params, *slopes]
        return all(bool(t.isfinite().all()) for t in tensors)

    def _give_up(self, progress: Progress) -> None:
        """Leave a round whose learners diverged; the rule is as it was before."""
        self.failures += 1
        if self.failures >= PATIENCE:
            raise RunError(
                f"learners diverged in {self.failures} rounds in a row, the last at step "
                f"{progress.step} of round {progress.round}; the rule's last good weights are "
                "kept. Try a smaller lr, a shorter unroll, or another generator seed."
            )
        self._end_round()


def train(
    rule: Rule,
    problems: Sequence[Problem],
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    **options: Any,
) -> list[Progress]:
    """Meta-train a rule in one call.

    Args:
        rule: what is trained, in place.
        problems: what its learners are.
        on_progress: told of each update of the rule.
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
        >>> len(history)
        4
    """
    trainer = MetaTrainer(rule, problems, **options)
    history = []
    while not trainer.done:
        history.append(trainer.advance())
        on_progress(history[-1])
    return history
