"""Training batches of one task: index batches over tensors in memory."""

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks.options import whole
from attractor.tasks.sampler import expect_keys
from attractor.tasks.streams.base import Experience, Samples

BLOCK = 64
"""Batches that are picked from the data, read and made noisy at once."""


class Batches:
    """Endless batches of a task's training samples, in shuffled epochs without replacement.

    Every batch is full: what is left at the end of an epoch goes into a batch that the next epoch
    completes. Rows are picked `BLOCK` batches at a time, so that a batch is a slice.

    Args:
        experience: the task.
        batch_size: samples in a batch.
        generator: draws the order of each epoch, and the noise.
        device: where the batches go; ``None`` leaves them where the data are.

    Example:
        >>> from attractor.tasks.streams import Data
        >>> data = Data(torch.arange(6.0)[:, None], torch.arange(6))
        >>> task = Experience("six", 0, data, data, tuple(range(6)))
        >>> batches = Batches(task, 4, generator=torch.Generator().manual_seed(0))
        >>> torch.cat([batches.draw().y for _ in range(3)]).bincount()  # two epochs
        tensor([2, 2, 2, 2, 2, 2])

    Departs from the paper: no paper.
    """

    def __init__(
        self,
        experience: Experience,
        batch_size: int,
        *,
        generator: Generator,
        device: torch.device | str | None = None,
    ) -> None:
        self.experience = experience
        self.batch_size = whole("batch_size", batch_size, 1)
        self.generator = generator
        self.device = device
        self._order = torch.empty(0, dtype=torch.long)
        self._fill()

    def draw(self) -> Samples:
        """The next batch."""
        if self._position == len(self._block):
            self._fill()
        start = self._position
        self._position += self.batch_size
        return self._block[start : self._position]

    def _fill(self) -> None:
        """Pick the next block: the rest of the epoch, completed by the next ones."""
        self._before = {"order": self._order, "generator": self.generator.get_state()}
        rows = len(self.experience.train.y)
        wanted = self.batch_size * min(BLOCK, -(-rows // self.batch_size))
        while len(self._order) < wanted:
            epoch = torch.randperm(rows, generator=self.generator)
            self._order = torch.cat([self._order, epoch])
        picked, self._order = self._order[:wanted], self._order[wanted:]
        block = self.experience.samples(picked, self.generator)
        self._block = block if self.device is None else block.map(lambda t: t.to(self.device))
        self._position = 0

    def state_dict(self) -> dict[str, Tensor]:
        """All that decides the batches to come."""
        return {
            "order": self._before["order"].clone(),
            "generator": self._before["generator"],
            "position": torch.tensor(self._position),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on where other batches of the same task were, bit by bit."""
        expect_keys(state, {"order", "generator", "position"})
        order, position = state["order"], int(state["position"])
        rows = len(self.experience.train.y)
        if len(order) and not 0 <= int(order.min()) <= int(order.max()) < rows:
            raise InputError(
                f"expected an order of the {rows} samples of {self.experience.name!r}, but the "
                f"state names sample {int(order.max())}. Resume with the stream that was saved."
            )
        self.generator.set_state(state["generator"])
        self._order = order.clone()
        self._fill()
        if position % self.batch_size or not 0 <= position <= len(self._block):
            raise InputError(
                f"expected a position in blocks of {len(self._block)} samples that is a multiple "
                f"of the batch size {self.batch_size}, but the state holds {position}. "
                "Resume with the batch size that was saved."
            )
        self._position = position
