"""Incremental classifier and representation learning."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from attractor.checks import whole
from attractor.continual.nearest import NearestMean, herded
from attractor.continual.readouts import features, readout, replaced
from attractor.continual.replay.ahead import Ahead
from attractor.continual.replay.episodes import rows, samples
from attractor.continual.replay.store import Columns, distinct
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.teacher import Teacher
from attractor.continual.weighting import evaluating
from attractor.tasks import Batch, StoredTask, joined
from attractor.tasks.answers import answer, cross_entropy
from attractor.tasks.batch import stacked
from attractor.tasks.streams import Stream

PIECE = 500
"""Samples whose features are computed at once."""


class ICaRL(Strategy):
    r"""iCaRL: exemplars near the mean of their class, old answers, and the nearest mean decides.

    .. math::
        L &= -\frac1{|B^*|} \sum_{i \in B^*} \sum_{c \le C_V} q_{ic} \log \sigma(h_{ic})
            + (1 - q_{ic}) \log(1 - \sigma(h_{ic})), \qquad
        q_{ic} = \begin{cases} \sigma(z_{ic}) & c \text{ seen before} \\ [c = y_i] &
            \text{else} \end{cases} \\
        p_k &= \arg\min_x \Big\| \mu_c - \frac1k \Big( \varphi(x) + \sum_{j<k} \varphi(p_j) \Big)
            \Big\|, \qquad
        y^*(x) = \arg\min_c \| \varphi(x) - \mu_c \|

    :math:`B^*` are the batch and exemplars, :math:`z` the outputs of the network as the last task
    left it, :math:`\varphi` what the last layer reads, of length one. In evaluation the model
    answers with its nearness to the mean of each class's exemplars.

    Args:
        size: exemplars in all, shared equally by the classes.
        replay: exemplars that are learnt together with each batch.

    Example:
        >>> ICaRL(200).replay
        10

    Departs from the paper: batches come with a fixed number of exemplars instead of epochs over
    both. Means are those of the exemplars at the end of a task. Where a class comes again in a
    later task, its exemplars are chosen among the old ones and the new samples. Its loss is its
    own, whatever the stream's.

    References:
        Rebuffi et al. (2017), iCaRL: incremental classifier and representation learning,
        arXiv:1611.07725, algorithms 1 to 5.
    """

    reference = "rebuffi2017icarl"
    adds_samples = True
    limits = {  # noqa: RUF012
        "each step": "it keeps samples that are near the mean of their one class",
        "wider": "it keeps means of the features that it has",
        "no classes": "it keeps samples that are near the mean of their one class",
    }

    def __init__(self, size: int = 2000, *, replay: int = 10) -> None:
        self.size, self.replay = whole("size", size, 1), whole("replay", replay, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        name, layer = readout(model)
        self.model = replaced(model, name, NearestMean(layer))
        self.stream, self.teacher = stream, Teacher()
        self.old, self.present = list[int](), list[int]()
        self.exemplars: dict[int, Columns] = {}
        self._gather()
        self._ahead: Ahead[Batch | None] = Ahead(generator)
        return self.model

    def extend(self, stream: Stream) -> None:
        self.stream = stream

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        self.model, self.present = model, sorted({*self.old, *task.classes})

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        old = self._ahead.look("exemplars", self._draw)
        both = batch if old is None else joined([batch, old])
        output = answer(model, both)[:, self.present]
        wanted = (both.y[:, None] == torch.tensor(self.present, device=both.y.device)).to(output)
        if self.teacher.knows:
            known = torch.isin(torch.tensor(self.present), torch.tensor(self.old))
            wanted[:, known] = self.teacher.says(both)[:, self.old].sigmoid()
        open_ = output.isfinite()  # heads of other tasks are minus infinity
        each = F.binary_cross_entropy_with_logits(
            output.masked_fill(~open_, 0), wanted, reduction="none"
        )
        return each.masked_fill(~open_, 0).sum() / len(both)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._ahead.take("exemplars", self._draw)

    def _draw(self, generator: Generator) -> Batch | None:
        if not self._pool:
            return None
        chosen = distinct(self.replay, len(self._pool[0]), generator)
        batch = samples(tuple(column[chosen] for column in self._pool))
        return self._seen(batch, generator).to(next(self.model.parameters()).device)

    def _seen(self, batch: Batch, generator: Generator | None = None) -> Batch:
        if self.stream.keeps_raw:
            batch.x = self.stream.seen(batch.x, batch.places, generator)
        return batch

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self.old = list(self.present)
        room = max(1, self.size // len(self.old))
        raw = self.stream.keeps_raw
        index, labels = torch.arange(len(task)), _labels(task)
        for label in task.classes:
            own = index[labels == label]
            parts = [rows(task.samples(some), raw=raw) for some in torch.split(own, PIECE)]
            parts += [self.exemplars[label]] if label in self.exemplars else []
            among: Columns = tuple(map(stacked, zip(*parts, strict=True)))
            chosen = herded(self._features(model, among), room)
            self.exemplars[label] = tuple(column[chosen] for column in among)
        self.exemplars = {c: tuple(x[:room] for x in kept) for c, kept in self.exemplars.items()}
        self._gather()
        layer = readout(model)[1]
        assert isinstance(layer, NearestMean)
        for label, kept in self.exemplars.items():
            layer.remember(label, self._features(model, kept))
        self.teacher.copy(model)
        self._silence()
        self._ahead.forget()

    def _gather(self) -> None:
        """All exemplars side by side, so that an update need not go through the classes."""
        self._pool: Columns = tuple(map(stacked, zip(*self.exemplars.values(), strict=True)))

    def _silence(self) -> None:
        """Let the teacher answer with its outputs, not with the nearest mean."""
        assert self.teacher.model is not None
        layer = readout(self.teacher.model)[1]
        assert isinstance(layer, NearestMean)
        layer.known.fill_(False)

    @torch.no_grad()
    def _features(self, model: nn.Module, columns: Columns) -> Tensor:
        device, found = next(model.parameters()).device, []
        with evaluating(model):
            for some in torch.split(torch.arange(len(columns[0])), PIECE):
                batch = self._seen(samples(tuple(column[some] for column in columns)))
                found.append(F.normalize(features(model, batch.to(device))))
        return torch.cat(found)

    def state_dict(self) -> dict[str, Any]:
        return {
            "teacher": self.teacher.state_dict(),
            "old": list(self.old),
            "present": list(self.present),
            "exemplars": {str(label): list(kept) for label, kept in self.exemplars.items()},
            "generator": self._ahead.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.teacher.load_state_dict(state["teacher"], self.model)
        self.old, self.present = list(state["old"]), list(state["present"])
        kept = state["exemplars"].items()
        self.exemplars = {int(c): tuple(column.clone() for column in some) for c, some in kept}
        self._gather()
        self._ahead.generator.set_state(state["generator"])
        self._ahead.forget()


def _labels(task: StoredTask) -> Tensor:
    """The class of each training sample."""
    return torch.cat([task.samples(some).y for some in torch.split(torch.arange(len(task)), PIECE)])
