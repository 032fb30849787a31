"""Tasks whose answers are vectors of bits, judged bit by bit."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.errors import InputError
from attractor.measures import ACCURACY, Measure
from attractor.tasks.answers import priced
from attractor.tasks.associative_recall import bits_of, different_items, recall_sequences
from attractor.tasks.base import Split
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.generated import Generated


class BitTask(Generated):
    r"""A task that asks for bits: mean binary cross entropy over all bits asked for.

    .. math::
        -y \ln \sigma(s) - (1 - y) \ln(1 - \sigma(s))

    where the model says s. A model without memory can do no better than :math:`\ln 2` per bit.
    """

    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": Measure("min", "nats per bit", log=True),
        "accuracy": ACCURACY,
    }
    baseline = math.log(2)
    answers = "each step"

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        said, penalty = priced(model, batch)
        each, asked = _entropies(said, batch.y)
        if batch.weight is None:
            loss = each.sum() / asked.sum()
        else:
            loss = (each.sum((1, 2)) / asked.sum((1, 2)).clamp(min=1)) @ batch.weight.to(each)
        return loss if penalty is None else loss + penalty

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        said = priced(model, batch)[0]
        each, asked = _entropies(said, batch.y)
        count = int(asked.sum())
        right = asked & ((said > 0) == (batch.y > 0))
        return {"loss": (each.sum().item(), count), "accuracy": (float(right.sum()), count)}


def _entropies(said: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The cross entropy of every bit, zero where none is asked for, and which ones are."""
    if said.shape != y.shape:
        raise InputError(
            f"expected an answer for each bit, of the shape {tuple(y.shape)}, but the model gives "
            f"{tuple(said.shape)}. Try a model of output_size={y.shape[-1]} that answers at each "
            "step."
        )
    asked = y != IGNORE
    each = F.binary_cross_entropy_with_logits(said, y.clamp(min=0).to(said), reduction="none")
    return each * asked, asked


