"""Numbers that a configuration tells before anything is run: its settings, and a task's own."""

from functools import cache

from attractor.experiments.table import load
from attractor.tables import make

CONFIG, TASK = "config:", "task:"
"""Before a setting such as ``train.steps``, and before an attribute of the task."""


def is_configured(measure: str) -> bool:
    """Whether a measure needs no runs.

    Example:
        >>> is_configured("config:train.steps"), is_configured("accuracy")
        (True, False)
    """
    return measure.startswith((CONFIG, TASK))


@cache
def configured(experiment: str, label: str, measure: str) -> float:
    """What the configuration of a variant says.

    Example:
        >>> configured("m2sgd-table-5.1", "MetaSGD", "config:train.steps")
        10000.0
        >>> round(configured("copy", "NRU", "task:baseline"), 4)
        0.1733
    """
    tables = load(experiment)[1].variants()[label]
    if measure.startswith(TASK):
        from attractor.tasks import TASKS  # torch, for which a table of names need not wait

        return float(getattr(make("task", TASKS, tables["task"]), measure.removeprefix(TASK)))
    table, _, name = measure.removeprefix(CONFIG).partition(".")
    return float(tables[table][name])
