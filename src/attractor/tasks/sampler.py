"""The two samplers: batches that are made up as they are drawn, and batches of a data set."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks.base import Batch, Sampler
from attractor.tasks.options import whole


class Draws(Protocol):
    """Whatever makes up batches from a generator."""

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch."""
        ...


class Drawn(Sampler):
    """Batches that a task makes up from the generator; no two are meant to be the same.

    Args:
        task: what draws the batches.
        batch_size: sequences in a batch.
        generator: the only source of randomness; its state is the state of the sampler.

    Shape:
        as the task draws them.

    Example:
        >>> from attractor.tasks import CopyMemory
        >>> sampler = Drawn(CopyMemory(lag=5), 4, torch.Generator().manual_seed(0))
        >>> sampler.draw().x.shape
        torch.Size([25, 4, 10])

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


def time_first(x: Tensor) -> Tensor:
    """Samples ``(batch, time, features)`` as sequences ``(time, batch, features)``."""
    return x.transpose(0, 1)


class Shuffled(Sampler):
    """Batches of a data set in memory, each epoch in a new order and without replacement.

    Every batch has the full size: what is left at the end of an epoch is carried over, so the
    batch that crosses the border holds the last samples of one epoch and the first of the next,
    and no sample is ever dropped.

    Args:
        x: the inputs of all samples, sample by sample.
        y: their answers.
        batch_size: samples in a batch.
        generator: draws the order of each epoch.
        read: turns the picked rows of `x` into sequences; by default samples are
            ``(time, features)`` and only change place with the batch.

    Shape:
        x ``(samples, ...)``, y ``(samples,)``; a batch is what `read` returns, as a rule
        ``(time, batch, features)``, and ``(batch,)``.

    Example:
        >>> x, y = torch.arange(6.0).reshape(3, 2, 1), torch.arange(3)
        >>> sampler = Shuffled(x, y, 2, torch.Generator().manual_seed(0))
        >>> batches = [sampler.draw() for _ in range(3)]  # two epochs
        >>> batches[0].x.shape
        torch.Size([2, 2, 1])
        >>> torch.cat([batch.y for batch in batches]).bincount()
        tensor([2, 2, 2])

    Departs from the paper: no paper.
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        batch_size: int,
        generator: Generator,
        read: Callable[[Tensor], Tensor] = time_first,
    ) -> None:
        if len(x) != len(y) or len(x) == 0:
            raise InputError(
                "expected as many inputs as answers, and at least one, but got "
                f"{len(x)} inputs and {len(y)} answers. Check that both come from the same split."
            )
        self.x, self.y = x, y
        self.batch_size = whole("batch_size", batch_size, 1)
        self.generator = generator
        self.read = read
        self.order = torch.randperm(len(y), generator=generator)
        self.position = 0

    def draw(self) -> Batch:
        parts: list[Tensor] = []
        missing = self.batch_size
        while missing:
            if self.position == len(self.order):
                self.order = torch.randperm(len(self.order), generator=self.generator)
                self.position = 0
            part = self.order[self.position : self.position + missing]
            parts.append(part)
            self.position += len(part)
            missing -= len(part)
        index = torch.cat(parts)
        return Batch(self.read(self.x[index]), self.y[index])

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "generator": self.generator.get_state(),
            "order": self.order.clone(),
            "position": torch.tensor(self.position),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"generator", "order", "position"})
        order, position = state["order"], int(state["position"])
        if not torch.equal(order.sort().values, torch.arange(len(self.y))):
            raise InputError(
                f"expected the order of a sampler over {len(self.y)} samples, but the state holds "
                f"{order.numel()} numbers that are not such an order. "
                "Resume with the task and options of the run that saved it."
            )
        if not 0 <= position <= len(order):
            raise InputError(
                f"expected a position between 0 and {len(order)} in the epoch, but the state "
                f"holds {position}. The checkpoint is damaged; go back to an earlier one."
            )
        self.generator.set_state(state["generator"])
        self.order = order.clone()
        self.position = position


def expect_keys(state: dict[str, Tensor], expected: set[str]) -> None:
    """Refuse the state of another kind of sampler."""
    if set(state) != expected:
        raise InputError(
            f"expected a sampler state with {', '.join(sorted(expected))}, but got "
            f"{', '.join(sorted(state)) or 'nothing'}. "
            "Resume with the task and options of the run that saved it."
        )
