"""Masked MetaSGD: what learns slowly is removed."""

from typing import Any

import torch
from torch import Tensor

from attractor.optimisers.rule import Rule, Update, takes_options_of
from attractor.optimisers.rules.dmsgd import DMSGD
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class M2SGD(Rule):
    r"""Masked MetaSGD: a parameter whose rate is not above a threshold becomes zero.

    .. math::
        \theta_{t+1} &= (\theta_t - \beta_{t+1} \odot \nabla_\theta L) \odot m_{t+1},
        \qquad \beta \text{ as in DMSGD} \\
        m_{n,t+1} &= \max(0, \operatorname{sgn}(\beta_{n,t+1} - U))

    What was removed comes back when its rate rises above the threshold again. `sparsity` says how
    much of a network is gone, and `save_sparse` writes what is left.

    Args:
        threshold: U.
        options: those of `DMSGD`.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(30, 1)
        >>> optimiser = M2SGD(threshold=0.02)(model.parameters())
        >>> model(torch.ones(2, 30)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: nothing. The mask has the derivative of sgn, which is zero: in
    meta-training a gradient reaches the rates through the parameters that are kept.

    References:
        Kuo et al. (2020), M2SGD: learning to learn important weights; Kuo (2021), thesis,
        section 5.2.3.2, equations 5.18 and 5.19.
    """

    key = "m2sgd"
    reference = "kuo2020m2sgd"
    prunes = True

    @takes_options_of(DMSGD)
    def __init__(self, *, threshold: float = 0.0, **options: Any) -> None:
        super().__init__()
        self.inner = DMSGD(**options)
        self.size, self.threshold = self.inner.size, threshold

    def init(self, params: Tensor, view: View) -> State:
        return self.inner.init(params, view)

    @property
    def streams(self) -> bool:
        return self.inner.streams

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        rates, state = self.inner.rates(grads, state, view)
        return masked(rates, grads, params, self.threshold), state


def masked(rates: Tensor, grads: Tensor, params: Tensor, threshold: float) -> Tensor:
    """The step of a rate above the threshold; of another, the one to zero.

    Example:
        >>> masked(torch.tensor([0.5, 0.1]), torch.ones(2), torch.full((2,), 3.0), 0.1)
        tensor([-0.5000, -3.0000])
    """
    # exactly to zero, whatever the rounding of a sum
    return torch.where(rates > threshold, -rates * grads, -params)
