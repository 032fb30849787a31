"""Masked MetaSGD: what learns slowly is removed."""

import torch
from torch import Generator, Tensor

from attractor.optimisers.dmsgd import DMSGD
from attractor.optimisers.rule import Rule, State


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
        size: as for `DMSGD`.
        hidden_size: units of each layer.
        layers: how many.
        rate: :math:`\beta^{sta}` before meta-training.
        gamma: the weight of the dynamic rates.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.

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

    def __init__(
        self,
        *,
        threshold: float = 0.0,
        size: int | None = None,
        hidden_size: int = 20,
        layers: int = 2,
        rate: float = 0.01,
        gamma: float = 1.0,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.inner = DMSGD(
            size=size,
            hidden_size=hidden_size,
            layers=layers,
            rate=rate,
            gamma=gamma,
            p=p,
            generator=generator,
        )
        self.size, self.threshold = size, threshold

    def init(self, params: Tensor) -> State:
        return self.inner.init(params)

    def update(
        self,
        grads: Tensor,
        state: State,
        params: Tensor,
        *,
        context: Tensor | None = None,
        where: slice = slice(None),
    ) -> tuple[Tensor, State]:
        rates, state = self.inner.rates(grads, state, where)
        # a step to exactly zero, whatever the rounding of a sum
        return torch.where(rates > self.threshold, -rates * grads, -params), state
