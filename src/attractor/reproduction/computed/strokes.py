"""How long sequences of pen strokes are."""

from collections.abc import Iterator
from pathlib import Path

from attractor.reproduction.computed.found import Found
from attractor.tasks import StrokeDigits
from attractor.tasks.data.strokes import load_strokes


def lengths(data: Path | None) -> Iterator[Found]:
    """Mean lengths of digits, and of 20,000 sequences of several (001, section 3.7.2)."""
    row = "stroke MNIST"
    yield Found(row, "mean strokes of a digit", float(load_strokes("train", data).lengths.mean()))
    for digits in (5, 10, 15):
        task = StrokeDigits(digits, train=20_000, held=1, root=data)
        drawn = task.strokes["train"].lengths[task.parts["train"].numpy()].sum(1)
        yield Found(row, f"mean length of a sequence, {digits} digits", float(drawn.mean()))
