"""What each number of runs is: as they declare it, then as their rows are known.

What neither tells, of run folders of old releases and of a user's own kinds, is guessed by name.
"""

import re
from collections.abc import Iterable, Sequence

from attractor.measures import ACCURACY, Measure
from attractor.runs.read import Run, is_finite

ROWS = {
    "accuracy": ACCURACY,
    "gradient_norm": Measure("none", log=True),
    "last": Measure("min", log=True),
    "loss": Measure("min", log=True),
    "lr": Measure("none", log=True),
    "solved": Measure("max", "share"),
    "sparsity": Measure("none", "share"),
    "steps_to_solve": Measure("min", "steps"),
}
"""What processes log on the way, and runs that did not end cannot declare."""

TASK = re.compile(r"task_[1-9]\d*")
"""The accuracy on one task of a stream."""

NAMES = {"levels": "number of levels completed"}
"""Of measures whose own names say too little."""

_GROWS = ("accuracy", "reward", "score", "transfer", "solved")


def measure(name: str, runs: Iterable[Run]) -> Measure:
    """What a number is, from the first of the runs that declares it.

    Args:
        name: of the number.
        runs: that have it.

    Example:
        >>> measure("gradient_norm", []).goal, measure("task_12", []).unit
        ('none', 'share')
    """
    for run in runs:
        declared = run.outcome.get("measures")
        if isinstance(declared, dict) and (found := _declared(declared.get(name))):
            return found
    if name in ROWS:
        return ROWS[name]
    return ACCURACY if TASK.fullmatch(name) else _guessed(name)


def words(name: str) -> str:
    """A measure as a reader calls it.

    Example:
        >>> words("gradient_norm"), words("task_2")
        ('gradient norm', 'accuracy on task 2')
    """
    if TASK.fullmatch(name):
        return f"accuracy on {name.replace('_', ' ')}"
    return NAMES.get(name, name.replace("_", " "))


def main_metric(runs: Sequence[Run]) -> str:
    """The measure that ranks: steps to solve, then what runs declare as leading, then one that
    should grow, and the loss last."""
    names = {"loss"}
    for run in runs:
        names.update(run.test)
        held_out = (row for row in run.rows if row["split"] in ("valid", "test"))
        names.update(name for row in held_out for name, value in row.items() if is_finite(value))
    names.discard("step")
    declared = [run.outcome.get("leading") for run in runs]

    def place(name: str) -> tuple[object, ...]:
        goal = measure(name, runs).goal
        return (
            goal == "none",
            name != "steps_to_solve",
            name not in declared,
            name != "accuracy",
            goal != "max",
            name == "loss",
            name,
        )

    return min(names, key=place)


def _declared(found: object) -> Measure | None:
    match found:
        case ["max" | "min" | "none" as goal, str(unit), bool(log)]:
            return Measure(goal, unit, log)
    return None


def _guessed(name: str) -> Measure:
    """By its name: losses, errors and all unknown ones should shrink."""
    share = "share" if "accuracy" in name else ""
    if any(word in name for word in _GROWS):
        return Measure("max", share)
    return Measure("min", share, log="loss" in name or "norm" in name)
