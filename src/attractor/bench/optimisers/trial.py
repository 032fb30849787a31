"""One cell of the table: an optimiser on a task, its rate tuned, then measured over seeds."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attractor import __version__
from attractor.bench.kept import Kept
from attractor.bench.optimisers.contenders import contender, make, rung
from attractor.bench.optimisers.tasks import problem
from attractor.errors import InputError
from attractor.optimisers import Rule, attach, load_rule, shipped
from attractor.optimisers.files import load_pretrained
from attractor.optimisers.identity import fingerprint
from attractor.results.standing import Outcome
from attractor.tasks import Split
from attractor.training import Diverged, Plan, Stopped, Supervised

TUNING_SEED = 100
"""Of the trainings by which rates are chosen; those that count begin with seed 0."""
BEYOND = 8
"""Rungs that a search may climb beyond where it began, to either side."""
LIMIT = 10.0
"""Seconds of the processor that a training of the quick benchmark may take."""
FIRST = 3
"""Updates after which it is clear how long a training will take."""
HELD_OUT, QUICK_HELD_OUT = 10_000, 1_000
"""Samples by which a network is judged at most; of a text, a fifth of as many pieces."""


class Case(NamedTuple):
    """A cell of the table that is to be filled.

    `updates` are those of its trainings, where they are not as many as the horizon: as many as
    take the time of so many updates of another optimiser.
    """

    task: str
    horizon: int
    contender: str
    seeds: tuple[int, ...]
    quick: bool
    updates: int | None = None

    @property
    def length(self) -> int:
        """Updates of its trainings."""
        return self.horizon if self.updates is None else self.updates

    def __str__(self) -> str:
        return f"{self.contender}, {self.task}, {self.horizon:,} updates"


@dataclass(frozen=True)
class Trial:
    """A training, and what it came to.

    Args:
        rate: with which, or None for an optimiser that has its own.
        seed: of weights and batches.
        split: on which it was judged.
        loss: there, infinite if the training diverged.
        seconds: of the processor, for each update with its gradient.
    """

    rate: float | None
    seed: int
    split: Split
    loss: float
    seconds: float


def measure(case: Case, *, folder: Path, stop: Callable[[], bool]) -> None:
    """Fill a cell: tune the rate on validation data, then measure each seed on test data.

    Every training that is done is kept in the folder at once, and not done again.
    """
    torch.set_num_threads(1)
    kept = kept_in(folder, case)

    def loss(rate: float | None, seed: int, split: Split) -> float:
        if stop():
            raise Stopped
        wanted = (rate, seed, split)
        done = next((t for t in kept.found if (t.rate, t.seed, t.split) == wanted), None)
        if done is None:
            done = train(case, rate, seed, split)
            kept.add(done)
        return done.loss

    start = contender(case.contender).first(quick=case.quick)
    best = None
    if start:
        best = rung(tuned(lambda index: loss(rung(index), TUNING_SEED, "valid"), start))
    for seed in case.seeds:
        loss(best, seed, "test")


def tuned(loss: Callable[[int], float], start: Iterable[int]) -> int:
    """The rung with the least loss; the search climbs on while the best is at an edge.

    Example:
        >>> tuned(lambda index: (index - 5) ** 2, range(3))
        5
    """
    tried = {index: loss(index) for index in start}
    low, high = min(tried) - BEYOND, max(tried) + BEYOND
    while True:
        best = min(tried, key=lambda index: tried[index])
        further = best - 1 if best == min(tried) else best + 1
        if further in tried or not low <= further <= high:
            return best
        tried[further] = loss(further)


def train(case: Case, rate: float | None, seed: int, split: Split) -> Trial:
    """Train once, and judge where the optimiser wants to be judged."""
    whole = problem(case.task, case.quick)
    generator = torch.Generator().manual_seed(seed)
    network = whole.model(generator)
    making = make(case.contender, rate, whole.task.shown().x)
    if isinstance(making, Rule) and making.horizon is not None:
        making.horizon = case.length
    size, most = 500, QUICK_HELD_OUT if case.quick else HELD_OUT
    plan = Plan(
        case.length,
        whole.batch_size,
        log_every=case.length,
        eval_every=None,
        eval_batch_size=size,
        eval_batches=most // size,
        schedule=contender(case.contender).schedule,
    )
    training = Supervised(network, whole.task, attach(making, network), plan, generator=generator)
    began = time.process_time()
    try:
        while not training.done:
            training.advance()
            if case.quick and training.step == FIRST:
                _check_time(case, (time.process_time() - began) / FIRST)
        seconds = (time.process_time() - began) / case.length
        loss = training.measure(split)["loss"]
    except Diverged:
        seconds, loss = (time.process_time() - began) / max(1, training.step), math.inf
    return Trial(rate, seed, split, loss if math.isfinite(loss) else math.inf, seconds)


def _check_time(case: Case, seconds: float) -> None:
    if seconds * case.length > LIMIT:
        raise InputError(
            f"{case}: left out of the quick benchmark, for an update takes {seconds:.2f} s. "
            "The whole benchmark has it."
        )


def kept_in(folder: Path, case: Case) -> Kept[Trial]:
    """The trainings of a cell that are done.

    Those of other weights of a rule, or of another version of attractor, are not taken up.
    """
    of = Path(case.contender).name.removesuffix(".safetensors")
    path = folder / "trials" / f"{case.task}-{case.length}-{of}.json"
    key = {"quick": case.quick, "attractor": __version__, "weights": _weights(case)}
    return Kept(path, key, _row, _trial)


def outcome(case: Case, folder: Path) -> Outcome | None:
    """What a cell came to; None if it is not complete."""
    trials = kept_in(folder, case).found
    tested = [t for t in trials if t.split == "test" and t.seed in case.seeds]
    tried = {t.rate: t.loss for t in trials if t.split == "valid" and t.rate is not None}
    rate = min(tried, key=lambda one: tried[one]) if tried else None
    tested = [t for t in tested if t.rate == rate]
    if {t.seed for t in tested} != {*case.seeds}:
        return None
    return Outcome(
        case.task,
        case.horizon,
        case.contender,
        rate,
        tuple(sorted(tried)),
        tuple(t.loss for t in sorted(tested, key=lambda t: t.seed)),
        min(t.seconds for t in tested),
        case.updates,
    )


def _row(trial: Trial) -> dict[str, Any]:
    return asdict(trial) | {"loss": trial.loss if math.isfinite(trial.loss) else None}


def _trial(row: dict[str, Any]) -> Trial:
    return Trial(**{**row, "loss": math.inf if row["loss"] is None else float(row["loss"])})


def _weights(case: Case) -> list[str]:
    """What tells the learned rule of a cell from others: its options and weights."""
    if case.contender.endswith(".safetensors"):
        return [_told(load_rule(case.contender))]
    names = [one.partition("/") for one in shipped()]
    return [_told(load_pretrained(kind, name)) for kind, _, name in names if kind == case.contender]


def _told(rule: Rule) -> str:
    return f"{rule.key} {sorted(rule.options.items())} {fingerprint(rule)}"
