"""A fair sample of all that was seen, overall or class by class."""

from heapq import heapify, heappop, heappush
from operator import itemgetter

import torch
from torch import Generator, Tensor

from attractor.continual.replay.store import Columns, Store, distinct
from attractor.errors import InputError

Kept = tuple[float, int]
"""The number of a sample and its place."""


class Reservoir:
    """A sample of everything seen so far in which each sample has the same chance to be.

    Each sample gets a random number, and those with the largest stay. With ``balanced``, the room
    is shared as equally among the classes as what was seen of them allows, and a class gives up
    its smallest numbers when another one needs room, so that each class has a fair sample of its
    own.

    Args:
        capacity: samples kept.
        balanced: share the room equally among classes.
        generator: draws the numbers.

    Shape:
        rows are tuples of tensors ``(samples, ...)``.

    Example:
        >>> memory = Reservoir(4, balanced=True, generator=torch.Generator().manual_seed(0))
        >>> memory.add((torch.arange(20),), torch.zeros(20))
        >>> memory.add((torch.arange(20, 22),), torch.ones(2))
        >>> [int((memory.rows()[0] < 20).sum()), int((memory.rows()[0] >= 20).sum())]
        [2, 2]

    Departs from the paper: the largest of random numbers instead of Vitter's replacement at random
    places, with the same distribution; a heap for each class finds them, so that an update takes
    as long in a large memory as in a small one.

    References:
        Vitter (1985), Random sampling with a reservoir; Chaudhry et al. (2019), On tiny episodic
        memories, algorithm 2; Chrysakis and Moens (2020), Online continual learning from
        imbalanced data, algorithm 1.
    """

    def __init__(self, capacity: int, *, balanced: bool = False, generator: Generator) -> None:
        self.store = Store(capacity)
        self.capacity, self.balanced, self.generator = capacity, balanced, generator
        self._kept: dict[int, list[Kept]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, rows: Columns, labels: Tensor) -> None:
        """Show samples to the memory, with the class of each."""
        fresh = torch.rand(len(labels), generator=self.generator, dtype=torch.float64).tolist()
        classes = labels.long().tolist() if self.balanced else [0] * len(fresh)
        written: dict[int, int] = {}  # at each place, the latest of the rows
        for row, (number, label) in enumerate(zip(fresh, classes, strict=True)):
            place = self._place(number, label)
            if place is not None:
                written[place] = row
        if written:
            entering = torch.tensor(list(written.values()))
            self.store.write(torch.tensor(list(written)), tuple(c[entering] for c in rows))

    def _place(self, number: float, label: int) -> int | None:
        """Where a sample goes, if it has a place: of a class that has most, the least leaves."""
        own = self._kept.setdefault(label, [])
        if self._size < self.capacity:
            heappush(own, (number, self._size))
            self._size += 1
            return self._size - 1
        most = max(len(kept) + (kept is own) for kept in self._kept.values())
        largest = [
            kept for kept in self._kept.values() if kept and len(kept) + (kept is own) == most
        ]
        least = min(largest, key=itemgetter(0))
        if len(own) + 1 == most and number < least[0][0]:
            return None
        _, place = heappop(least)
        heappush(own, (number, place))
        return place

    def rows(self) -> Columns:
        """All samples."""
        return self.store.read(slice(0, len(self)))

    def draw(self, count: int, *, generator: Generator) -> Columns:
        """Samples without replacement; all, if there are not enough."""
        return self.store.read(distinct(count, len(self), generator))

    @property
    def nbytes(self) -> int:
        """The memory that is taken, from the first sample on."""
        return self.store.nbytes

    def state_dict(self) -> dict[str, Tensor]:
        """All samples, their numbers and classes, and the state of the generator."""
        numbers = torch.empty(self._size, dtype=torch.float64)
        labels = torch.empty(self._size, dtype=torch.long)
        for label, kept in self._kept.items():
            for number, place in kept:
                numbers[place], labels[place] = number, label
        state = {"numbers": numbers, "labels": labels, "generator": self.generator.get_state()}
        return state | self.store.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over the samples of another memory of the same size."""
        own = ("numbers", "labels", "generator")
        if len(state["numbers"]) > self.capacity:
            raise InputError(
                f"expected a memory of {self.capacity} samples, but the state holds "
                f"{len(state['numbers'])}. Resume with the memory that was saved."
            )
        self.store.load_state_dict({k: v for k, v in state.items() if k not in own})
        self._kept, self._size = {}, len(state["numbers"])
        pairs = zip(state["numbers"].tolist(), state["labels"].tolist(), strict=True)
        for place, (number, label) in enumerate(pairs):
            self._kept.setdefault(label, []).append((number, place))
        for kept in self._kept.values():
            heapify(kept)
        self.generator.set_state(state["generator"])