def copy_bits(vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Input and answers of the copy task, for given vectors and how many each sequence shows.

    Shape:
        vectors ``(batch, most, bits)``, lengths ``(batch,)``; x ``(batch, 2 * most + 1,
        bits + 1)`` and y ``(batch, 2 * most + 1, bits)``.

    Example:
        >>> x, y = copy_bits(torch.tensor([[[1, 0], [1, 1]]]), torch.tensor([1]))
        >>> x[0].int().tolist()
        [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
        >>> y[0].tolist()
        [[-100, -100], [-100, -100], [1, 0], [-100, -100], [-100, -100]]
    """
    batch_size, most, bits = vectors.shape
    shown = torch.arange(most) < lengths[:, None]
    x = torch.zeros(batch_size, 2 * most + 1, bits + 1)
    x[:, :most, :bits] = vectors * shown[..., None]
    row = torch.arange(batch_size)
    x[row, lengths, bits] = 1
    y = torch.full((batch_size, 2 * most + 1, bits), IGNORE)
    steps = lengths[:, None] + 1 + torch.arange(most)
    rows, places = torch.nonzero(shown, as_tuple=True)
    y[rows, steps[rows, places]] = vectors[rows, places]
    return x, y


class BitCopy(BitTask):
    r"""Copy a sequence of random bit vectors, bit by bit.

    The vectors come one a step, then a delimiter on a channel of its own, then as many empty
    steps, at which the vectors are asked for in their order. Each training sequence has a length
    of its own, drawn evenly; validation is on the longest of training, the test on `beyond`.

    Args:
        most: vectors of the longest training sequence.
        least: of the shortest.
        bits: of a vector.
        beyond: vectors of a test sequence; ``None`` means `most`. Longer ones show whether what
            was learnt goes beyond the lengths of training.

    Shape:
        x ``(batch, 2 * most + 1, bits + 1)``; y ``(batch, 2 * most + 1, bits)`` of 0, 1 and
        `IGNORE` where nothing is asked.

    Example:
        >>> task = BitCopy(most=3)
        >>> batch = task.draw(4, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, batch.y.shape
        (torch.Size([4, 7, 9]), torch.Size([4, 7, 8]))
        >>> round(task.baseline, 3)
        0.693

    Departs from the paper: nothing.

    References:
        Graves et al. (2014), Neural Turing machines, arXiv:1410.5401, section 4.1; Chandar
        (2020), sections 3.7.3 and 5.3.1.
    """

    reference = "graves2014neural"

    def __init__(
        self, most: int = 20, *, least: int = 1, bits: int = 8, beyond: int | None = None
    ) -> None:
        self.most, self.least = whole("most", most, 1), whole("least", least, 1)
        self.bits = whole("bits", bits, 1)
        self.beyond = self.most if beyond is None else whole("beyond", beyond, 1)
        _check_least(least, most)
        self.input_size, self.output_size = self.bits + 1, self.bits

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        return self._batch(self.most, self.least, batch_size, generator)

    def kept(self, split: Split, count: int, *, generator: Generator) -> Batch:
        length = self.most if split == "valid" else self.beyond
        return self._batch(length, length, count, generator)

    def _batch(self, most: int, least: int, count: int, generator: Generator) -> Batch:
        vectors = torch.randint(2, (most, self.bits, count), generator=generator).movedim(-1, 0)
        lengths = torch.randint(least, most + 1, (count,), generator=generator)
        return Batch(*copy_bits(vectors, lengths))


class BitRecall(BitTask):
    r"""Associative recall, bit by bit: shown an item of a list again, say the one after it.

    An item is a few random bit vectors between delimiters. After the list one item but the last
    is shown again, between delimiters of another kind, and the next item is asked for, a vector at
    each of the steps that remain. Each training sequence has a number of items of its own, drawn
    evenly; validation is on the longest of training, the test on `beyond`.

    Args:
        most: items of the longest training sequence.
        least: of the shortest.
        length: vectors of an item.
        bits: of a vector.
        beyond: items of a test sequence; ``None`` means `most`.

    Shape:
        x ``(batch, (most + 2) * (length + 1), bits + 2)``: the bits, then the two delimiters; y
        ``(batch, (most + 2) * (length + 1), bits)`` of 0, 1 and `IGNORE`.

    Example:
        >>> task = BitRecall()
        >>> batch = task.draw(4, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, int((batch.y != IGNORE).sum())  # 4 x 3 x 8
        (torch.Size([4, 32, 10]), 96)

    Departs from the paper: items never repeat within a sequence, which would leave the answer
    open. Vectors have 8 bits, as in the thesis, where Graves et al. have 6.

    References:
        Graves et al. (2014), Neural Turing machines, arXiv:1410.5401, section 4.3; Chandar
        (2020), sections 3.7.3 and 5.3.2.
    """

    reference = "graves2014neural"

    def __init__(
        self,
        most: int = 6,
        *,
        least: int = 2,
        length: int = 3,
        bits: int = 8,
        beyond: int | None = None,
    ) -> None:
        self.most, self.least = whole("most", most, 2), whole("least", least, 2)
        self.length, self.bits = whole("length", length, 1), whole("bits", bits, 1)
        self.beyond = self.most if beyond is None else whole("beyond", beyond, 2)
        _check_least(least, most)
        if 2 ** (self.bits * self.length) < 2 * max(self.most, self.beyond):
            raise InputError(
                f"expected bits and length to allow {max(self.most, self.beyond)} different items "
                f"with room to spare, but {length} vectors of {bits} bits have "
                f"{2 ** (bits * length)} values. Try bits={bits + 2}."
            )
        self.input_size, self.output_size = bits + 2, bits

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        return self._batch(self.most, self.least, batch_size, generator)

    def kept(self, split: Split, count: int, *, generator: Generator) -> Batch:
        items = self.most if split == "valid" else self.beyond
        return self._batch(items, items, count, generator)

    def _batch(self, most: int, least: int, count: int, generator: Generator) -> Batch:
        items = different_items(most, self.length, self.bits, count, generator)
        counts = torch.randint(least, most + 1, (count,), generator=generator)
        queries = (torch.rand(count, generator=generator) * (counts - 1)).long()
        x, numbers = recall_sequences(items.movedim(-1, 0), counts, queries, self.bits)
        asked = (numbers != IGNORE).unsqueeze(-1)
        y = bits_of(numbers.clamp(min=0), self.bits).masked_fill(~asked, IGNORE)
        return Batch(x, y)


def _check_least(least: int, most: int) -> None:
    if least > most:
        raise InputError(
            f"expected least, the shortest, to be at most most={most}, but got {least}. "
            f"Try least={most}."
        )
