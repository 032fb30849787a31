"""Places of its own for each group of samples: hard storage and ring buffers."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from attractor.continual.replay.store import Columns, Store, distinct
from attractor.errors import InputError


class Slots:
    """As many places for each group as for any other; no group takes another's.

    A group is a task, a class, or a class of a task: whatever the caller numbers.

    Args:
        per_group: samples kept of each group.
        groups: how many groups there will be.
        newest: when a group's places are full, replace its oldest sample (a ring); else keep the
            first ones (hard storage).

    Shape:
        rows are tuples of tensors ``(samples, ...)``.

    Example:
        >>> memory = Slots(2, groups=3)
        >>> memory.add((torch.tensor([10.0, 11.0, 12.0]),), 0)
        >>> memory.add((torch.tensor([20.0]),), 1)
        >>> memory.rows([0, 1]), memory.sizes([0, 1])
        ((tensor([10., 11., 20.]),), [2, 1])
        >>> memory.add((torch.tensor([30.0, 21.0]),), torch.tensor([2, 1]))
        >>> memory.rows([1, 2])
        (tensor([20., 21., 30.]),)

    References:
        Lopez-Paz and Ranzato (2017), Gradient episodic memory, section 3 (the last samples of
        each task); Chaudhry et al. (2019), On tiny episodic memories, section 4 (ring buffer).
    """

    def __init__(self, per_group: int, groups: int, *, newest: bool = False) -> None:
        if per_group < 1 or groups < 1:
            raise InputError(
                "expected a memory with at least 1 sample for each of at least 1 group, but got "
                f"{per_group} for each of {groups}. Try a memory that is larger than the number of "
                "tasks."
            )
        self.per_group, self.groups, self.newest = per_group, groups, newest
        self.store = Store(per_group * groups)
        self.seen = [0] * groups

    def add(self, rows: Columns, group: int | Tensor) -> None:
        """Remember samples of one group, or of the group of each, as far as the places go."""
        if isinstance(group, Tensor):
            self._add_mixed(rows, group.cpu())
            return
        before, count = self.seen[group], len(rows[0])
        self.seen[group] += count
        if self.newest:
            self._write(rows, torch.full((count,), group), before + torch.arange(count))
        elif before < self.per_group:
            room = min(count, self.per_group - before)
            first = group * self.per_group + before
            self.store.write(slice(first, first + room), tuple(column[:room] for column in rows))

    def _add_mixed(self, rows: Columns, group: Tensor) -> None:
        same = group[:, None] == group
        seen = torch.tensor(self.seen)
        arrival = seen[group] + same.tril(-1).sum(1)
        self.seen = (seen + torch.bincount(group, minlength=self.groups)).tolist()
        self._write(rows, group, arrival)

    def _write(self, rows: Columns, group: Tensor, arrival: Tensor) -> None:
        """Write the samples that stay: each is the arrival-th of its group."""
        if self.newest:
            stays = arrival >= torch.tensor(self.seen)[group] - self.per_group
        else:
            stays = arrival < self.per_group
        places = (group * self.per_group + arrival % self.per_group)[stays]
        self.store.write(places, tuple(column[stays] for column in rows))

    def sizes(self, groups: Sequence[int]) -> list[int]:
        """How many samples of each group are kept."""
        return [min(self.seen[group], self.per_group) for group in groups]

    def rows(self, groups: Sequence[int]) -> Columns:
        """All samples of some groups, group by group."""
        return self.store.read(self._places(groups, self.sizes(groups)))

    def draw(
        self, count: int | Sequence[int], groups: Sequence[int], *, generator: Generator
    ) -> Columns:
        """Samples of each group without replacement, group by group; all, if there are not enough.

        Args:
            count: samples of each group; one number, or one for each.
            groups: which.
            generator: draws them.

        Example:
            >>> memory = Slots(5, groups=2)
            >>> memory.add((torch.arange(5),), 0)
            >>> memory.add((torch.arange(10, 12),), 1)
            >>> g = torch.Generator().manual_seed(0)
            >>> [len(column) for column in memory.draw(3, [0, 1], generator=g)]
            [5]
        """
        sizes = self.sizes(groups)
        least = min(sizes, default=0)
        if isinstance(count, int) and sizes and least == max(sizes) and least > count:
            # the places with the largest of some random numbers
            chances = torch.rand(len(sizes), least, generator=generator)
            inner = chances.topk(count, dim=1, sorted=False).indices
            outer = torch.tensor([[group * self.per_group] for group in groups])
            return self.store.read((inner + outer).flatten())
        places = [
            group * self.per_group + torch.randperm(size, generator=generator)[:some]
            for group, size, some in zip(groups, sizes, _each(count, groups), strict=True)
        ]
        return self.store.read(torch.cat([torch.empty(0, dtype=torch.long), *places]))

    def draw_any(self, count: int, groups: Sequence[int], *, generator: Generator) -> Columns:
        """Samples of all groups together, each equally likely, without replacement."""
        places = self._places(groups, self.sizes(groups))
        if isinstance(places, slice):
            return self.store.read(distinct(count, places.stop, generator))
        return self.store.read(places[distinct(count, len(places), generator)])

    def drawn(self, count: int | Sequence[int], groups: Sequence[int]) -> list[int]:
        """How many samples of each group `draw` gives."""
        each = zip(self.sizes(groups), _each(count, groups), strict=True)
        return [min(size, some) for size, some in each]

    def _places(self, groups: Sequence[int], sizes: Sequence[int]) -> Tensor | slice:
        full = all(size == self.per_group for size in sizes)
        if full and list(groups) == list(range(len(groups))):
            return slice(0, len(groups) * self.per_group)  # without a copy
        parts = [
            torch.arange(group * self.per_group, group * self.per_group + size)
            for group, size in zip(groups, sizes, strict=True)
        ]
        return torch.cat([torch.empty(0, dtype=torch.long), *parts])

    def resized(self, per_group: int, groups: int) -> "Slots":
        """The same samples with other room, as far as it goes.

        Example:
            >>> memory = Slots(4, groups=1, newest=True)
            >>> memory.add((torch.arange(6),), 0)
            >>> memory.resized(2, groups=3).rows([0])
            (tensor([4, 5]),)
        """
        made = Slots(per_group, groups, newest=self.newest)
        for group, size in enumerate(self.sizes(range(min(groups, self.groups)))):
            if size:
                rows = self.rows([group])
                if self.newest:  # the oldest of a full ring is where the next one goes
                    first = self.seen[group] % self.per_group if size == self.per_group else 0
                    rows = tuple(column.roll(-first, 0) for column in rows)
                made.add(rows, group)
        return made

    @property
    def nbytes(self) -> int:
        """The memory that is taken, from the first sample on."""
        return self.store.nbytes

    def state_dict(self) -> dict[str, Tensor]:
        """All samples, and how many of each group were seen."""
        return {"seen": torch.tensor(self.seen), **self.store.state_dict()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over the samples of another memory of the same size."""
        if len(state["seen"]) != self.groups:
            raise InputError(
                f"expected a memory of {self.groups} groups, but the state holds "
                f"{len(state['seen'])}. Resume with the stream and the memory that were saved."
            )
        self.store.load_state_dict({k: v for k, v in state.items() if k != "seen"})
        self.seen = state["seen"].tolist()


