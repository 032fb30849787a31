"""Meta-training: learner after learner, the rule gets better at training them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Generator, nn

from attractor.errors import InputError, unknown
from attractor.meta.bptt import BPTT
from attractor.meta.distribution import Distribution
from attractor.meta.divergence import Patience
from attractor.meta.estimate import WORSE, Estimator
from attractor.meta.evolution import Evolution
from attractor.meta.learners import Problem
from attractor.meta.problems import EXAMPLE, TensorTask, check_problems, check_tasks, problem_of
from attractor.meta.saving import load_random, load_trained, trained
from attractor.meta.settings import (
    check_choices,
    check_counts,
    check_generator,
    check_numbers,
    check_trainable,
    measured,
)
from attractor.meta.validation import Validation
from attractor.meta.whole import Whole
from attractor.optimisers import Maker, Rule
from attractor.training.clipping import cut_to_norm
from attractor.training.process import Row, finish
from attractor.training.schedules import Schedule, scheduled

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "bptt": BPTT,
    "pes": Evolution,
    "es": partial(Evolution, persistent=False),
    "whole": Whole,
}
"""How a meta-gradient is had."""


class MetaTrainer:
    r"""Trains a rule: learners run, their losses say where its weights are to go, it goes there.

    Args:
        rule: what is trained, in place.
        problems: what its learners are, taking turns; a `Distribution` is drawn from anew for each.
        estimator: of the meta-gradient: ``"bptt"``, see `BPTT`; ``"pes"`` or ``"es"``, see
            `Evolution`, persistent or plain; ``"whole"``, see `Whole`, for rules of few weights.
        lr: of what updates the rule; None for its own default.
        optimiser: makes what updates the rule; Adam by default.
        schedule: how the rate falls over all updates.
        clamp: bound of each entry of the meta-gradient; by default 1 for ``"bptt"``, else none.
        norm: bound of the norm of the meta-gradient; by default none for ``"bptt"``, else 1.
        validate_every: updates of the rule between two measurements on trainings that are always
            the same, see `Validation`; the rule ends with the weights that did best there. None
            for none.
        validate_on: how many such trainings.
        generator: draws everything that is random.
        options: of the estimator, such as ``steps``, ``unroll`` and ``objective``.

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

    Departs from the paper: after five rounds in a row whose learners diverged, or if those of the
    last round of all did, a `Diverged` says so and the rule has the weights again with which a
    round last went well. A round is that of `BPTT`; of evolution strategies it is an update, and
    the last of all also counts as diverged if the median learner ends it with more than twice the
    loss with which it began.

    References:
        Those of the estimators.
    """

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem | Distribution],
        *,
        estimator: Literal["bptt", "pes", "es", "whole"] = "bptt",
        lr: float | None = None,
        optimiser: Maker | None = None,
        schedule: Schedule | None = None,
        clamp: float | None = None,
        norm: float | None = None,
        validate_every: int | None = None,
        validate_on: int = 20,
        generator: Generator,
        **options: Any,
    ) -> None:
        check_choices(
            estimator=(estimator, tuple(ESTIMATORS)),
            schedule=(schedule, (*get_args(Schedule), None)),
        )
        given = {"lr": lr, "clamp": clamp, "norm": norm}
        check_numbers(**{name: value for name, value in given.items() if value is not None})
        check_problems(problems)
        check_counts(problems=(len(problems), None))
        check_generator(generator)
        check_trainable(rule)
        make, known = ESTIMATORS[estimator], options_of(estimator)
        for name in options:
            if name not in known:
                raise unknown("option of MetaTrainer", name, known | OWN)
        self.estimator: Any = make(rule, problems, generator=generator, **options)
        self.rule, self.generator = rule, generator
        self.clamp = self.estimator.clamp if clamp is None else clamp
        self.norm = self.estimator.norm if norm is None else norm
        rate: dict[str, Any] = {} if lr is None else {"lr": lr}
        self.optimiser = (optimiser or torch.optim.Adam)(rule.parameters(), **rate)
        self.scheduler = scheduled(schedule, self.optimiser, self.planned)
        self.step = 0
        self.validate_every = validate_every
        self.validation = None
        if validate_every is not None:
            check_counts(validate_every=(validate_every, None), validate_on=(validate_on, None))
            steps = self.estimator.steps
            self.validation = Validation(rule, problems, steps=steps, trainings=validate_on)
        self.patience = Patience(
            rule, self.estimator.rounds, self.estimator.what, self.estimator.advice
        )

    @property
    def planned(self) -> int:
        """Updates of the rule in all, at most."""
        return int(self.estimator.planned)

    @property
    def done(self) -> bool:
        """Whether all learners have had their updates."""
        return bool(self.estimator.done)

    def advance(self) -> list[Row]:
        """One stretch of the learners, and one update of the rule; its losses, if finite.

        Where it is validated, also the mean share of their first loss that learners are left with,
        as the loss of the split ``"meta-valid"``; the first time before the first update.
        """
        told = self._validated() if self.step == 0 else []
        self.optimiser.zero_grad()
        found = self.estimator.stretch()
        self.step += 1
        if found.lost is not None:
            self.patience.lost(found.lost, last=self.done)
        elif found.worse and self.done:
            self.patience.lost(f"to more than {WORSE:g} times their first loss", last=True)
        elif found.well and not found.worse:
            self.patience.well()
        if found.moves:
            if self.clamp is not None:
                nn.utils.clip_grad_value_(self.rule.parameters(), self.clamp)
            if self.norm is not None:
                cut_to_norm(self.rule.parameters(), self.norm)
            self.optimiser.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return [*told, *measured(found.loss, found.last), *self._validated()]

    def _validated(self) -> list[Row]:
        """The rule on trainings that are always the same, if it is time; the best ends it."""
        if self.validation is None or self.validate_every is None:
            return []
        if self.step % self.validate_every and not self.done:
            return []
        share = self.validation.measure()
        if self.done:
            self.rule.load_state_dict(self.validation.weights)
        return [{"split": "meta-valid", "loss": share, "best": self.validation.best}]

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes: tensors and plain values, in dictionaries and lists."""
        return {
            **trained(self.rule, self.optimiser, self.scheduler, self.generator),
            "step": self.step,
            "patience": self.patience.state_dict(),
            **({} if self.validation is None else {"validation": self.validation.state_dict()}),
            "estimator": self.estimator.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        load_trained(self.rule, self.optimiser, self.scheduler, state)
        self.patience.load_state_dict(state["patience"])
        if self.validation is not None:
            self.validation.load_state_dict(state["validation"])
        self.estimator.load_state_dict(state["estimator"])
        self.step = state["step"]
        load_random(self.generator, state)


SHARED = {"rule", "problems", "generator", "persistent"}
OWN = {*inspect.signature(MetaTrainer).parameters} - {"rule", "problems", "options"}


def options_of(estimator: str) -> set[str]:
    """The options of an estimator.

    Example:
        >>> sorted(options_of("pes") - options_of("bptt"))
        ['clip', 'logarithm', 'moves', 'pairs', 'settled', 'sigma', 'updates']
    """
    return {*inspect.signature(ESTIMATORS[estimator]).parameters} - SHARED


def train(
    rule: Rule,
    problems: Sequence[Problem | Distribution] = (),
    *,
    tasks: Sequence[TensorTask] = (),
    batch_size: int | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
    generator: Generator | None = None,
    **options: Any,
) -> list[Row]:
    """Meta-train a rule in one call, on problems or on tensors.

    Args:
        rule: what is trained, in place.
        problems: what its learners are.
        tasks: the same from tensors: what makes a network, with a generator or without one; inputs
            and answers, samples first; and a loss of the two. Where learners are judged on
            held-out data, by ``"whole"`` and `validate_every`, every tenth sample is.
        batch_size: of the learners of `tasks`: 128, or all samples if they are fewer.
        on_row: told of each update of the rule.
        generator: draws everything that is random; for `problems` it must be given, and for
            `tasks` it is that of the seed 0 by default.
        options: of `MetaTrainer`.

    Example:
        >>> from attractor.optimisers import LSTMOptimiser
        >>> x, y = torch.randn(60, 4), torch.arange(60) % 3
        >>> task = (lambda: nn.Linear(4, 3), x, y, nn.functional.cross_entropy)
        >>> short = {"updates": 2, "steps": 4, "unroll": 2}
        >>> history = train(LSTMOptimiser(), tasks=[task], estimator="pes", **short)
        >>> [row["loss"] > 0 for row in history]
        [True, True]
    """
    check_problems(problems)
    check_tasks(tasks)
    if bool(problems) == bool(tasks):
        raise InputError(
            f"expected problems, or tasks, but got {len(problems)} and {len(tasks)} of them. Try "
            f"{EXAMPLE}."
        )
    if tasks:
        judged = options.get("estimator") == "whole" or options.get("validate_every") is not None
        problems = [problem_of(*task, batch_size=batch_size, hold_out=judged) for task in tasks]
        generator = torch.Generator().manual_seed(0) if generator is None else generator
    elif batch_size is not None:
        raise InputError(
            f"expected no batch_size beside problems, which have their own, but got {batch_size}. "
            "Leave it out."
        )
    trainer = MetaTrainer(rule, problems, generator=check_generator(generator), **options)

    def tell(rows: list[Row]) -> None:
        for row in rows:
            on_row(row)

    return finish(trainer, on_rows=tell)
