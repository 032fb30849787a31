"""Masked MetaSGD as it was released: one recurrent network for all parameters."""

import torch
from torch import Generator, Tensor, nn

from attractor.cells.base import positive
from attractor.cells.init import uniform_
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.m2sgd import masked
from attractor.optimisers.rules.preprocess import preprocess
from attractor.optimisers.rules.recurrent import CellStack
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class GlobalM2SGD(Rule):
    r"""Masked MetaSGD with one LSTM that reads a whole learner and names a rate for each parameter.

    .. math::
        x_t &= V \, [\text{preprocess}(\nabla_\theta L), \theta_t, \nabla_\theta L,
        \text{ReLU}(\beta^{sta})] \, v \\
        h_{t+1}, c_{t+1} &= \text{LSTM}(x_t, h_t, c_t) \\
        \beta_{t+1} &= \text{ReLU}(\beta^{sta} + \tanh(U_\beta h_{t+1} + b)) \\
        \theta_{t+1} &= (\theta_t - \beta_{t+1} \odot \nabla_\theta L) \odot
        \max(0, \operatorname{sgn}(\beta_{t+1} - U))

    :math:`V` takes r numbers to `hidden_size` and :math:`v` five to one, both with biases. Each
    parameter has a row of :math:`U_\beta` of its own, which is random before meta-training: about
    half of the rates are then zero, whatever the gradients are. `M2SGD` is the form of the thesis.

    Args:
        size: r, the parameters of the network to be trained; it goes on no other size.
        threshold: U; a negative one removes nothing, which is DMSGD as it was released.
        hidden_size: units of the LSTM.
        rate: :math:`\beta^{sta}` before meta-training.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, size)``.

    Example:
        >>> model = torch.nn.Linear(30, 1)
        >>> optimiser = GlobalM2SGD(size=31)(model.parameters())
        >>> model(torch.ones(2, 30)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: nothing that the released script has; the paper and the thesis say that
    the LSTM is coordinate-wise.

    References:
        Kuo et al. (2020), M2SGD: learning to learn important weights, and its released script.
    """

    key = "m2sgd_global"
    reference = "kuo2020m2sgd"
    prunes = True
    whole = True

    def __init__(
        self,
        *,
        size: int,
        threshold: float = 0.0,
        hidden_size: int = 20,
        rate: float = 0.001,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.size = positive(type(self), "size", size)
        self.threshold, self.p = threshold, p
        self.static = nn.Parameter(torch.full((size,), rate))
        self.down = nn.Linear(size, hidden_size)
        self.mix = nn.Linear(5, 1)
        self.stack = CellStack("lstm", hidden_size, hidden_size, layers=1, generator=generator)
        self.up = nn.Linear(hidden_size, size)
        for layer in (self.down, self.mix, self.up):
            for parameter in layer.parameters():
                uniform_(parameter, layer.in_features**-0.5, generator)

    def init(self, params: Tensor, view: View) -> State:
        return State(shared=self.stack.start(params[:, :1]))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        static = torch.relu(self.static).expand_as(grads)
        features = (*preprocess(grads, self.p).unbind(-1), params, grads, static)
        x = self.mix(self.down(torch.stack(features, dim=-2)).mT).mT
        h, shared = self.stack(x, state.shared)
        rates = torch.relu(self.static + torch.tanh(self.up(h[:, 0])))
        return masked(rates, grads, params, self.threshold), State(shared=shared)
