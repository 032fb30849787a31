"""The DecayNet-optimiser: learning rates from a network that decays anew at each step."""

from typing import Any

import torch
from torch import Generator, Tensor

from attractor.cells.base import positive
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.preprocess import preprocess
from attractor.optimisers.rules.recurrent import CellStack, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View


def rewound(states: Any) -> Any:
    """The states of DecayNet cells with their forget gates open again."""
    return tuple(
        state._replace(fall=torch.zeros_like(state.fall)) if hasattr(state, "fall") else state
        for state in states
    )


class DecayNetOptimiser(Rule):
    r"""DecayNet as an optimiser: it runs a few steps of its own, then names a learning rate.

    .. math::
        p &\leftarrow \tfrac{\pi}{2} \\
        h_{t-1+k/n}, s_{t-1+k/n} &= \text{DecayNet}(\text{preprocess}(\nabla_\theta L),
        s_{t-1+(k-1)/n}), \quad k = 1, \ldots, n \\
        \alpha_t &= w^\top h_t + b, \qquad \theta_{t+1} = \theta_t - \alpha_t \odot \nabla_\theta L

    The same layers serve every coordinate, each with a state of its own.

    Args:
        hidden_size: units of each layer.
        layers: how many.
        iterations: n; the length over which the forget gate decays.
        rate: the learning rate of a rule that has learnt nothing, the initial :math:`b`.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = DecayNetOptimiser()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: the thesis writes the recurrent network without sizes; they are those
    of the LSTM-optimiser, one network for each coordinate. The paper's own form, one network for
    all parameters, is `GlobalOptimiser`. An untrained rule has the
    rate 0.01 for all, and the cell's weights start as in torch.nn: so the first learners are not
    pushed in a random direction.

    References:
        Kuo (2021), thesis, section 4.1.6.2, equations 4.1 to 4.3; Kuo et al. (2018), DecayNet: a
        study on the cell states of long short term memories, section 6.2.
    """

    key = "decaynet"
    reference = "kuo2018decaynet"

    def __init__(
        self,
        *,
        hidden_size: int = 20,
        layers: int = 2,
        iterations: int = 2,
        rate: float = 0.01,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.iterations, self.p = positive(type(self), "iterations", iterations), p
        self.stack = CellStack(
            "decaynet",
            2,
            hidden_size,
            layers=layers,
            length=iterations,
            input_init="uniform",
            recurrent_init="uniform",
            generator=generator,
        )
        self.head = silent(hidden_size, 1)
        torch.nn.init.constant_(self.head.bias, rate)

    def init(self, params: Tensor, view: View) -> State:
        return State(self.stack.start(params))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        x = preprocess(grads, self.p)
        each = rewound(state.each)
        h, each = self.stack(x, each, self.iterations)
        return -self.head(h).squeeze(-1) * grads, State(each)
