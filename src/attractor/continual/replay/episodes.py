"""The samples that a learner keeps of the tasks behind it: one memory for all strategies."""

from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor

from attractor.checks import one_of, whole
from attractor.continual.replay import Columns, Reservoir, Slots, hard_storage, ring_buffer
from attractor.continual.replay.slots import shares
from attractor.errors import InputError
from attractor.tasks import Batch
from attractor.tasks.streams import Stream

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
        stream: where the samples come from; if it says so, they are kept as they are stored (bytes
            stay bytes), and read and made noisy anew whenever they are replayed.

    Example:
        >>> episodes = Episodes("hard", 3, 2, generator=torch.Generator().manual_seed(0))
        >>> x, y = torch.arange(8.0).reshape(4, 2), torch.tensor([0, 1, 0, 1])
        >>> episodes.add(Batch(x, y, task=torch.zeros(4, dtype=torch.long)))
        >>> len(episodes.all_of([0])), len(episodes.draw(2, [0]))
        (3, 2)
    """

    def __init__(
        self,
        kind: MemoryKind,
        size: int,
        tasks: int,
        *,
        generator: Generator,
        stream: Stream | None = None,
    ) -> None:
        one_of("memory", kind, get_args(MemoryKind))
        self.kind, self.size = kind, whole("size", size, 1)
        self.generator = generator
        self._stream = stream if stream is not None and stream.keeps_raw else None
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

    def extend(self, stream: Stream) -> None:
        """Make room for the tasks that a stream has more; a ring shares its places anew."""
        self._stream = stream if stream.keeps_raw else None
        if isinstance(self.memory, Slots):
            tasks = len(stream)
            per_task = self.size if self.kind == "hard" else ring_buffer(self.size, tasks).per_group
            self.memory = self.memory.resized(per_task, tasks)

    def add(self, batch: Batch, *extra: Tensor) -> None:
        """Remember samples, each as one of its own task, and what else is known of each."""
        columns = (*rows(batch, raw=self._stream is not None), *extra)
        if isinstance(self.memory, Slots):
            first, last = (int(end) for end in torch.aminmax(batch.places))
            self.memory.add(columns, first if first == last else batch.places)
        else:
            self.memory.add(columns, batch.y if batch.y.ndim == 1 else batch.places)

    def before(self, task: int) -> list[int]:
        """The earlier tasks of which something is kept."""
        assert isinstance(self.memory, Slots)
        return [one for one, size in enumerate(self.memory.sizes(range(task))) if size]

    def draw(
        self, count: int | list[int], tasks: list[int], generator: Generator | None = None
    ) -> Batch:
        """Samples of each task, task by task; one number for all tasks, or one for each."""
        assert isinstance(self.memory, Slots)
        generator = generator or self.generator
        return self._seen(self.memory.draw(count, tasks, generator=generator), generator)

    def drawn(self, count: int | list[int], tasks: list[int]) -> list[int]:
        """How many samples `draw` gives of each task."""
        assert isinstance(self.memory, Slots)
        return self.memory.drawn(count, tasks)

    def shared(self, total: int, task: int, generator: Generator | None = None) -> list[int]:
        """How many to draw of each earlier task, so that there are about so many in all."""
        return shares(total, len(self.before(task)), generator=generator or self.generator)

    def draw_any(self, count: int, tasks: list[int], generator: Generator | None = None) -> Batch:
        """Samples of all these tasks together; of a reservoir, of all that it holds."""
        generator = generator or self.generator
        return self._seen(self._any(count, tasks, generator), generator)

    @property
    def tasks(self) -> list[int]:
        """All tasks that have places of their own."""
        return list(range(self.memory.groups)) if isinstance(self.memory, Slots) else []

    def __len__(self) -> int:
        """How many samples are kept."""
        return sum(self.sizes(self.tasks)) if isinstance(self.memory, Slots) else len(self.memory)

    def draw_with(self, count: int, generator: Generator, *, extra: int) -> tuple[Batch, Columns]:
        """Samples of all that is kept, and what else was kept of each."""
        columns = self._any(count, self.tasks, generator)
        return self._seen(columns[:-extra], generator), columns[-extra:]

    def _any(self, count: int, tasks: list[int], generator: Generator) -> Columns:
        if isinstance(self.memory, Slots):
            return self.memory.draw_any(count, tasks, generator=generator)
        return self.memory.draw(count, generator=generator)

    def _seen(self, columns: Columns, generator: Generator) -> Batch:
        """Samples as a learner reads them, made noisy anew if they are kept as they are stored."""
        batch = samples(columns)
        if self._stream is not None and len(batch):
            batch.x = self._stream.seen(batch.x, batch.places, generator)
        return batch

    def holds(self, tasks: list[int]) -> bool:
        """Whether there is anything to draw."""
        return any(self.sizes(tasks)) if isinstance(self.memory, Slots) else len(self.memory) > 0

    def all_of(self, tasks: list[int]) -> Batch:
        """Everything that is kept of some tasks, task by task."""
        assert isinstance(self.memory, Slots)
        return self._seen(self.memory.rows(tasks), self.generator)

    def everything(self) -> Batch:
        """All that is kept."""
        if isinstance(self.memory, Slots):
            return self.all_of(self.tasks)
        return self._seen(self.memory.rows(), self.generator)

    def sizes(self, tasks: list[int]) -> list[int]:
        """How many samples are kept of each task."""
        assert isinstance(self.memory, Slots)
        return self.memory.sizes(tasks)

    @property
    def nbytes(self) -> int:
        """The memory that is taken."""
        return self.memory.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The samples, and the state of the generator."""
        return {"memory": self.memory.state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over another memory of the same kind and size."""
        self.memory.load_state_dict(state["memory"])
        self.generator.set_state(state["generator"])


def rows(batch: Batch, *, raw: bool = False) -> Columns:
    """Samples as a memory holds them, if asked as they are stored."""
    x: Tensor = batch.raw if raw else batch.x  # type: ignore[assignment]
    columns = (x, batch.y, batch.places)
    return columns if batch.lengths is None else (*columns, batch.lengths)


def samples(columns: Columns) -> Batch:
    """Samples as a learner reads them."""
    x, y, task, *lengths = columns
    return Batch(x, y, lengths[0] if lengths else None, task)
