"""Search for good settings by Optuna, judged on validation data, over the runs of an experiment.

What was tried is kept on disk beside the runs, so the same command goes on where it was stopped;
runs that are hopeless beside the others are left early.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from attractor.errors import InputError
from attractor.experiments.check import refusals
from attractor.experiments.config import RunConfig
from attractor.experiments.grid import sweep_runs
from attractor.experiments.naming import labelled
from attractor.experiments.space import Space
from attractor.experiments.train import build, run_folder, train
from attractor.experiments.trials import Trial, Trials, alone, optuna
from attractor.runs.drive import Context
from attractor.runs.engines import ENGINES, Places
from attractor.runs.jobs import Ended
from attractor.runs.read import load_runs
from attractor.training.process import Stopped

BETWEEN_LOOKS = 1.0
"""Seconds from one look at whether a run is hopeless to the next, at least."""


class Found(NamedTuple):
    """What a search came to, the best first; ``measure`` is of the validation split."""

    measure: str
    keys: tuple[str, ...]
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial | None:
        return next((one for one in self.trials if one.value is not None), None)


class Search(NamedTuple):
    """What is searched, as each worker needs to know it; `of` checks it first."""

    name: str
    space: Space
    changes: tuple[str, ...]
    only: tuple[str, ...]
    measure: str
    goal: str
    out: Path
    data: Path | None
    call: str = ""
    """Tells the trials of this call from those of earlier ones."""

    @classmethod
    def of(
        cls,
        name: str,
        space: Space,
        *,
        changes: Sequence[str] = (),
        only: Sequence[str] = (),
        measure: str = "loss",
        out: Path = Path("runs"),
        data: Path | None = None,
    ) -> "Search":
        """A search for the least or greatest mean over seeds of a measure on validation data.

        Args:
            name: an experiment of the table, or a TOML file; one variant of it.
            space: what to choose from.
            changes: ``a.b=value`` for all points.
            only: the variant, by its label.
            measure: of the validation split; the last one of each run counts.
            out: the folder that holds all runs.
            data: the data root.
        """
        optuna()
        _refuse(name, space, changes, only, data)
        goal = _goal(_runs(name, space.first, changes, only), measure, data)
        given = (tuple(changes), tuple(only), measure, goal, Path(out).absolute(), data)
        return cls(name, space, *given, call=uuid.uuid4().hex)

    @property
    def journal(self) -> Path:
        """The file that keeps what was tried; another search, or configuration, has another."""
        asked = [str(part) for part in self[:6]]
        asked += [one.id for one in _runs(self.name, self.space.first, self.changes, self.only)]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:10]
        stem = Path(self.name).stem
        return self.out / stem / f"search-{digest}.journal"

    def trials(self) -> Trials:
        """What was tried so far, and what is to be tried next."""
        return Trials(self.journal, self.space, self.goal)

    def named(self, trial: Trial) -> str:
        """A trial with its point."""
        keys = self.space.keys
        return labelled(f"trial {trial.number}", keys, dict(zip(keys, trial.values, strict=True)))

    def runs(self, params: Mapping[str, Any]) -> list[RunConfig]:
        """The runs of a point, one for each seed."""
        return _runs(self.name, [*self.changes, *self.space.changes(params)], (), self.only)


class Begun(NamedTuple):
    """A trial that is under way, and its runs, which are done one after another."""

    trial: Trial
    runs: tuple[RunConfig, ...]


def search(
    what: Search,
    trials: int,
    *,
    places: Places = Places(),  # noqa: B008 - a constant
    on_trial: Callable[[int, Ended[Trial | None]], None] = lambda count, ended: None,
) -> Found:
    """Try points of a space until so many have their end, those of earlier calls included.

    Each point is tried once, so that a space of few points has as many trials at most.

    Args:
        what: is searched.
        trials: how many points.
        places: where runs are done, and how many at a time.
        on_trial: told of each trial as it ends: how many have ended, and how this one did, pruned
            too; there is no trial if it was stopped or failed before it had its point.
    """
    places.check()
    wanted = min(trials, what.space.size)
    with alone(what.journal):
        kept = what.trials()
        before = count = kept.requeue()

        def ended(one: Ended[int]) -> None:
            nonlocal count
            trial = kept.asked(what.call).get(_mark(what, one.config))
            told = None if trial is None else kept.told(trial)
            how = "pruned" if told is not None and told.status == "pruned" else one.how
            count += how != "stopped"
            on_trial(count, Ended(told, how, one.message))

        if before < wanted:
            threads = _runs(what.name, what.space.first, what.changes, what.only)[0].train.threads
            ENGINES[places.engine](
                range(before, wanted),
                partial(_try, what),
                name=lambda number: "a trial",
                folder=what.out,
                threads=threads,
                places=places,
                on_end=ended,
            )
        return Found(f"valid {what.measure}", what.space.keys, kept.found())


def begun(what: Search) -> Callable[[], list[Begun]]:
    """Looks up the trials of a search that are under way, whichever process has them."""
    kept = what.trials()
    runs: dict[int, tuple[RunConfig, ...]] = {}

    def look() -> list[Begun]:
        found = []
        for one in kept.asked(what.call).values():
            if one.state == kept.states.RUNNING:
                if one.number not in runs:
                    runs[one.number] = tuple(what.runs(one.params))
                found.append(Begun(kept.told(one), runs[one.number]))
        return found

    return look


def _try(what: Search, number: int, *, stop: Callable[[], bool]) -> None:
    """One trial: its runs, one seed after another."""
    kept = what.trials()
    trial = kept.ask(_mark(what, number))
    name = what.named(Trial(trial.number, tuple(what.space.written(trial.params)), None, ""))
    look = _Look(trial, what, stop)
    try:
        values = []
        for config in what.runs(trial.params):
            look.folder = run_folder(what.out, config)
            told = f"{name}, seed {config.seed}"
            train(config, what.out, data=what.data, wait=True, stop=look, name=told)
            values.append(_last(look.folder, what.measure)[1])
        kept.study.tell(trial, fmean(values))
    except Stopped:
        if look.hopeless:
            kept.study.tell(trial, state=kept.states.PRUNED)
            return
        trial.set_user_attr("stopped", True)
        kept.study.tell(trial, state=kept.states.FAIL)
        raise
    except Exception:
        kept.study.tell(trial, state=kept.states.FAIL)
        raise


def _mark(what: Search, number: int) -> str:
    """What a trial is marked with: the call that asked for it, and which of its trials it is."""
    return f"{what.call}/{number}"


class _Look:
    """Whether to stop: because that was asked, or because the trial is hopeless."""

    def __init__(self, trial: Any, what: Search, stop: Callable[[], bool]) -> None:
        self.trial, self.what, self.stop = trial, what, stop
        self.folder = Path()
        self.next, self.reported, self.hopeless = 0.0, -1, False

    def __call__(self) -> bool:
        if self.stop():
            return True
        if time.monotonic() < self.next:
            return False
        step, value = _last(self.folder, self.what.measure, missing=(-1, 0.0))
        self.next = time.monotonic() + BETWEEN_LOOKS
        if step > self.reported:
            self.trial.report(value, step)
            self.reported = step
            self.hopeless = self.trial.should_prune()
        return self.hopeless


def _last(
    folder: Path, measure: str, missing: tuple[int, float] | None = None
) -> tuple[int, float]:
    """The last step at which a run measured its validation data, and what it found."""
    series = {}
    if (folder / "config.toml").exists():
        series = load_runs([folder])[0].series("valid", measure)
    if series:
        step = max(series)
        return step, series[step]
    if missing is not None:
        return missing
    raise InputError(
        f"expected runs that measure {measure!r} on validation data, but {folder.name} has none. "
        "Try --set train.eval_every=100."
    )


def _runs(
    name: str, point: Sequence[str], changes: Sequence[str], only: Sequence[str]
) -> list[RunConfig]:
    """The runs of one point, which are of one variant."""
    configs = sweep_runs(name, [], [*changes, *point], only)
    labels = sorted({config.label for config in configs})
    if len(labels) > 1:
        raise InputError(
            f"expected one variant to search the settings of, but {name} has {len(labels)}. "
            f"Try --only {labels[0]!r}."
        )
    return configs


def _refuse(
    name: str, space: Space, changes: Sequence[str], only: Sequence[str], data: Path | None
) -> None:
    """Refuse a space with a value that no run can have, before any is spent on it."""
    for point in space.edges:
        first, *_ = _runs(name, point, changes, only)
        for why in refusals([first], data).values():
            raise InputError(why)
        plan = getattr(first.train, "plan", None)  # that of supervised runs alone
        if plan and plan.steps < plan.eval_every and not plan.measures_after(plan.steps):
            raise InputError(
                f"expected validation data to be measured within the {plan.steps} steps of a run, "
                f"but eval_every is {plan.eval_every}. Try --set train.eval_every={plan.steps}."
            )


def _goal(configs: Sequence[RunConfig], measure: str, data: Path | None) -> str:
    """Whether a measure should be least or greatest, as the task of a run declares it."""
    if measure == "loss":
        return "min"
    task = build(configs[0], Context(data)).data
    declared = getattr(task, "measures", {})
    if measure not in declared or declared[measure].goal == "none":
        known = ["loss", *(name for name, one in declared.items() if one.goal != "none")]
        raise InputError(
            f"expected a measure to search by ({', '.join(sorted(set(known)))}), "
            f"but got {measure!r}. Try loss."
        )
    return str(declared[measure].goal)
