"""Losses in which groups of samples are averaged on their own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from attractor.continual.rows import shares
from attractor.continual.strategies.base import Loss
from attractor.tasks import Batch, joined

PROBE = 8
"""Samples on which a loss is tried."""


class Balanced:
    r"""The loss on new samples plus the mean of those on several groups of old ones.

    .. math::
        L = L_V + \frac{1}{V-1} \sum_{u=1}^{V-1} L_u

    One pass through the model if the loss heeds the weights of samples, which is tried when a loss
    is first met; else one for each group.

    Example:
        >>> from attractor.continual.strategies.base import cross_entropy
        >>> model = nn.Linear(2, 2)
        >>> task = torch.zeros(5, dtype=torch.long)
        >>> new, old = (Batch(torch.ones(n, 2), task[:n], task=task[:n]) for n in (3, 5))
        >>> loss = Balanced()(model, new, old, [1, 4], cross_entropy)
        >>> torch.allclose(loss, 2 * cross_entropy(model, new))
        True
    """

    def __init__(self) -> None:
        self._tried: Loss | None = None
        self._heeds = False

    def __call__(
        self, model: nn.Module, new: Batch, old: Batch, sizes: Sequence[int], base: Loss
    ) -> Tensor:
        both = joined([new, old])
        if self._tried != base:  # bound methods are made anew
            heeds = heeds_weights(model, both, base)
            self._tried, self._heeds = None if heeds is None else base, bool(heeds)
        if self._heeds:
            of_old = shares(sizes) / len(sizes)
            return base(model, weighted(both, torch.cat([shares([len(new)]), of_old])))
        means = [base(model, some) for some in groups(old, sizes)]
        return base(model, new) + torch.stack(means).mean()


def weighted(batch: Batch, weight: Tensor) -> Batch:
    """The samples with these shares in the loss."""
    return replace(batch, weight=weight.to(batch.y.device))


def groups(batch: Batch, sizes: Sequence[int]) -> list[Batch]:
    """Samples cut into groups, one after the other."""
    return [batch[slice(*span)] for span in pairwise(accumulate(sizes, initial=0))]


def heeds_weights(model: nn.Module, batch: Batch, base: Loss) -> bool | None:
    r"""Whether a loss on weighted samples is :math:`\sum_i w_i \ell_i`, tried on a few of them.

    ``None`` if they do not tell: one sample, or samples without any loss.

    Example:
        >>> model, y = nn.Linear(2, 2), torch.tensor([0, 1, 1])
        >>> batch = Batch(torch.ones(3, 2), y, task=torch.zeros(3))
        >>> heeds_weights(model, batch, lambda m, b: nn.functional.cross_entropy(m(b.x), b.y))
        False
    """
    some = batch[:PROBE]
    if len(some) < 2:
        return None
    weight = torch.linspace(1, 2, len(some), dtype=torch.float64) / len(some)
    with torch.no_grad(), evaluating(model):
        each = [float(base(model, some[row : row + 1])) for row in range(len(some))]
        found = float(base(model, weighted(some, weight)))
    if not any(each):
        return None
    wanted = float(weight @ torch.tensor(each, dtype=torch.float64))
    return abs(found - wanted) <= 1e-3 * abs(wanted)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """A model in evaluation, without dropout, then as it was; torch's generator is left alone."""
    modes = [(one, one.training) for one in model.modules()]
    with torch.random.fork_rng(devices=[]):
        model.eval()
        try:
            yield
        finally:
            for one, training in modes:
                one.training = training
