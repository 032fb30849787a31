"""Streams: tasks that come one after the other."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask
from attractor.tasks.stored import StoredTask

Maker = TypeVar("Maker", bound=Callable[..., Any])


def cites(reference: str) -> Callable[[Maker], Maker]:
    """Give what makes a stream the key of its paper in ``references.bib``."""

    def mark(make: Maker) -> Maker:
        marked: Any = make
        marked.reference = reference
        return make

    return mark


@dataclass(frozen=True, eq=False)
class Stream(Sequence[StoredTask]):
    """Tasks in the order in which they are learnt.

    Args:
        name: in words.
        tasks: the tasks; each knows its place.
        identity: whether a learner is told, also in the test, which task a sample belongs to.

    Example:
        >>> from attractor.tasks import Data
        >>> data = Data(torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2]))
        >>> stream = Stream("twins", [ArrayTask(str(i), i, data, data, (0, 1, 2)) for i in (0, 1)])
        >>> len(stream), stream.outputs, stream[1].name
        (2, 3, '1')
    """

    name: str
    tasks: Sequence[StoredTask]
    identity: bool = False

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError(
                f"expected at least one task in the stream {self.name!r}, but got none. "
                "Try tasks=2 or more."
            )
        for one in self.tasks:
            if not isinstance(one, StoredTask):
                raise InputError(
                    f"expected tasks whose samples have numbers in the stream {self.name!r}, but "
                    f"got a {type(one).__name__}. Try ArrayTask or DatasetTask."
                )
        one_sample = torch.tensor([0])
        first = self.tasks[0].samples(one_sample).features
        for place, one in enumerate(self.tasks):
            if one.place != place:
                raise InputError(
                    f"expected the task {one.name!r} to know its place {place} in the stream, but "
                    f"got {one.place}. Number tasks from 0 in their order."
                )
            halves = {"": one.samples(one_sample), "the test half of ": one.first("test", 1)}
            for half, some in halves.items():
                if some.features != first:
                    raise InputError(
                        f"expected all tasks of a stream to have inputs of one size, {first} as in "
                        f"{self.tasks[0].name!r}, but {half}{one.name!r} has "
                        f"{some.features}. Pad or project the inputs first."
                    )
        shown = [one.samples(one_sample) for one in self]
        lengths = {some.x.shape[1] for some in shown if not isinstance(some.x, tuple)}
        if len(lengths) > 1 and any(some.lengths is None for some in shown):
            raise InputError(
                f"expected lengths for sequences that differ from task to task, but the stream "
                f"{self.name!r} has {len(lengths)} lengths and not all of its data say them. "
                "Set Data.lengths."
            )

    @overload
    def __getitem__(self, place: int) -> StoredTask: ...
    @overload
    def __getitem__(self, place: slice) -> "Stream": ...
    def __getitem__(self, place: int | slice) -> "StoredTask | Stream":
        if isinstance(place, slice):
            chosen = self.tasks[place]
            return replace(self, tasks=[one.at(i) for i, one in enumerate(chosen)])
        return self.tasks[place]

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def outputs(self) -> int:
        """How many answers a single head needs."""
        return 1 + max(label for one in self for label in one.classes)

    @property
    def keeps_raw(self) -> bool:
        """Whether memories keep samples as they are stored: if all tasks say so."""
        return all(one.keeps_raw for one in self)

    def seen(self, stored: Tensor, places: Tensor, generator: Generator | None = None) -> Tensor:
        """Stored samples as the tasks at these places show them, made noisy anew.

        Shape:
            stored ``(samples, ...)``, places ``(samples,)``.
        """
        among: list[int] = torch.unique(places).tolist()
        views = {(getattr(self[t], "read", t), getattr(self[t], "noise", None)) for t in among}
        if len(views) == 1:
            return self[among[0]].see(stored, generator)
        order = torch.cat([(places == t).nonzero().squeeze(1) for t in among])
        parts = [self[t].see(stored[places == t], generator) for t in among]
        return torch.cat(parts)[order.argsort()]

    def arrays(self) -> list[ArrayTask]:
        """The tasks, once all are known to have their data in arrays, which can be changed."""
        found = [one for one in self if isinstance(one, ArrayTask)]
        if len(found) < len(self):
            raise InputError(
                f"expected a stream of tasks over arrays, but {self.name!r} has others. "
                "Try ArrayTask, or change the samples in the Dataset itself."
            )
        return found

    def fingerprint(self) -> str:
        """A short text that another stream does not have: of its tasks and their first samples."""
        digest = hashlib.sha256(f"{self.name} {self.identity}".encode())
        for one in self:
            one.feed(digest)
        return digest.hexdigest()[:16]
