"""Dynamic MetaSGD: static rates, and what a recurrent network adds to them."""

import torch
from torch import Generator, Tensor, nn

from attractor.cells.base import positive
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.recurrent import CellStack, head
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class DMSGD(Rule):
    r"""Dynamic MetaSGD: rates that a recurrent network raises and lowers at each step.

    .. math::
        h_{t+1}, c_{t+1} &= \text{LSTM}(\text{preprocess}(\nabla_\theta L), h_t, c_t) \\
        \beta_{t+1} &= \text{ReLU}(\beta^{sta} + \gamma \tanh(U_\beta h_{t+1})) \\
        \theta_{t+1} &= \theta_t - \beta_{t+1} \odot \nabla_\theta L

    Args:
        size: the parameters of the network to be trained, each of which then has a static rate
            of its own, as in the thesis; ``None`` for one static rate for all, so that the rule
            goes on any network.
        hidden_size: units of each layer.
        layers: how many.
        rate: :math:`\beta^{sta}` before meta-training.
        gamma: the weight of the dynamic rates.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = DMSGD()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: the network reads the preprocessed gradient, as the LSTM-optimiser
    does; one static rate for all is ours.

    References:
        Kuo et al. (2020), M2SGD: learning to learn important weights; Kuo (2021), thesis,
        section 5.2.3.1, equations 5.14 to 5.17.
    """

    key = "dmsgd"
    reference = "kuo2020m2sgd"

    def __init__(
        self,
        *,
        size: int | None = None,
        hidden_size: int = 20,
        layers: int = 2,
        rate: float = 0.01,
        gamma: float = 1.0,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.size = None if size is None else positive(type(self), "size", size)
        self.gamma, self.p = gamma, p
        self.static = nn.Parameter(torch.full((1 if size is None else size,), rate))
        self.stack = CellStack("lstm", 2, hidden_size, layers=layers, generator=generator)
        self.head = head(hidden_size, 1, generator, bias=False)

    def init(self, params: Tensor, view: View) -> State:
        return State(self.stack.start(params))

    @property
    def streams(self) -> bool:
        return self.stack.streams

    def rates(self, grads: Tensor, state: State, view: View) -> Update:
        """The rates of this step, and the next state."""
        said, each = self.stack.read(grads, state.each, self.p, self.head, view)
        static = self.static if self.size is None else self.static[view.where]
        dynamic = torch.tanh(said)
        return torch.relu(static + self.gamma * dynamic), State(each)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        rates, state = self.rates(grads, state, view)
        return -rates * grads, state
