"""Averaged gradient episodic memory."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.continual.replay import Slots
from attractor.continual.replay.episodes import rows, samples
from attractor.continual.strategies.base import Loss, Strategy
from attractor.tasks import Batch, StoredTask, joined
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream

PENDING = 64
"""Batches that are written into the memory at once."""


class AGEM(Strategy):
    r"""Averaged GEM: let the loss on a batch of memories of all earlier tasks not grow.

    .. math::
        \tilde g = g - \frac{g^\top g_{ref}}{g_{ref}^\top g_{ref}}\, g_{ref}
        \quad \text{if } g^\top g_{ref} < 0, \text{ else } g

    Args:
        per_class: samples kept of each class of each task, the newest; of each task, if a sample
            has several answers, or one that is no class.
        reference_batch: memories that give :math:`g_{ref}`, drawn at each update from those of all
            finished tasks.

    Example:
        >>> AGEM(per_class=25).reference_batch
        256

    Departs from the paper: nothing.

    References:
        Chaudhry et al. (2019), Efficient lifelong learning with A-GEM, arXiv:1812.00420, equation
        11.
    """

    reference = "chaudhry2019agem"

    def __init__(self, per_class: int = 25, *, reference_batch: int = 256) -> None:
        self.per_class = whole("per_class", per_class, 1)
        self.reference_batch = whole("reference_batch", reference_batch, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self._parameters = list(model.parameters())
        self.generator = generator
        self._arrange(stream)
        self.memory = Slots(self.per_class, self._ends[-1], newest=True)
        self._pending: list[Batch] = []
        self._finish(0)
        return model

    def adopt(self, model: nn.Module) -> None:
        self._parameters = list(model.parameters())

    def extend(self, stream: Stream) -> None:
        self._remember()
        self._arrange(stream)
        self.memory = self.memory.resized(self.per_class, self._ends[-1])

    def _arrange(self, stream: Stream) -> None:
        """A group of memories for each class of each task."""
        self._stream = stream
        each_class = stream[0].samples(torch.tensor([0])).y.ndim == 1
        counts = [len(task.classes) if each_class else 1 for task in stream]
        self._ends = [0, *accumulate(counts)]
        self._groups = torch.arange(len(stream))[:, None].repeat(1, stream.outputs)
        if each_class:
            for task, first, end in zip(stream, self._ends, self._ends[1:], strict=False):
                self._groups[task.place, list(task.classes)] = torch.arange(first, end)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._base = base
        self._pending.append(batch)
        if len(self._pending) == PENDING:
            self._remember()

    def after_backward(self, model: nn.Module) -> None:
        if self.tasks == 0:
            return
        trained = [p for p in self._parameters if p.requires_grad]
        loss = self._base(model, self._draw())
        reference = torch.autograd.grad(loss, trained, materialize_grads=True)
        g = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        project(g, reference)
        for p, new in zip(trained, g, strict=True):
            p.grad = new

    def _remember(self) -> None:
        """Write the latest batches into the memory, all at once."""
        if self._pending:
            batch = joined(self._pending)
            answer = batch.y if batch.y.ndim == 1 else torch.zeros_like(batch.places)
            kept = rows(batch, raw=self._stream.keeps_raw)
            self.memory.add(kept, self._groups[batch.places.cpu(), answer.cpu()])
            self._pending = []

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self._remember()
        self._finish(task.place + 1)

    def _finish(self, tasks: int) -> None:
        """Find the memories of the finished tasks."""
        self.tasks = tasks
        sizes = torch.tensor(self.memory.sizes(range(self._ends[tasks])), dtype=torch.long)
        group, place = (torch.arange(self.per_class) < sizes[:, None]).nonzero(as_tuple=True)
        self._places = group * self.per_class + place

    def _draw(self) -> Batch:
        """Memories of the finished tasks, all equally likely."""
        chosen = torch.randperm(len(self._places), generator=self.generator)
        places = self._places[chosen[: self.reference_batch]]
        batch = samples(self.memory.store.read(places))
        if self._stream.keeps_raw:
            batch.x = self._stream.seen(batch.x, batch.places, self.generator)
        return batch

    def state_dict(self) -> dict[str, Any]:
        self._remember()
        return {
            "memory": self.memory.state_dict(),
            "tasks": self.tasks,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._pending = []
        self.memory.load_state_dict(state["memory"])
        self._finish(state["tasks"])
        self.generator.set_state(state["generator"])


def project(g: Sequence[Tensor], reference: Sequence[Tensor]) -> None:
    """Change a gradient to the nearest one that does not point away from the reference.

    Args:
        g: the gradient, tensor by tensor, which is changed in place.
        reference: that of the memories.

    Example:
        >>> g = torch.tensor([1.0, -1.0])
        >>> project([g], [torch.tensor([0.0, 2.0])])
        >>> g
        tensor([1., 0.])
    """
    overlap = _dot(g, reference)
    if overlap < 0:
        share = overlap / _dot(reference, reference)
        for a, b in zip(g, reference, strict=True):
            a.sub_(b, alpha=share)


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    pairs = zip(one, other, strict=True)
    return float(torch.stack([a.reshape(-1).dot(b.reshape(-1)) for a, b in pairs]).sum())
