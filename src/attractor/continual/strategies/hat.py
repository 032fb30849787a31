"""Hard attention to the task."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from attractor.checks import number
from attractor.continual.strategies.base import Loss, Strategy, trains
from attractor.continual.strategies.masks import Connection, Masked
from attractor.errors import InputError
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream

REACH = 6.0
"""Embeddings are clamped to plus or minus this."""

STEEPEST = 50.0
"""The argument of the hyperbolic cosine is clamped to plus or minus this."""


class HAT(Strategy):
    r"""Hard attention to the task: learn which units a task uses, and let later tasks spare them.

    .. math::
        a_l^t &= \sigma(s\, e_l^t), \qquad h_l \leftarrow a_l^t \odot h_l \\
        L &= L_V + \lambda \sum_{l,i} a_{l,i}^t (1 - a_{l,i}^{<t}) \Big/
            \sum_{l,i} (1 - a_{l,i}^{<t}) \\
        g_{l,ij} &\leftarrow \left(1 - \min(a_{l,i}^{<t}, a_{l-1,j}^{<t})\right) g_{l,ij}, \qquad
        a^{<t+1} = \max(a^{<t}, a^t)

    Within an epoch :math:`s` grows from :math:`1/s_{max}` to :math:`s_{max}`, and the gradients of
    the embeddings are made up for it. The learner must be told the task, in the test too. With an
    optimiser that remembers gradients (momentum, Adam) or decays weights, it is the change of a
    weight that is scaled instead of its gradient, since what is remembered would move it still.

    Args:
        strength: :math:`\lambda`, what a new unit costs.
        sharpness: :math:`s_{max}`, at least 1.
        protect_head: let later tasks spare the output layer's weights from used units too; the
            paper has a head per task, which needs no protection.
        wires: how the layers are joined of a model that is not of `attractor.models`.

    Example:
        >>> HAT(0.75).sharpness
        400.0

    Departs from the paper: nothing for plain SGD and perceptrons, which it has. Masks are put on
    what a layer reads. In an `HCN` or `ResMLP` a unit is also carried past the layer, and there it
    is not masked, which neither the paper nor the thesis speaks of; whatever feeds it is spared for
    all layers above, so what is used is still not changed. The thesis widens the networks to 400 or
    500 units.

    References:
        Serrà et al. (2018), Overcoming catastrophic forgetting with hard attention to the task,
        arXiv:1801.01423, equations 1 to 6; the clamps are those of its code.
    """

    reference = "serra2018overcoming"
    wraps_model = True
    limits: Mapping[str, str] = {
        "recurrent": "a mask holds for the units of a layer, not for the states of a cell",
        "convnet": "its masks are for vectors of units; say by wires how other layers are joined",
        "resnet": "its masks are for vectors of units; say by wires how other layers are joined",
    }

    def __init__(
        self,
        strength: float = 0.75,
        *,
        sharpness: float = 400.0,
        protect_head: bool = False,
        wires: Sequence[Connection] | None = None,
    ) -> None:
        self.strength = number("strength", strength, 0)
        self.sharpness = number("sharpness", sharpness, 1)
        self.protect_head, self.wires = protect_head, wires
        if wires is not None:
            self.limits = {}

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        if not stream.identity:
            raise InputError(
                "HAT expects to be told the task of each sample, in the test too, but the stream "
                f"{stream.name!r} does not tell. Try dataclasses.replace(stream, identity=True), "
                "or another strategy."
            )
        self.model = Masked(
            model,
            len(stream),
            sharpness=self.sharpness,
            wires=self.wires,
            generator=generator,
        )
        self.used = [torch.zeros_like(mask) for mask in self.model.masks(0, 1.0)]
        self.task, self.count, self.epoch, self.scales_changes = 0, 0, 1, False
        return self.model

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        self.task, self.count = task.place, 0
        self.epoch, self._samples = updates, len(task)
        self.scales_changes = not _is_plain(optimiser)

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        done = (self.count % self.epoch) / max(1, self.epoch - 1)
        self.model.s = 1 / self.sharpness + (self.sharpness - 1 / self.sharpness) * done
        masks = self.model.masks(self.task, self.model.s)
        free = torch.cat([1 - used for used in self.used])
        cost = (torch.cat(masks) * free).sum() / free.sum().clamp(min=1e-6)
        return base(model, batch) + self.strength * cost

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        if self.count == 0:
            self.epoch = min(self.epoch, -(-self._samples // len(batch)))
        self.count += 1

    @torch.no_grad()
    def after_backward(self, model: nn.Module) -> None:
        s = self.model.s
        for e in self.model.embedding(self.task):
            assert e.grad is not None
            steep = torch.cosh((s * e).clamp(-STEEPEST, STEEPEST)) + 1
            e.grad *= self.sharpness / s * steep / (torch.cosh(e) + 1)
        if not self.scales_changes:
            for parameter, free in self._freedom():
                if parameter.grad is not None:
                    parameter.grad *= free

    def _freedom(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Weights and biases that earlier tasks use, and how far later ones may change them."""
        for wire in self.model.wires:
            layer = self.model.layer(wire.layer)
            if wire.feeds:
                out = torch.stack([self.used[mask] for mask in wire.feeds]).amax(0)
                if layer.bias is not None:
                    yield layer.bias, 1 - out
            elif self.protect_head:
                out = torch.ones_like(layer.weight[:, 0])
            else:
                continue
            every = torch.ones_like(layer.weight[0])
            reads = every if wire.reads is None else self.used[wire.reads]
            yield layer.weight, 1 - torch.minimum(out[:, None], reads)

    @torch.no_grad()
    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        limits = list(self._freedom()) if self.scales_changes else []
        before = [parameter.clone() for parameter, _ in limits]
        with torch.enable_grad():
            trains(optimiser).step()
        for (parameter, free), old in zip(limits, before, strict=True):
            parameter.copy_(torch.lerp(old, parameter, free))
        for e in self.model.embedding(self.task):
            e.clamp_(-REACH, REACH)

    @torch.no_grad()
    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        masks = self.model.masks(task.place, self.sharpness)
        self.used = [torch.maximum(old, new) for old, new in zip(self.used, masks, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        return {
            "used": self.used,
            "task": self.task,
            "count": self.count,
            "epoch": self.epoch,
            "scales_changes": self.scales_changes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.used = [used.clone() for used in state["used"]]
        self.task, self.count, self.epoch = state["task"], state["count"], state["epoch"]
        self.scales_changes = state["scales_changes"]


def _is_plain(optimiser: Optimizer) -> bool:
    """Whether a step depends on nothing but the gradient."""
    return type(optimiser) is SGD and not any(
        group["momentum"] or group["weight_decay"] for group in optimiser.param_groups
    )
