"""What the numbers that runs come to are."""

from typing import Literal, NamedTuple


class Measure(NamedTuple):
    """What a number is, declared where it is measured: nothing is guessed from its name.

    Args:
        goal: whether more is better, or less, or neither.
        unit: in a word; empty for a bare number.
        log: whether it is best drawn on a logarithmic axis.
    """

    goal: Literal["max", "min", "none"]
    unit: str = ""
    log: bool = False


LOSS = Measure("min", "nats", log=True)
ACCURACY = Measure("max", "share")
