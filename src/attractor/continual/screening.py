r"""GEM's projection with few gradients: what would be hurt is found by forward passes.

Along a direction d, the loss of the memories of task u changes by

.. math::
    \langle g_u, d \rangle \approx \frac{L_u(\theta + \epsilon d) - L_u(\theta)}{\epsilon}

which takes one pass forwards for all tasks together. Only the tasks that bind need gradients of
their own.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from attractor.continual.rows import shares
from attractor.continual.strategies.base import Loss
from attractor.continual.weighting import evaluating, groups, heeds_weights, weighted
from attractor.tasks import Batch

REACH = 3e-4
"""How far a step to try goes, as a share of the length of all parameters."""


class Screen:
    """How the losses of groups of samples change along a direction, by forward passes alone.

    Args:
        model: any network; it stays as it is, and is asked as in evaluation.

    Example:
        >>> from attractor.continual.strategies.base import cross_entropy
        >>> model, screen = nn.Linear(2, 2), Screen(nn.Linear(2, 2))
        >>> x, y = torch.eye(2).repeat(2, 1), torch.tensor([0, 1, 1, 0])
        >>> screen.look(Batch(x, y, task=torch.zeros(4)), [2, 2], cross_entropy)
        >>> screen.overlaps(torch.ones(6)).shape
        torch.Size([2])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._names = [f"model.{name}" for name, _ in model.named_parameters()]
        self._tried: Loss | None = None
        self._together = False

    def look(self, batch: Batch, sizes: Sequence[int], base: Loss) -> None:
        """Take the losses of samples where the parameters are now.

        Args:
            batch: the samples, group after group.
            sizes: how many samples each group has.
            base: the loss; one pass for all groups if it heeds the weights of samples, which is
                tried when it is first met, else one for each group.
        """
        if self._tried != base:  # bound methods are made anew
            heeds = heeds_weights(self.model, batch, base)
            self._tried, self._together = None if heeds is None else base, bool(heeds)
        self._asked = _Asked(self.model, base)
        self._batch, self._sizes = batch, list(sizes)
        self._start = [p.detach() for p in self.model.parameters()]
        self._length = float(torch.stack([p.norm() for p in self._start]).norm())
        self._before = self._losses(self._start)

    def overlaps(self, direction: Tensor) -> Tensor:
        """The inner product of each group's gradient with a direction, but for the curvature.

        Shape:
            direction ``(parameters,)``; ``(groups,)``.
        """
        size = float(direction.norm())
        if size == 0:
            return torch.zeros_like(self._before)
        step = REACH * max(self._length, 1e-3) / size
        parts = torch.split(direction, [p.numel() for p in self._start])
        moved = [p + step * d.view_as(p) for p, d in zip(self._start, parts, strict=True)]
        return (self._losses(moved) - self._before) / step

    def _losses(self, parameters: list[Tensor]) -> Tensor:
        """The mean loss of each group, with these parameters."""
        given = dict(zip(self._names, parameters, strict=True))
        with evaluating(self.model):
            if not self._together:
                with torch.no_grad():
                    each = [
                        functional_call(self._asked, given, (one,))
                        for one in groups(self._batch, self._sizes)
                    ]
                return torch.stack(each).double()
            # the loss is the sum of weights times losses, so its slope in a weight is that loss
            weight = shares(self._sizes).requires_grad_()
            total = functional_call(self._asked, given, (weighted(self._batch, weight),))
            (slopes,) = torch.autograd.grad(total, weight)
        parts = torch.split(slopes * weight.detach(), self._sizes)
        return torch.stack([some.sum() for some in parts])


class _Asked(nn.Module):
    """The loss of a model as a module, whose parameters can be given to it."""

    def __init__(self, model: nn.Module, base: Loss) -> None:
        super().__init__()
        self.model, self.base = model, base

    def forward(self, batch: Batch) -> Tensor:
        return self.base(self.model, batch)
