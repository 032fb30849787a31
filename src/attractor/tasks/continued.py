"""A long sequence in pieces, each going on where the one before ended."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.base import Sampler
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.samplers import expect_keys


class Continued(Sampler):
    """A text read in parallel streams, piece by piece: truncated backpropagation through time.

    The text is a ring that each epoch enters at a place of its own, so that pieces are cut
    elsewhere each time. It is laid out in as many streams as a batch has rows; fewer tokens than
    there are streams are left over, and differ from epoch to epoch. All batches but the first of
    an epoch go on where the one before ended.

    Args:
        text: the numbers of its tokens ``(tokens,)``.
        batch_size: streams.
        steps: tokens of a piece; the last of an epoch may be shorter.
        generator: draws where each epoch begins.

    Example:
        >>> sampler = Continued(torch.arange(9), 2, 3, generator=torch.Generator().manual_seed(4))
        >>> for _ in range(3):
        ...     batch = sampler.draw()
        ...     print(batch.x.tolist(), batch.y.tolist(), batch.continues)
        [[4, 5, 6], [8, 0, 1]] [[5, 6, 7], [0, 1, 2]] False
        [[7], [2]] [[8], [3]] True
        [[3, 4, 5], [7, 8, 0]] [[4, 5, 6], [8, 0, 1]] False

    Departs from the paper: no paper.
    """

    def __init__(self, text: Tensor, batch_size: int, steps: int, *, generator: Generator) -> None:
        self.text, self.generator = text, generator
        self.batch_size = whole("batch_size", batch_size, 1)
        self.steps = whole("steps", steps, 1)
        self.length = len(text) // batch_size
        if self.length < 1:
            raise InputError(
                f"expected a text of at least the {batch_size} tokens that a batch has rows, but "
                f"it has {len(text)}. Try a smaller batch_size."
            )
        self._enter()

    def _enter(self) -> None:
        self._begin(int(torch.randint(len(self.text), (), generator=self.generator)))

    def _begin(self, offset: int) -> None:
        self.offset, self.position = offset, 0
        ring = self.text.roll(-offset)
        used = self.batch_size * self.length
        self._x = ring[:used].view(self.batch_size, self.length)
        self._y = ring.roll(-1)[:used].view(self.batch_size, self.length)

    def draw(self) -> Batch:
        if self.position == self.length:
            self._enter()
        start, end = self.position, min(self.position + self.steps, self.length)
        self.position = end
        return Batch(self._x[:, start:end], self._y[:, start:end], continues=start > 0)

    def state_dict(self) -> dict[str, Tensor]:
        place = torch.tensor([self.offset, self.position])
        return {"generator": self.generator.get_state(), "place": place}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"generator", "place"})
        offset, position = state["place"].tolist()
        if not (0 <= offset < len(self.text) and 0 <= position <= self.length):
            raise InputError(
                f"expected a place in {len(self.text)} tokens in {self.batch_size} streams, but "
                f"the state holds {offset} and {position}. Resume with the text and the batch "
                "size that were saved."
            )
        self.generator.set_state(state["generator"])
        self._begin(offset)
        self.position = position


def in_order(text: Tensor, streams: int, steps: int, size: int) -> Iterator[Batch]:
    """Every token of a text but the first, asked for once, in pieces that go on from each other.

    The streams, and so what a model knows at each token, are the same whatever `size` is.

    Args:
        text: the numbers of its tokens ``(tokens,)``.
        streams: equal parts of the text that are read from a fresh state.
        steps: tokens of a piece.
        size: streams that are read at a time, from their start to their end.

    Example:
        >>> for batch in in_order(torch.arange(6), 2, 2, 2):
        ...     print(batch.x.tolist(), batch.y.tolist(), batch.continues)
        [[0, 1], [3, 4]] [[1, 2], [4, 5]] False
        [[2], [0]] [[3], [-100]] True
    """
    whole("size", size, 1)
    asked = len(text) - 1
    streams = min(streams, asked)
    length = -(-asked // streams)
    missing = streams * length - asked
    x = F.pad(text[:-1], (0, missing)).view(streams, length)
    y = F.pad(text[1:], (0, missing), value=IGNORE).view(streams, length)
    for first in range(0, streams, size):
        rows = slice(first, first + size)
        for start in range(0, length, steps):
            some = slice(start, start + steps)
            if (y[rows, some] != IGNORE).any():
                yield Batch(x[rows, some], y[rows, some], continues=start > 0)
