"""Greedy sampler and dumb learner."""

import math
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from attractor.checks import positive, whole
from attractor.continual.replay.episodes import Episodes
from attractor.continual.strategies.base import Loss, Strategy
from attractor.state import cloned
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class GDumb(Strategy):
    r"""GDumb: only fill a memory, balanced by class; at the end of a task learn it from scratch.

    .. math::
        \theta \leftarrow \theta_0, \qquad
        \theta \leftarrow \theta - \alpha_t \nabla L_{B_M}, \qquad
        \alpha_t = \alpha_{min} + \tfrac12 (\alpha - \alpha_{min})
            \left(1 + \cos \frac{\pi t}{T}\right)

    A test of other methods: what they gain beyond their memories shows against it.

    Args:
        size: samples kept in all.
        epochs: how often the memory is gone through.
        batch_size: memories in each :math:`B_M`.
        lr: :math:`\alpha`; over all epochs it falls once, to a hundredth of it,
            :math:`\alpha_{min}`.

    Example:
        >>> GDumb(200).epochs
        30

    Departs from the paper: the memory is a fair sample of each class, instead of whatever finds
    room and is replaced at random; no CutMix; the rate falls once over all epochs. It has an SGD of
    its own, and the optimiser is not used.

    References:
        Prabhu et al. (2020), GDumb: a simple approach that questions our progress in continual
        learning, section 3.
    """

    reference = "prabhu2020gdumb"
    limits = {"wider": "it begins again with the first weights of the network"}  # noqa: RUF012
    own_rates = True

    def __init__(
        self, size: int = 500, *, epochs: int = 30, batch_size: int = 16, lr: float = 0.05
    ) -> None:
        self.size, self.epochs = whole("size", size, 1), whole("epochs", epochs, 1)
        self.batch_size, self.lr = whole("batch_size", batch_size, 1), positive("lr", lr)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.episodes = Episodes(
            "classes", self.size, len(stream), generator=generator, stream=stream
        )
        self.first: dict[str, Tensor] = cloned(dict(model.state_dict()))
        self._base: Loss = cross_entropy
        return model

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        for name, value in model.state_dict().items():
            if name not in self.first or self.first[name].shape != value.shape:
                self.first[name] = value.clone()  # a head that has grown starts as it grew

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._base = base
        self.episodes.add(batch)

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        """Learn nothing yet."""

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        model.load_state_dict(self.first)
        sgd = SGD([p for p in model.parameters() if p.requires_grad], lr=self.lr)
        every, generator = self.episodes.everything(), self.episodes.generator
        batches = -(-len(every) // self.batch_size)
        for update in range(self.epochs * batches):
            if update % batches == 0:
                order = torch.randperm(len(every), generator=generator)
            done = math.cos(math.pi * update / (self.epochs * batches))
            for group in sgd.param_groups:
                group["lr"] = self.lr * (0.01 + 0.99 * (1 + done) / 2)
            chosen = order[update % batches * self.batch_size :][: self.batch_size]
            sgd.zero_grad()
            torch.autograd.backward(self._base(model, every[chosen]))
            sgd.step()
        sgd.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict() | {"first": self.first}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
        self.first = cloned(state["first"])
