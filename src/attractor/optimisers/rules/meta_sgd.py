"""MetaSGD: one learned rate for each parameter."""

import torch
from torch import Tensor, nn

from attractor.cells.base import positive
from attractor.optimisers.rule import Numbers, Rule, Update
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class MetaSGD(Rule):
    r"""Gradient descent with a learned rate for each parameter.

    .. math::
        \theta_{t+1} = \theta_t - \beta \odot \nabla_\theta L

    Args:
        size: the parameters of the network to be trained; it goes on no other size.
        rate: :math:`\beta` before meta-training.

    Shape:
        gradients, parameters and steps ``(learners, size)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = MetaSGD(size=4)(model.parameters())
        >>> model(torch.ones(1, 3)).sum().backward()
        >>> before = model.bias.item()
        >>> optimiser.step()
        >>> round(before - model.bias.item(), 4)
        0.01

    Departs from the paper: nothing.

    References:
        Li et al. (2017), Meta-SGD: learning to learn quickly for few-shot learning,
        arXiv:1707.09835; Kuo (2021), thesis, equation 5.11.
    """

    key = "meta_sgd"
    reference = "li2017meta"

    def __init__(self, *, size: int, rate: float = 0.01) -> None:
        super().__init__()
        self.size = positive(type(self), "size", size)
        self.rates = nn.Parameter(torch.full((size,), rate))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        return -self.rates[view.where] * grads, state

    def numbers(self) -> Numbers:
        return Numbers([], self.rates.contiguous())
