"""The IHC-LSTM-optimiser."""

from typing import Any

from torch import Tensor

from attractor.errors import InputError
from attractor.optimisers.rule import Rule, Update, takes_options_of
from attractor.optimisers.rules.lstm import LSTMOptimiser
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class IHCLSTMOptimiser(Rule):
    r"""The LSTM-optimiser with an input highway connection: fewer weights, the same place.

    .. math::
        h_t, s_t = \text{IHC-LSTM}(\text{preprocess}(\nabla_\theta L), s_{t-1}), \qquad
        \theta_{t+1} = \theta_t + 0.1 \, (w^\top h_t + b)

    Args:
        options: those of `LSTMOptimiser`, but for `cell`; what it does not know goes to the cell.

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
    silent = True

    @takes_options_of(LSTMOptimiser, but="cell")
    def __init__(self, **options: Any) -> None:
        super().__init__()
        if "cell" in options:
            raise InputError(
                f"expected no cell, for IHCLSTMOptimiser has its own, but got {options['cell']!r}. "
                f"Try LSTMOptimiser(cell={options['cell']!r})."
            )
        self.inner = LSTMOptimiser(cell="ihc_lstm", **options)

    def init(self, params: Tensor, view: View) -> State:
        return self.inner.init(params, view)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        return self.inner.update(grads, state, params, view)
