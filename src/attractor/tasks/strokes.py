"""Several handwritten digits, pen stroke by pen stroke, to be named at the end."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.checks import one_of, whole
from attractor.errors import InputError
from attractor.measures import ACCURACY, LOSS, Measure
from attractor.tasks.answers import unpriced
from attractor.tasks.base import Split
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.data.strokes import Strokes, load_strokes
from attractor.tasks.stored import StoredTask

VALIDATION = 10_000
"""Digits of the training half, the last, that validation sequences are made of."""

SEEDS = {"train": 0x747261696E, "valid": 0x76616C6964, "test": 0x74657374}
"""Draw the digits of the sequences of each split: the letters of its name."""


class StrokeDigits(StoredTask):
    """Multi-digit stroke MNIST: read the pen movements of some digits, then name them in order.

    The sequences of each split are drawn once, with a fixed seed: each digit evenly from the
    digits of its split. After the strokes the model names the digits, one at a step, and is fed
    what it named before: in training the right digit, in evaluation its own (see `StrokeReader`).

    Args:
        digits: of a sequence; the thesis has 5, 10 and 15.
        train: training sequences.
        held: validation sequences, and as many for test.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, time, 4)``: dx, dy, end of stroke, end of digit, each digit from (0, 0); lengths
        ``(batch,)``, 40 steps a digit on average; y ``(batch, digits)``.

    Example:
        >>> task = StrokeDigits(5)  # doctest: +SKIP
        >>> task.batches(8, generator=torch.Generator()).draw().y.shape  # doctest: +SKIP
        torch.Size([8, 5])

    Departs from the paper: which of the training digits are for validation is not said there; here
    they are the last 10,000.

    References:
        Gulcehre et al. (2017), Memory augmented neural networks with wormhole connections,
        arXiv:1701.08718, section 6.2; Chandar (2020), section 3.7.2.
    """

    reference = "gulcehre2017memory"
    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": LOSS,
        "accuracy": ACCURACY,
        "error": Measure("min", "share"),
    }
    classes = tuple(range(10))
    input_size = 4
    output_size = 10
    answers = "once"
    place = 0

    def __init__(
        self,
        digits: int = 5,
        *,
        train: int = 200_000,
        held: int = 20_000,
        root: str | Path | None = None,
    ) -> None:
        self.digits = whole("digits", digits, 1)
        self.name = f"{digits} digits"
        seen = load_strokes("train", root)
        first = len(seen.labels) - VALIDATION
        if first < 1:
            raise InputError(
                f"expected more than {VALIDATION} training digits, the last of which are for "
                f"validation, but there are {len(seen.labels)}. Get the whole file."
            )
        self.strokes = {"train": seen, "valid": seen, "test": load_strokes("test", root)}
        sizes = {"train": train, "valid": held, "test": held}
        ranges = {
            "train": (0, first),
            "valid": (first, len(seen.labels)),
            "test": (0, len(self.strokes["test"].labels)),
        }
        self.parts = {
            split: torch.randint(
                *ranges[split],
                (whole("train" if split == "train" else "held", size, 1), digits),
                generator=torch.Generator().manual_seed(SEEDS[split] + digits),
            )
            for split, size in sizes.items()
        }

    def __len__(self) -> int:
        return len(self.parts["train"])

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        return self._batch("train", self.parts["train"][index])

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """Fresh sequences of training digits, decided by the generator alone."""
        first = len(self.strokes["train"].labels) - VALIDATION
        return self._batch(
            "train", torch.randint(first, (batch_size, self.digits), generator=generator)
        )

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        one_of("split", split, ("valid", "test"))
        whole("size", size, 1)
        rows = self.parts[split]
        return (self._batch(split, rows[n : n + size]) for n in range(0, len(rows), size))

    def first(self, split: Split, count: int) -> Batch:
        return self._batch(split, self.parts[split][:count])

    def at(self, place: int) -> Self:
        assert place == 0, "the sequences have no place in a stream"
        return self

    def feed(self, digest: Any) -> None:
        digest.update(f"{self.name} {len(self)}".encode())
        digest.update(self.parts["train"][:8].numpy().tobytes())

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean cross entropy of each digit, given the right ones before it.

        Sequences of fewer digits than others are filled up with `IGNORE`, which does not count.
        """
        y = batch.y[:, : int((batch.y != IGNORE).any(0).sum())]
        said, penalty = unpriced(model(batch.inputs, y.clamp(min=0)), lambda: y)
        each = F.cross_entropy(
            said.flatten(0, 1), y.flatten(), ignore_index=IGNORE, reduction="none"
        ).view_as(y)
        each = each.sum(1) / (y != IGNORE).sum(1).clamp(min=1)
        loss: Tensor = each.mean() if batch.weight is None else each @ batch.weight.to(each)
        return loss if penalty is None else loss + penalty

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        """The loss given the right digits, and how many are right given the model's own."""
        count = batch.y.numel()
        right = float((model(batch.inputs, self.digits).argmax(-1) == batch.y).sum())
        return {
            "loss": (self.loss(model, batch).item() * count, count),
            "accuracy": (right, count),
            "error": (count - right, count),
        }

    def _batch(self, split: str, numbers: Tensor) -> Batch:
        """The digits of these numbers, row by row, one after the other in time."""
        strokes, rows = self.strokes[split], numbers.numpy()
        lengths = strokes.lengths[rows].sum(1)
        x = np.zeros((len(rows), int(lengths.max()), 4), np.float32)
        for row, chosen in zip(x, rows, strict=True):
            pieces = np.concatenate([_points(strokes, one) for one in chosen])
            row[: len(pieces)] = pieces
        y = torch.from_numpy(strokes.labels[rows])
        return Batch(torch.from_numpy(x), y, torch.from_numpy(lengths))


def _points(strokes: Strokes, number: int) -> Any:
    start = strokes.starts[number]
    return strokes.points[start : start + strokes.lengths[number]]
