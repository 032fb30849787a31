"""What tasks have in common whose sequences are made up, not stored."""

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Generator

from attractor.checks import one_of, whole
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.samplers import Drawn

HELD_OUT_SIZE = 1000
"""Sequences in each held-out split."""

HELD_OUT_SEEDS: dict[Split, int] = {"valid": 0x76616C6964, "test": 0x74657374}
"""Seeds of the held-out splits: the letters of their names, far from the seeds people give."""


class Generated(Task):
    """A task that draws its sequences from a generator."""

    @abstractmethod
    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""

    def kept(self, split: Split, count: int, *, generator: Generator) -> Batch:
        """The sequences of a split; like those of training, unless a task says otherwise."""
        return self.draw(count, generator=generator)

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        """Training batches, drawn with the generator."""
        return Drawn(self, size, generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        """The batches of a split: the same `HELD_OUT_SIZE` sequences at any batch size."""
        one_of("split", split, HELD_OUT_SEEDS)
        whole("size", size, 1)
        generator = torch.Generator().manual_seed(HELD_OUT_SEEDS[split])
        every = self.kept(split, HELD_OUT_SIZE, generator=generator)
        return (every[start : start + size] for start in range(0, HELD_OUT_SIZE, size))
