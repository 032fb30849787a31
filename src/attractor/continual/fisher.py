"""How much the answers to a task depend on each weight, and penalties made of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.continual.flat import Flat
from attractor.continual.gradients import GroupGradients
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.weighting import evaluating
from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, StoredTask
from attractor.tasks.answers import answer, asked

PIECE = 500
"""Samples whose squared gradients are computed at once."""


class Anchor(NamedTuple):
    """What a quadratic penalty pulls towards, and how strongly.

    Shape:
        both ``(parameters,)``.
    """

    fisher: Tensor
    value: Tensor


def fisher_diagonal(
    gradients: GroupGradients,
    task: StoredTask,
    base: Loss,
    *,
    samples: int | None,
    sampled: bool,
    generator: Generator,
) -> Tensor:
    r"""The diagonal of the Fisher information on a task, of the model as it is in use.

    .. math::
        F = \frac1N \sum_i (\nabla_\theta \log p(y_i | x_i))^2

    Args:
        gradients: of the model.
        task: whose training samples are taken.
        base: the loss, whose gradient is squared.
        samples: how many; ``None`` means all.
        sampled: draw the labels from the model instead of taking those of the data.
        generator: draws the samples and the labels.

    Shape:
        ``(parameters,)``.
    """

    def label(batch: Batch) -> Batch:
        return relabelled(gradients.model, batch, generator) if sampled else batch

    return of_samples(
        gradients, task, base, of=torch.square, samples=samples, generator=generator, label=label
    )


def of_samples(
    gradients: GroupGradients,
    task: StoredTask,
    base: Loss,
    *,
    of: Callable[[Tensor], Tensor],
    samples: int | None,
    generator: Generator,
    label: Callable[[Batch], Batch] = lambda batch: batch,
) -> Tensor:
    """The mean of a function of single samples' gradients on a task, of the model as it is in use.

    Args:
        gradients: of the model.
        task: whose training samples are taken.
        base: the loss.
        of: the function, as for `GroupGradients.of_samples`.
        samples: how many; ``None`` means all.
        generator: draws the samples.
        label: changes the samples before their loss is taken.

    Shape:
        ``(parameters,)``.
    """
    device = gradients.flat.parameters[0].device
    chosen = torch.randperm(len(task), generator=generator)[:samples]
    total = torch.zeros_like(gradients.flat.values())
    with evaluating(gradients.model):
        for index in torch.split(chosen, PIECE):
            batch = label(task.samples(index, generator).map(lambda t: t.to(device)))
            total += gradients.of_samples(batch, base, of) * len(batch)
    return total / len(chosen)


@torch.no_grad()
def relabelled(model: nn.Module, batch: Batch, generator: Generator) -> Batch:
    """The samples with labels drawn from what the model says, where anything is asked."""
    chances = answer(model, batch).softmax(-1).cpu()
    drawn = torch.multinomial(chances.flatten(0, -2), 1, generator=generator)
    y = drawn.view(batch.y.shape).to(batch.y.device)
    y = torch.where(asked(batch) == IGNORE, IGNORE, y)
    return replace(batch, y=y, weight=None)


def pull(flat: Flat, anchors: Sequence[Anchor], strength: float) -> None:
    r"""Add :math:`\lambda F \odot (\theta - \theta^*)`, the gradient of each penalty, to a model's.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> flat = Flat(model)
        >>> pull(flat, [Anchor(torch.tensor([3.0]), flat.values() - 2)], strength=0.5)
        >>> round(model.weight.grad.item(), 3)
        3.0
    """
    gradient, theta = flat.gradient(), flat.values()
    for anchor in anchors:
        gradient.addcmul_(anchor.fisher, theta - anchor.value, value=strength)
    flat.set_gradient(gradient)


def penalty(flat: Flat, anchors: Sequence[Anchor], strength: float) -> Tensor:
    r"""The penalty itself, :math:`\frac\lambda2 \sum_k F_k (\theta_k - \theta^*_k)^2`.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> flat = Flat(model)
        >>> found = penalty(flat, [Anchor(torch.ones(2), flat.values() - 2)], strength=0.5)
        >>> round(float(found), 3)
        2.0
    """
    theta = flat.values()
    terms = [(f * (theta - value) ** 2).sum() for f, value in anchors]
    return strength / 2 * torch.stack([theta.new_zeros(()), *terms]).sum()


def followed(flat: Flat, before: Flat, anchors: Sequence[Anchor], owner: Strategy) -> list[Anchor]:
    r"""The penalties of a network whose last layer had fewer rows.

    On new rows nothing depends yet: their importance is zero, and they are where they begin.

    Args:
        flat: the parameters of the network that has grown.
        before: those that it had.
        anchors: of these.
        owner: which refuses any other growth.

    Example:
        >>> old, new = nn.Linear(1, 1, bias=False), nn.Linear(1, 2, bias=False)
        >>> _ = new.weight.data[:1].copy_(old.weight.data)
        >>> one = Anchor(torch.tensor([3.0]), torch.tensor([4.0]))
        >>> from attractor.continual import EWC
        >>> followed(Flat(new), Flat(old), [one], EWC())[0].fisher
        tensor([3., 0.])
    """
    if not flat.begins_with(before):
        raise InputError(
            f"expected a strategy that can go on with a network that has grown, but "
            f"{type(owner).__name__} keeps numbers for each of its weights. Try gem or er."
        )
    zeros = torch.zeros_like(flat.values())
    return [
        Anchor(
            flat.longer(one.fisher, before, zeros), flat.longer(one.value, before, flat.values())
        )
        for one in anchors
    ]


def check_size(flat: Flat, anchors: Sequence[Anchor]) -> None:
    """Refuse anchors of another model."""
    size = sum(flat.sizes)
    for anchor in anchors:
        if len(anchor.fisher) != size:
            raise InputError(
                f"expected a Fisher diagonal of {size} parameters, but the state holds "
                f"{len(anchor.fisher)}. Resume with the model that was saved."
            )


def summed(anchors: Sequence[Anchor]) -> Anchor:
    r"""One quadratic for several, up to a constant.

    Example:
        >>> one = Anchor(torch.tensor([1.0]), torch.tensor([0.0]))
        >>> summed([one, Anchor(torch.tensor([3.0]), torch.tensor([4.0]))])
        Anchor(fisher=tensor([4.]), value=tensor([3.]))
    """
    fisher = torch.stack([anchor.fisher for anchor in anchors]).sum(0)
    drawn = torch.stack([anchor.fisher * anchor.value for anchor in anchors]).sum(0)
    # a weight on which nothing depends is pulled nowhere
    value = torch.where(fisher > 0, drawn / fisher, anchors[-1].value)
    return Anchor(fisher, value)
