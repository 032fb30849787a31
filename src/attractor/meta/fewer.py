"""Learners that see some of a task's training samples: data sets of any size from one."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks import Batch, Judged, Task
from attractor.tasks.base import Sampler
from attractor.tasks.samplers import Shuffled
from attractor.tasks.stored import StoredTask


class Fewer(Sampler):
    """Shuffled batches of some training samples of a task, chosen at random.

    Args:
        task: whose samples are stored.
        count: how many are chosen; all, if it has fewer.
        batch_size: samples in a batch; they come again where there are fewer.
        generator: chooses them, and draws the order of each epoch.

    Example:
        >>> from attractor.tasks import Digits
        >>> sampler = Fewer(Digits(), 5, 3, generator=torch.Generator().manual_seed(0))
        >>> x = torch.cat([sampler.draw().x for _ in range(20)])
        >>> len(x), len(x.unique(dim=0))
        (60, 5)
    """

    def __init__(self, task: Task, count: int, batch_size: int, *, generator: Generator) -> None:
        stored = task.task if isinstance(task, Judged) else task
        if not isinstance(stored, StoredTask):
            raise InputError(
                f"expected a task whose training samples are stored to take {count} of them, but "
                f"{type(stored).__name__} makes them up. Leave samples out."
            )
        whole("samples", count, 1)
        self.task, self.batch_size, self.generator = stored, batch_size, generator
        self._take(torch.randperm(len(stored), generator=generator)[:count])

    def draw(self) -> Batch:
        """The next batch."""
        return self.batches.draw()

    def state_dict(self) -> dict[str, Tensor]:
        """Which samples were chosen, and all that decides their batches."""
        return {**self.batches.state_dict(), "chosen": self.chosen.clone()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on with the samples of another one."""
        self._take(state["chosen"].clone())
        self.batches.load_state_dict({k: v for k, v in state.items() if k != "chosen"})

    def _take(self, chosen: Tensor) -> None:
        self.chosen = chosen
        some = _Some(self.task, chosen)
        self.batches = Shuffled(some, self.batch_size, generator=self.generator)


@dataclass(frozen=True)
class _Some:
    """Chosen samples of a task under numbers from 0."""

    task: StoredTask
    chosen: Tensor

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def block(self) -> int:
        return self.task.block

    def __len__(self) -> int:
        return len(self.chosen)

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        return self.task.samples(self.chosen[index], generator)
