"""The IHC-LSTM-optimiser."""

from torch import Generator, Tensor

from attractor.optimisers.lstm import LSTMOptimiser
from attractor.optimisers.rule import Rule, State


class IHCLSTMOptimiser(Rule):
    r"""The LSTM-optimiser with an input highway connection: fewer weights, the same place.

    .. math::
        h_t, s_t = \text{IHC-LSTM}(\text{preprocess}(\nabla_\theta L), s_{t-1}), \qquad
        \theta_{t+1} = \theta_t + 0.1 \, (w^\top h_t + b)

    Args:
        hidden_size: units of each layer.
        layers: how many.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> rule = IHCLSTMOptimiser()
        >>> sum(p.numel() for p in rule.inner.stack.cells[1].parameters())
        2820

    Departs from the paper: nothing; the 2,820 parameters that it counts are those of one layer
    of 20 inputs and 20 units.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, section V-C.
    """

    key = "ihc_lstm"
    reference = "kuo2020input"

    def __init__(
        self, *, hidden_size: int = 20, layers: int = 2, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.inner = LSTMOptimiser(
            cell="ihc_lstm", hidden_size=hidden_size, layers=layers, generator=generator
        )

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
        return self.inner.update(grads, state, params)
