"""The mean of a model's weights over the updates of the end of a training."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attractor.state import Nested


class Average:
    r"""Averaged weights, which take the place of the last ones where a model is judged.

    .. math::
        \bar\theta_n = \bar\theta_{n-1} + \frac{\theta_n - \bar\theta_{n-1}}{n}

    Training itself goes on from :math:`\theta_n`.

    Args:
        model: whose weights.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> average = Average(model)
        >>> average.begin()
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = nn.init.constant_(model.weight, value)
        ...     average.update()
        >>> with average.used():
        ...     model.weight.item()
        3.0
        >>> model.weight.item()
        6.0

    Departs from the paper: nothing.

    References:
        Polyak and Juditsky (1992), Acceleration of stochastic approximation by averaging; Merity et
        al. (2018), Regularizing and optimizing LSTM language models, arXiv:1708.02182, section 3.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.mean: list[Tensor] | None = None
        self.count = 0

    @property
    def on(self) -> bool:
        """Whether weights are averaged."""
        return self.mean is not None

    @torch.no_grad()
    def begin(self) -> None:
        """Average from the next update on."""
        if self.mean is None:
            self.mean, self.count = [p.clone() for p in self.parameters], 0

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are into the mean, if there is one."""
        if self.mean is None:
            return
        self.count += 1
        for mean, parameter in zip(self.mean, self.parameters, strict=True):
            mean += (parameter - mean) / self.count

    @contextmanager
    def used(self) -> Iterator[None]:
        """The mean in the place of the weights for a while."""
        if self.mean is None:
            yield
            return
        last = [p.detach().clone() for p in self.parameters]
        self._put(self.mean)
        try:
            yield
        finally:
            self._put(last)

    def settle(self) -> None:
        """End with the mean as the weights."""
        if self.mean is not None:
            self._put(self.mean)
            self.mean = None

    @torch.no_grad()
    def _put(self, weights: list[Tensor]) -> None:
        for parameter, weight in zip(self.parameters, weights, strict=True):
            parameter.copy_(weight)

    def state_dict(self) -> Nested:
        """The mean and how many weights it is of."""
        return {"mean": self.mean, "count": self.count}

    def load_state_dict(self, state: Nested) -> None:
        """Go on with a mean."""
        mean = state["mean"]
        self.mean = None if mean is None else [one.clone() for one in mean]
        self.count = state["count"]