def _each(count: int | Sequence[int], groups: Sequence[int]) -> Sequence[int]:
    return [count] * len(groups) if isinstance(count, int) else count


def shares(total: int, groups: int, *, generator: Generator) -> list[int]:
    r"""Share a number out among groups at random, at least one to each: about so many in all.

    .. math::
        n_k = \lceil n\, \mathrm{softmax}(u)_k \rceil, \qquad u_k \sim U(0, 1)

    Example:
        >>> shares(10, 1, generator=torch.Generator()), shares(3, 9, generator=torch.Generator())
        ([10], [1, 1, 1, 1, 1, 1, 1, 1, 1])

    References:
        The script of Kuo et al. (2021), arXiv:2103.04066, that injects noise.
    """
    parts = torch.rand(groups, generator=generator, dtype=torch.float64).softmax(0)
    return (total * parts).ceil().long().tolist()


def hard_storage(per_task: int, tasks: int) -> Slots:
    """The first samples of each task, which never change.

    Example:
        >>> hard_storage(250, tasks=10).store.capacity
        2500
    """
    return Slots(per_task, tasks)


def ring_buffer(capacity: int, tasks: int) -> Slots:
    """A memory shared by all tasks in equal parts; in its part, a task keeps its newest samples.

    Example:
        >>> ring_buffer(250, tasks=10).per_group
        25
    """
    if capacity < tasks:
        raise InputError(
            f"expected a ring buffer with room for a sample of each of the {tasks} tasks, but got "
            f"{capacity}. Try {10 * tasks}."
        )
    return Slots(capacity // tasks, tasks, newest=True)
