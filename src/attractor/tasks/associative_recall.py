"""The associative recall task: shown one item of a list, say the one that came after it."""

import math

import torch
from torch import Generator, Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.generated import Generated


def bits_of(numbers: Tensor, bits: int) -> Tensor:
    """The binary digits of whole numbers, the lowest first, in a new last dimension.

    Example:
        >>> bits_of(torch.tensor([1, 6]), 3)
        tensor([[1, 0, 0],
                [0, 1, 1]])
    """
    return numbers.unsqueeze(-1).bitwise_right_shift(torch.arange(bits)).bitwise_and(1)


def recall_sequences(
    items: Tensor, counts: Tensor, queries: Tensor, bits: int
) -> tuple[Tensor, Tensor]:
    """Input and answers of the task, for given items and the one that is asked about.

    Args:
        items: the vectors of every item as whole numbers, whose binary digits are the features.
        counts: how many of the items each sequence shows.
        queries: the item that each sequence asks about, below ``counts - 1``.
        bits: features of a vector.

    Shape:
        items ``(batch, n, length)``, counts and queries ``(batch,)``; x
        ``(batch, time, bits + 2)`` and y ``(batch, time)``, where time is
        ``n * (length + 1) + 2 * (length + 1)``.

    Example:
        >>> items = torch.tensor([1, 2, 3]).reshape(1, 3, 1)
        >>> x, y = recall_sequences(items, torch.tensor([3]), torch.tensor([1]), bits=2)
        >>> x[0].int().T
        tensor([[0, 1, 0, 0, 0, 1, 0, 0, 0, 0],
                [0, 0, 0, 1, 0, 1, 0, 1, 0, 0],
                [1, 0, 1, 0, 1, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 1, 0, 1, 0]], dtype=torch.int32)
        >>> y
        tensor([[-100, -100, -100, -100, -100, -100, -100, -100, -100,    3]])
    """
    batch_size, most, length = items.shape
    row = torch.arange(batch_size)
    steps = (most + 2) * (length + 1)
    vectors = bits_of(items, bits).float()
    x = torch.zeros(batch_size, steps, bits + 2)
    y = torch.full((batch_size, steps), IGNORE)
    for n in range(most):
        start = n * (length + 1)
        shown = n < counts
        x[:, start, bits] = shown.float()
        x[:, start + 1 : start + 1 + length, :bits] = vectors[:, n] * shown[:, None, None]
    ask = counts * (length + 1)
    for delimiter in (ask, ask + length + 1):
        x[row, delimiter, bits + 1] = 1
    for step in range(length):
        x[row, ask + 1 + step, :bits] = vectors[row, queries, step]
        y[row, ask + length + 2 + step] = items[row, queries + 1, step]
    return x, y


class AssociativeRecall(Generated):
    r"""Associative recall: shown one item of a list again, say the item that followed it.

    An item is a few random vectors of bits; the items of a sequence differ. Each is announced by
    a delimiter. After the last, one item but the last is shown again, between two delimiters of
    another kind; the answer is the next item in the list, one vector at each of the steps that
    remain. An answer is the number whose binary digits are the vector's bits. Only the answers
    count in the loss, so a model without memory can do no better than

    .. math::
        b \ln 2

    per vector of b bits, which is 4.159 for 6 bits.

    Args:
        items: items in a sequence; the most, if variable.
        least: the fewest, if fewer: each sequence then has a number of items of its own, drawn
            uniformly; shorter ones are padded with zeros at their end, where nothing is asked.
        length: vectors in an item.
        bits: features of a vector.

    Shape:
        x ``(batch, (items + 2) * (length + 1), bits + 2)``: the bits, then the two delimiters;
        y ``(batch, (items + 2) * (length + 1))``, from 0 to ``2**bits - 1``.

    Example:
        >>> task = AssociativeRecall()
        >>> batch = task.draw(4, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, int((batch.y != IGNORE).sum()), task.output_size
        (torch.Size([4, 32, 8]), 12, 64)
        >>> round(task.baseline, 3)
        4.159

    Departs from the paper: an answer is one of 2^b classes, under cross entropy, where the paper
    predicts each bit; the bound on the loss is the same when the b bits of a vector are summed.
    Items never repeat within a sequence, which would leave the answer open.

    References:
        Graves et al. (2014), Neural Turing machines, arXiv:1410.5401, section 4.3; Chandar
        (2020), section 3.7.3.
    """

    reference = "graves2014neural"

    def __init__(
        self, items: int = 6, *, least: int | None = 2, length: int = 3, bits: int = 6
    ) -> None:
        self.items = whole("items", items, 2)
        self.least = self.items if least is None else whole("least", least, 2)
        self.length = whole("length", length, 1)
        self.bits = whole("bits", bits, 1)
        if self.least > items:
            raise InputError(
                f"expected least, the fewest items, to be at most items={items}, but got {least}. "
                f"Try least=None for always {items}."
            )
        if bits > 16:
            raise InputError(
                f"expected at most 16 bits, since every vector is a class of its own, but got "
                f"{bits}. Try a greater length instead."
            )
        if 2 ** (self.bits * self.length) < items:
            raise InputError(
                f"expected bits and length to allow {items} different items, but {length} vectors "
                f"of {bits} bits have {2 ** (bits * length)} values. Try bits={bits + 2}."
            )
        self.input_size = bits + 2
        self.output_size = 2**bits
        self.answers = "each step"

    @property
    def baseline(self) -> float:
        """The loss of a model without memory."""
        return self.bits * math.log(2)

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        items = different_items(self.items, self.length, self.bits, batch_size, generator)
        counts = torch.randint(self.least, self.items + 1, (batch_size,), generator=generator)
        position = torch.rand(batch_size, generator=generator)
        queries = (position * (counts - 1)).long()
        return Batch(*recall_sequences(items.movedim(-1, 0), counts, queries, self.bits))


def different_items(
    items: int, length: int, bits: int, batch_size: int, generator: Generator
) -> Tensor:
    """Random items ``(items, length, batch)`` as numbers, no two alike in one sequence."""
    shape = (items, length, batch_size)
    found = torch.randint(2**bits, shape, generator=generator)
    while (again := _repeats(found)).any():
        fresh = torch.randint(2**bits, shape, generator=generator)
        found = torch.where(again, fresh, found)
    return found


def _repeats(items: Tensor) -> Tensor:
    """Which sequences ``(batch,)`` show an item ``(n, length, batch)`` twice."""
    same = (items.unsqueeze(0) == items.unsqueeze(1)).all(2)
    return same.sum((0, 1)) > len(items)
