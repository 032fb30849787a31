"""The samples that a learner keeps of the tasks behind it."""

from typing import Any, Literal, get_args

import torch
from torch import Generator

from attractor.checks import one_of, whole
from attractor.continual.replay import Columns, Reservoir, Slots, hard_storage, ring_buffer
from attractor.errors import InputError
from attractor.tasks import Batch

MemoryKind = Literal["hard", "ring", "reservoir", "classes"]
"""The first samples of each task, the newest, a fair sample of all, or one of each class."""


OfTasks = Literal["hard", "ring"]
"""The memories that keep tasks apart."""


class Episodes:
    """A memory of samples of each task, from which learners replay.

    Args:
        kind: ``"hard"`` storage of ``size`` samples per task, or a memory of ``size`` samples in
            all: a ``"ring"`` with an equal part for each task, a ``"reservoir"``, or a reservoir
            that is balanced by ``"classes"``.
        size: samples, per task or in all.
        tasks: how many tasks there will be.
        generator: draws what is kept and what is replayed.

    Example:
        >>> episodes = Episodes("hard", 3, 2, generator=torch.Generator().manual_seed(0))
        >>> x, y = torch.arange(8.0).reshape(4, 2), torch.tensor([0, 1, 0, 1])
        >>> episodes.add(Batch(x, y, task=torch.zeros(4, dtype=torch.long)))
        >>> len(episodes.all_of([0])), len(episodes.draw(2, [0]))
        (3, 2)
    """

    def __init__(self, kind: MemoryKind, size: int, tasks: int, *, generator: Generator) -> None:
        one_of("memory", kind, get_args(MemoryKind))
        whole("size", size, 1)
        self.generator = generator
        self.memory: Slots | Reservoir
        if kind == "hard":
            self.memory = hard_storage(size, tasks)
        elif kind == "ring":
            self.memory = ring_buffer(size, tasks)
        else:
            if size < tasks:
                raise InputError(
                    f"expected a memory with room for a sample of each of the {tasks} tasks, but "
                    f"got {size}. Try {10 * tasks}."
                )
            self.memory = Reservoir(size, balanced=kind == "classes", generator=generator)

    def add(self, batch: Batch) -> None:
        """Remember samples, each as one of its own task, as far as the memory does."""
        if isinstance(self.memory, Slots):
            first, last = (int(end) for end in torch.aminmax(batch.places))
            self.memory.add(rows(batch), first if first == last else batch.places)
        else:
            self.memory.add(rows(batch), batch.y if batch.y.ndim == 1 else batch.places)

    def before(self, task: int) -> list[int]:
        """The earlier tasks of which something is kept."""
        assert isinstance(self.memory, Slots)
        return [one for one, size in enumerate(self.memory.sizes(range(task))) if size]

    def draw(self, count: int, tasks: list[int], generator: Generator | None = None) -> Batch:
        """Samples of each task, task by task."""
        assert isinstance(self.memory, Slots)
        return samples(self.memory.draw(count, tasks, generator=generator or self.generator))

    def drawn(self, count: int, tasks: list[int]) -> list[int]:
        """How many samples `draw` gives of each task."""
        assert isinstance(self.memory, Slots)
        return self.memory.drawn(count, tasks)

    def draw_any(self, count: int, tasks: list[int], generator: Generator | None = None) -> Batch:
        """Samples of all these tasks together; of a reservoir, of all that it holds."""
        generator = generator or self.generator
        if isinstance(self.memory, Slots):
            return samples(self.memory.draw_any(count, tasks, generator=generator))
        return samples(self.memory.draw(count, generator=generator))

    def holds(self, tasks: list[int]) -> bool:
        """Whether there is anything to draw."""
        return any(self.sizes(tasks)) if isinstance(self.memory, Slots) else len(self.memory) > 0

    def all_of(self, tasks: list[int]) -> Batch:
        """Everything that is kept of some tasks, task by task."""
        assert isinstance(self.memory, Slots)
        return samples(self.memory.rows(tasks))

    def sizes(self, tasks: list[int]) -> list[int]:
        """How many samples are kept of each task."""
        assert isinstance(self.memory, Slots)
        return self.memory.sizes(tasks)

    def state_dict(self) -> dict[str, Any]:
        """The samples, and the state of the generator."""
        return {"memory": self.memory.state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over another memory of the same kind and size."""
        self.memory.load_state_dict(state["memory"])
        self.generator.set_state(state["generator"])


def rows(batch: Batch) -> Columns:
    """Samples as a memory holds them."""
    columns = (batch.x, batch.y, batch.places)
    return columns if batch.lengths is None else (*columns, batch.lengths)


def samples(columns: Columns) -> Batch:
    """Samples as a learner reads them."""
    x, y, task, *lengths = columns
    return Batch(x, y, lengths[0] if lengths else None, task)
