"""Deep streaming linear discriminant analysis."""

from typing import Any

import torch
from torch import Generator, nn
from torch.optim import Optimizer

from attractor.checks import number, whole
from attractor.continual.readouts import features, readout
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.weighting import evaluating
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream

PIECE = 500
"""Samples whose features are computed at once."""

UNSEEN = -1e4
"""The bias of a class of which nothing was seen."""


class SLDA(Strategy):
    r"""Streaming LDA: after the first tasks the last layer alone learns, from running moments.

    .. math::
        \Sigma &\leftarrow \frac{n \Sigma + \Delta}{n + 1}, \qquad
        \Delta = \frac{n}{n + 1} (z - \mu_y)(z - \mu_y)^\top, \qquad
        \mu_y \leftarrow \frac{n_y \mu_y + z}{n_y + 1} \\
        \Lambda &= ((1 - \epsilon) \Sigma + \epsilon I)^{-1}, \qquad
        w_c = \Lambda \mu_c, \qquad b_c = -\tfrac12 \mu_c^\top \Lambda \mu_c

    :math:`z` is what the last layer reads of a sample, n counts all samples and :math:`n_y` those
    of a class. The network below is trained by the first tasks and then stays as it is.

    Args:
        shrinkage: :math:`\epsilon`.
        base: how many tasks train the whole network; the moments begin with the samples of the
            last of them.

    Example:
        >>> SLDA().shrinkage
        0.0001

    Departs from the paper: its network is trained on other data (ImageNet), and its first
    covariance estimated by shrinkage towards the oracle; here the rule itself goes through the
    samples of the base task.

    References:
        Hayes and Kanan (2020), Lifelong machine learning with deep streaming linear discriminant
        analysis, arXiv:1909.01520, equations 1 to 4.
    """

    reference = "hayes2020lifelong"
    limits = {  # noqa: RUF012
        "each step": "it has a mean of the features of each sample's one class",
        "wider": "it keeps means of the features that it has",
        "no classes": "it has a mean of the features of each sample's one class",
    }

    def __init__(self, shrinkage: float = 1e-4, *, base: int = 1) -> None:
        self.shrinkage, self.base = number("shrinkage", shrinkage, 0, 1), whole("base", base, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        weight = readout(model)[1].weight.detach()
        self.means, self.counts = torch.zeros_like(weight), weight.new_zeros(len(weight))
        self.covariance = weight.new_zeros(weight.shape[1], weight.shape[1])
        self.tasks = 0
        self._batch: Batch | None = None
        return model

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        more = len(readout(model)[1].weight) - len(self.counts)
        if more:  # the head has grown
            self.means = torch.cat([self.means, self.means.new_zeros(more, self.means.shape[1])])
            self.counts = torch.cat([self.counts, self.counts.new_zeros(more)])

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._batch = batch

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        if self.tasks < self.base:
            optimiser.step()
            return
        assert self._batch is not None
        self._learn(model, self._batch)
        self._answer(model)

    @torch.no_grad()
    def _learn(self, model: nn.Module, batch: Batch) -> None:
        """Add samples to the moments, one after the other."""
        with evaluating(model):
            z = features(model, batch)
        n = float(self.counts.sum())
        for one, label in zip(z, batch.y.tolist(), strict=True):
            off = one - self.means[label]
            self.covariance.mul_(n / (n + 1)).addr_(off, off, alpha=n / (n + 1) ** 2)
            self.counts[label] += 1
            self.means[label] += off / self.counts[label]
            n += 1

    @torch.no_grad()
    def _answer(self, model: nn.Module) -> None:
        """Let the last layer answer by the moments."""
        layer = readout(model)[1]
        eye = torch.eye(len(self.covariance)).to(self.covariance)
        shrunk = (1 - self.shrinkage) * self.covariance + self.shrinkage * eye
        W = torch.linalg.solve(shrunk, self.means.T).T
        layer.weight.copy_(W)
        if layer.bias is not None:
            b = -(W * self.means).sum(1) / 2
            layer.bias.copy_(b.masked_fill(self.counts == 0, UNSEEN))

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self.tasks += 1
        if self.tasks == self.base:
            device = next(model.parameters()).device
            for some in torch.split(torch.arange(len(task)), PIECE):
                self._learn(model, task.samples(some).to(device))
            self._answer(model)

    def state_dict(self) -> dict[str, Any]:
        return {
            "means": self.means,
            "counts": self.counts,
            "covariance": self.covariance,
            "tasks": self.tasks,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means, self.counts = state["means"].clone(), state["counts"].clone()
        self.covariance, self.tasks = state["covariance"].clone(), state["tasks"]
