"""Experiments read from TOML files, with what the command line changes in them."""

from collections.abc import Iterable
from pathlib import Path

from attractor.errors import InputError
from attractor.experiments.changes import changed, resized
from attractor.experiments.config import ExperimentConfig, validated
from attractor.experiments.files import TABLES, with_bases


def read(path: Path, changes: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment from a TOML file, with ``a.b=value`` changes."""
    content = with_bases(path)
    changes = list(changes)
    new = changed(content, changes) if changes else content
    over = changed({}, changes)
    tables = {name: table for name, table in over.items() if name in TABLES}
    check_budget(content.get("budget"), new.get("budget"))
    # the tables stay as the file has them: changes come last, after what a variant says
    own = {name: content.get(name, {}) for name in tables}
    experiment = validated(ExperimentConfig, {**new, **own, "changes": tables}, path.name)
    if experiment.budget == "full" and resized(content, tables):
        return experiment.model_copy(update={"budget": "changed"})
    return experiment


def check_budget(own: object, asked: object) -> None:
    """What ``--set`` says of the budget may not promise more than the file does."""
    order = ["quick", "changed", "full"]
    if asked in order[1:] and asked != own and order.index(str(asked)) > _place(own, order):
        raise InputError(
            f"expected the budget of the file ({own}) or a smaller one, but got budget={asked}, "
            "which its runs would not have. Try the experiment without -quick in its name."
        )


def _place(own: object, order: list[str]) -> int:
    return order.index(own) if isinstance(own, str) and own in order else -1
