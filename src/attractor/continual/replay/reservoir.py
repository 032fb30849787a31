"""A fair sample of all that was seen, overall or class by class."""

import torch
from torch import Generator, Tensor

from attractor.continual.replay.store import Rows, Store
from attractor.errors import InputError


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
    places, with the same distribution; balanced by ranks in each class instead of one sample at a
    time.

    References:
        Vitter (1985), Random sampling with a reservoir; Chaudhry et al. (2019), On tiny episodic
        memories, algorithm 2; Chrysakis and Moens (2020), Online continual learning from
        imbalanced data, algorithm 1.
    """

    def __init__(self, capacity: int, *, balanced: bool = False, generator: Generator) -> None:
        self.store = Store(capacity)
        self.capacity, self.balanced, self.generator = capacity, balanced, generator
        self.numbers = torch.empty(0, dtype=torch.float64)
        self.labels = torch.empty(0, dtype=torch.long)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, rows: Rows, labels: Tensor) -> None:
        """Show samples to the memory, with the class of each."""
        old = len(self)
        fresh = torch.rand(len(labels), generator=self.generator, dtype=torch.float64)
        numbers = torch.cat([self.numbers, fresh])
        classes = torch.cat([self.labels, labels.long().cpu()])
        leaves = leaving(numbers, classes if self.balanced else None, self.capacity)
        entering = _without(torch.arange(len(fresh)), leaves[leaves >= old] - old)
        if len(entering) == 0:
            return
        # newcomers take the places of those that leave, then the free ones
        free = torch.arange(old, min(self.capacity, old + len(fresh)))
        places = torch.cat([leaves[leaves < old], free])[: len(entering)]
        self.store.write(places, tuple(column[entering] for column in rows))
        size = max(old, int(places.max()) + 1)
        numbers[places], classes[places] = fresh[entering], classes[old + entering]
        self.numbers, self.labels = numbers[:size], classes[:size]

    def rows(self) -> Rows:
        """All samples."""
        return self.store.read(slice(0, len(self)))

    def draw(self, count: int, *, generator: Generator) -> Rows:
        """Samples without replacement; all, if there are not enough."""
        return self.store.read(torch.randperm(len(self), generator=generator)[:count])

    @property
    def nbytes(self) -> int:
        """The memory that is taken, from the first sample on."""
        return self.store.nbytes

    def state_dict(self) -> dict[str, Tensor]:
        """All samples, their numbers and classes, and the state of the generator."""
        state = {"numbers": self.numbers, "labels": self.labels}
        state["generator"] = self.generator.get_state()
        return {name: t.clone() for name, t in state.items()} | self.store.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over the samples of another memory of the same size."""
        own = ("numbers", "labels", "generator")
        if len(state["numbers"]) > self.capacity:
            raise InputError(
                f"expected a memory of {self.capacity} samples, but the state holds "
                f"{len(state['numbers'])}. Resume with the memory that was saved."
            )
        self.store.load_state_dict({k: v for k, v in state.items() if k not in own})
        self.numbers, self.labels = state["numbers"].clone(), state["labels"].clone()
        self.generator.set_state(state["generator"])


def leaving(numbers: Tensor, classes: Tensor | None, capacity: int) -> Tensor:
    """Who has to leave: the smallest numbers, of the classes that have most.

    Args:
        numbers: of all samples, in [0, 1).
        classes: of all samples; ``None`` if they do not matter.
        capacity: how many may stay.

    Shape:
        numbers and classes ``(samples,)``; the places of those who leave, ``(excess,)``.

    Example:
        >>> numbers = torch.tensor([0.1, 0.5, 0.9, 0.2])
        >>> leaving(numbers, None, 2).sort().values
        tensor([0, 3])
        >>> leaving(numbers, torch.tensor([0, 0, 0, 1]), 2).sort().values
        tensor([0, 1])
    """
    excess = max(0, len(numbers) - capacity)
    if classes is None or excess == 0:
        return numbers.topk(excess, largest=False, sorted=False).indices
    order = numbers.argsort(descending=True)
    order = order[classes[order].argsort(stable=True)]  # class by class, the largest first
    sorted_classes = classes[order]
    starts = torch.searchsorted(sorted_classes, sorted_classes)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - starts
    return (rank - numbers).topk(excess, sorted=False).indices


def _without(places: Tensor, some: Tensor) -> Tensor:
    stays = torch.ones(len(places), dtype=torch.bool)
    stays[some] = False
    return places[stays]
