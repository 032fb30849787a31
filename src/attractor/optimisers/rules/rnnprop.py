"""RNNprop: a recurrent network that reads what Adam makes of gradients."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.cells.base import positive
from attractor.errors import InputError
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.recurrent import CellStack, head, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View

EPSILON = 1e-7


class Moments(NamedTuple):
    """Of each coordinate: Adam's two averages, and the states of the layers."""

    m: Tensor
    v: Tensor
    layers: Any


class Clock(NamedTuple):
    """Updates so far."""

    t: Tensor


class RNNprop(Rule):
    r"""RNNprop: steps from gradients and momenta in units of their own size.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) \nabla_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) \nabla_t^2 \\
        x_t &= \text{ELU}\left(A \, [\nabla_t, \hat m_t] / \sqrt{\hat v_t + \epsilon^2} + a\right)
        \\
        h_t, s_t &= \text{LSTM}(x_t, s_{t-1}) \\
        \theta_{t+1} &= \theta_t - \alpha \tanh(w^\top h_t + b)

    Hats are Adam's corrections for the start at zero. What the network reads does not change if
    the loss is multiplied by a number, and no step is larger than :math:`\alpha`. The same layers
    serve every coordinate, each with a state of its own.

    Args:
        hidden_size: units of each layer, and numbers that it reads.
        layers: how many.
        scale: :math:`\alpha`.
        beta1: :math:`\beta_1`, below 1.
        beta2: :math:`\beta_2`, below 1.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = RNNprop()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: the last linear layer starts at zero, as for `LSTMOptimiser`; and
    :math:`\epsilon` is under the root, so that second derivatives at a gradient of zero are finite.
    Random scaling of learners, with which the paper trains it, is ``stretch`` of a `Distribution`;
    its convex functions beside the learner's are not here.

    References:
        Lv et al. (2017), Learning gradient descent: better generalization and longer horizons,
        arXiv:1703.03633, section 4.
    """

    key = "rnnprop"
    reference = "lv2017learning"
    silent = True

    def __init__(
        self,
        *,
        hidden_size: int = 20,
        layers: int = 2,
        scale: float = 0.1,
        beta1: float = 0.95,
        beta2: float = 0.95,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= value < 1:
                raise InputError(
                    f"RNNprop expects {name} to be at least 0 and below 1, but got {value}. Try "
                    f"{name}=0.95."
                )
        self.scale, self.beta1, self.beta2 = scale, beta1, beta2
        units = positive(type(self), "hidden_size", hidden_size)
        self.lift = head(2, units, generator)
        self.stack = CellStack("lstm", units, units, layers=layers, generator=generator)
        self.head = silent(units, 1)

    def init(self, params: Tensor, view: View) -> State:
        zeros = torch.zeros_like(params)
        moments = Moments(m=zeros, v=zeros, layers=self.stack.start(params))
        return State(moments, Clock(params.new_zeros(len(params))))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        m, v, layers = state.each
        t = state.shared.t[:, None] + 1
        m = torch.lerp(m, grads, 1 - self.beta1)
        v = self.beta2 * v + (1 - self.beta2) * grads.square()  # stays infinite once it is
        scale = (v / (1 - self.beta2**t) + EPSILON**2).rsqrt()
        pair = torch.stack([grads * scale, m / (1 - self.beta1**t) * scale], dim=-1)
        h, layers = self.stack(F.elu(self.lift(pair)), layers)
        said = self.head(h).squeeze(-1)
        return -self.scale * torch.tanh(said), State(Moments(m, v, layers), Clock(t[:, 0]))
