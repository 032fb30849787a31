"""The trials of a search, as Optuna keeps them in a file that processes may share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from attractor.errors import InputError
from attractor.experiments.space import Space
from attractor.files import explained
from attractor.runs.folder import BusyError

STATUS = {"FAIL": "failed"}
"""What Optuna calls otherwise than we do."""
ASKS = 20
"""How often another point is asked for in the place of one that a trial has already."""


class Trial(NamedTuple):
    """One point that was tried: ``status`` is complete, pruned, failed, stopped or running."""

    number: int
    values: tuple[str, ...]
    value: float | None
    status: str


class Trials:
    """Points of a space, each tried once: equal points come to equal numbers.

    Args:
        journal: the file.
        space: what to choose from.
        goal: ``"min"`` or ``"max"``, of the value of a trial.
    """

    def __init__(self, journal: Path, space: Space, goal: str) -> None:
        self.optuna, self.space, self.goal = optuna(), space, goal
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.states = self.optuna.trial.TrialState
        kept = self.optuna.storages.journal
        with explained(journal):
            journal.parent.mkdir(parents=True, exist_ok=True)
            storage = self.optuna.storages.JournalStorage(kept.JournalFileBackend(str(journal)))
            self.study: Any = self.optuna.create_study(
                study_name=journal.stem,
                storage=storage,
                direction="minimize" if goal == "min" else "maximize",
                sampler=self.optuna.samplers.TPESampler(constant_liar=True),
                pruner=self.optuna.pruners.MedianPruner(n_startup_trials=4),
                load_if_exists=True,
            )

    def ask(self, mark: str) -> Any:
        """The next trial, at a point that no other has, as long as there is one.

        Args:
            mark: which trial of which call it is. If there is one already, a worker was lost on
                it, and its point is taken up again.
        """
        for lost in self._kept:
            if lost.state == self.states.RUNNING and lost.user_attrs.get("asked") == mark:
                self.study.tell(lost.number, state=self.states.FAIL)
                self._again(lost)
        for _ in range(ASKS):
            trial = self._ask()
            if not self._is_taken(trial):
                break
            trial.set_user_attr("twice", True)
            self.study.tell(trial, state=self.states.FAIL)
            if left := self.space.without(one.params for one in self._own):
                self.study.enqueue_trial(left[trial.number % len(left)])
        else:
            trial = self._ask()
        trial.set_user_attr("asked", mark)
        return trial

    def requeue(self) -> int:
        """Put back what was stopped or killed on its way; how many trials have their end."""
        queued = self._queued
        ended = 0
        for one in self._kept:
            again = one.number in queued or one.user_attrs.get("stopped")
            if one.state == self.states.RUNNING:  # its process is gone: this one has the search
                self.study.tell(one.number, state=self.states.FAIL)
                again = True
            if not again:
                # one that was killed before it had its point was none
                own = bool(one.params) and "twice" not in one.user_attrs
                ended += one.state.is_finished() and own
            elif one.params and one.number not in queued:
                self._again(one)
        return ended

    def asked(self, call: str) -> dict[str, Any]:
        """The trials of a call by their mark, the last of each: a lost worker leaves one behind."""
        return {
            mark: one
            for one in self._kept
            if (mark := one.user_attrs.get("asked", "")).startswith(f"{call}/")
        }

    def told(self, one: Any) -> Trial:
        """A trial as Optuna keeps it, as we tell of it."""
        status = STATUS.get(one.state.name, one.state.name.lower())
        if one.user_attrs.get("stopped"):
            status = "stopped"
        value = one.value if status == "complete" else None
        return Trial(one.number, tuple(self.space.written(one.params)), value, status)

    def found(self) -> tuple[Trial, ...]:
        """All when none is under way, the best first; one that was taken up again is told once."""
        sign = 1 if self.goal == "min" else -1
        trials = [self.told(one) for one in self._own]
        # what still runs is of a process that was killed
        trials = [
            one._replace(status="stopped") if one.status == "running" else one for one in trials
        ]
        return tuple(sorted(trials, key=lambda one: (one.value is None, sign * (one.value or 0.0))))

    @property
    def _kept(self) -> list[Any]:
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    @property
    def _queued(self) -> set[int | None]:
        """The numbers of trials that were put back."""
        return {one.user_attrs.get("again") for one in self._kept}

    @property
    def _own(self) -> list[Any]:
        """Trials that have a point, which no later one took up or had before."""
        queued = self._queued
        return [
            one
            for one in self._kept
            if one.params and one.number not in queued and "twice" not in one.user_attrs
        ]

    def _ask(self) -> Any:
        return self.study.ask(self.space.distributions(self.optuna))

    def _again(self, one: Any) -> None:
        self.study.enqueue_trial(one.params, user_attrs={"again": one.number})

    def _is_taken(self, trial: Any) -> bool:
        """Whether a trial before this one has its point."""
        point = list(self.space.written(trial.params))
        return any(
            list(self.space.written(one.params)) == point
            for one in self._own
            if one.number < trial.number
        )


@contextmanager
def alone(journal: Path) -> Iterator[None]:
    """One process at a time has a search, so that what is still running there was killed."""
    with explained(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(journal.with_suffix(".lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise BusyError(
                "this search is going on in another process. Wait for it, or stop it first."
            ) from error
    try:
        yield
    finally:
        lock.release()


def optuna() -> Any:
    """The package, or a sentence on how to install it."""
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            "expected Optuna for a search, but it is not installed. "
            'Try pip install "attractor[search]".'
        ) from error
    return optuna
