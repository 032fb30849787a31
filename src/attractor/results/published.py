"""Published numbers: data, beside which ours are shown."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Published(NamedTuple):
    """A number as it is printed: where, in which row and column, and what is after its ±."""

    experiment: str
    table: str
    document: str
    column: str
    row: str
    value: float
    spread: float | None


def published(experiment: str) -> list[Published]:
    """The published numbers that an experiment is meant to reproduce.

    Example:
        >>> [n.value for n in published("m2sgd-table-5.1") if n.row == "MetaSGD"]
        [0.8506]
    """
    content = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
    return [
        Published(
            table["experiment"],
            table["table"],
            table["document"],
            table["column"],
            one["row"],
            one["value"],
            one.get("spread"),
        )
        for table in content["number"]
        if table["experiment"] == experiment
        for one in table["values"]
    ]
