"""The samplers: batches made up as they are drawn, batches of stored samples, one batch."""

from typing import Protocol

import torch
from torch import Generator, Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.base import Sampler
from attractor.tasks.batch import Batch

BLOCK = 64
"""Batches of data in memory that are picked, read and made noisy at once."""


class Draws(Protocol):
    """Whatever makes up batches from a generator."""

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch."""
        ...


class Numbered(Protocol):
    """Whatever has samples under numbers from 0."""

    @property
    def name(self) -> str:
        """In words."""
        ...

    @property
    def block(self) -> int:
        """Batches that are read at once."""
        ...

    def __len__(self) -> int: ...

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        """The samples of these numbers; the generator draws the noise, if there is any."""
        ...


class Drawn(Sampler):
    """Batches that a task makes up from the generator; no two are meant to be the same.

    Args:
        task: what draws the batches.
        batch_size: sequences in a batch.
        generator: the only source of randomness; its state is the state of the sampler.

    Example:
        >>> from attractor.tasks import CopyMemory
        >>> sampler = Drawn(CopyMemory(lag=5), 4, torch.Generator().manual_seed(0))
        >>> sampler.draw().x.shape
        torch.Size([4, 25, 10])

    Departs from the paper: no paper.
    """

    def __init__(self, task: Draws, batch_size: int, generator: Generator) -> None:
        self.task = task
        self.batch_size = whole("batch_size", batch_size, 1)
        self.generator = generator

    def draw(self) -> Batch:
        return self.task.draw(self.batch_size, generator=self.generator)

    def state_dict(self) -> dict[str, Tensor]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"generator"})
        self.generator.set_state(state["generator"])


class Shuffled(Sampler):
    """Endless batches of stored samples, in shuffled epochs without replacement.

    Every batch is full: what is left at the end of an epoch goes into a batch that the next epoch
    completes. Samples are read as many batches at a time as the source says, so that a batch of
    what is in memory is a slice, and no more is read of what is not than a batch needs.

    Args:
        source: what has the samples.
        batch_size: samples in a batch.
        generator: draws the order of each epoch, and the noise.
        device: where the batches go; ``None`` leaves them where the data are.

    Example:
        >>> from attractor.tasks import ArrayTask, Data
        >>> data = Data(torch.arange(6.0)[:, None], torch.arange(6))
        >>> task = ArrayTask("six", 0, data, data, tuple(range(6)))
        >>> batches = Shuffled(task, 4, generator=torch.Generator().manual_seed(0))
        >>> torch.cat([batches.draw().y for _ in range(3)]).bincount()  # two epochs
        tensor([2, 2, 2, 2, 2, 2])

    Departs from the paper: no paper.
    """

    def __init__(
        self,
        source: Numbered,
        batch_size: int,
        *,
        generator: Generator,
        device: torch.device | str | None = None,
    ) -> None:
        self.source = source
        self.batch_size = whole("batch_size", batch_size, 1)
        self.generator = generator
        self.device = device
        self._order = torch.empty(0, dtype=torch.long)
        self._fill()

    def draw(self) -> Batch:
        if self._position == len(self._block):
            self._fill()
        start = self._position
        self._position += self.batch_size
        return self._block[start : self._position]

    def _fill(self) -> None:
        """Pick the next block: the rest of the epoch, completed by the next ones."""
        self._before = {"order": self._order, "generator": self.generator.get_state()}
        rows = len(self.source)
        wanted = self.batch_size * min(self.source.block, -(-rows // self.batch_size))
        while len(self._order) < wanted:
            epoch = torch.randperm(rows, generator=self.generator)
            self._order = torch.cat([self._order, epoch])
        picked, self._order = self._order[:wanted], self._order[wanted:]
        block = self.source.samples(picked, self.generator)
        self._block = block if self.device is None else block.to(self.device)
        self._position = 0

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "order": self._before["order"].clone(),
            "generator": self._before["generator"],
            "position": torch.tensor(self._position),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"order", "generator", "position"})
        order, position = state["order"], int(state["position"])
        rows = len(self.source)
        if len(order) and not 0 <= int(order.min()) <= int(order.max()) < rows:
            raise InputError(
                f"expected an order of the {rows} samples of {self.source.name!r}, but the "
                f"state names sample {int(order.max())}. Resume with the data that were saved."
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


class Repeated(Sampler):
    """The same batch again and again.

    Args:
        batch: which.

    Example:
        >>> sampler = Repeated(Batch(torch.eye(2), torch.zeros(2)))
        >>> sampler.draw() is sampler.draw()
        True

    Departs from the paper: no paper.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def draw(self) -> Batch:
        return self.batch

    def state_dict(self) -> dict[str, Tensor]:
        return {"x": self.batch.x, "y": self.batch.y}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"x", "y"})
        self.batch = Batch(state["x"], state["y"])


def expect_keys(state: dict[str, Tensor], expected: set[str]) -> None:
    """Refuse the state of another kind of sampler."""
    if set(state) != expected:
        raise InputError(
            f"expected a sampler state with {', '.join(sorted(expected))}, but got "
            f"{', '.join(sorted(state)) or 'nothing'}. "
            "Resume with the task and options of the run that saved it."
        )
