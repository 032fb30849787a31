"""MTL2L: an LSTM-optimiser that makes its own weights from what its learner is shown."""

from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.cells import LSTMState
from attractor.cells.base import positive
from attractor.cells.init import weights_
from attractor.errors import InputError
from attractor.optimisers.fused import Weights, has_kernel, step
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.preprocess import preprocess
from attractor.optimisers.rules.recurrent import head, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View

GATES = 4
"""Forget, input, output, candidate: the order in which weights are stacked."""
ORDER = [1, 0, 3, 2]
"""The gates of an `LSTMCell`: input, forget, candidate, output."""
SYNAPSES = 2
"""From the input and from the hidden state."""


class Sight(NamedTuple):
    """What a batch calls for: singular values, and the weights that have them."""

    values: Tensor
    weights: Tensor


class Spectrum(NamedTuple):
    """Singular values, averaged over time."""

    values: Tensor


class MTL2L(Rule):
    r"""Multi-task learning to learn: the context of the learner sets the LSTM's singular values.

    .. math::
        f_t, i_t, o_t &= \sigma(W_t^{(F,I,O)} x_t + U_t^{(F,I,O)} h_{t-1} + b_{F,I,O}) \\
        a_t &= \tanh(W_t^{(A)} x_t + U_t^{(A)} h_{t-1} + b_A) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t, \qquad h_t = o_t \odot \tanh(c_t) \\
        W_t &= Q \operatorname{diag}(N^{(1)}_t) P^\top, \qquad
        U_t = S \operatorname{diag}(N^{(2)}_t) J^\top \\
        N_t &= 0.9 N_{t-1} + 0.1 \, \text{MLP}(\xi_t), \quad N_0 = 0 \text{ (stable), or }
        N_t = \text{MLP}(\xi_t)

    :math:`x_t` of the first layer is a learned lift of the preprocessed gradient, :math:`\xi_t`
    the batch that the learner was shown, over which the MLP's output is averaged. Q, P, S and J
    are fixed orthogonal matrices, a pair for each gate; :math:`N` is shared by the four gates of a
    layer. The step is :math:`0.1 (w^\top h_t + b)`.

    Args:
        context_size: features of what the learner is shown.
        stable: average the singular values over time (scenario 2); ``False`` takes those of the
            batch alone (scenario 1).
        hidden_size: units of each layer.
        layers: how many.
        hyper_size: hidden units of the MLPs.
        scale: of the output.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights and the fixed matrices; ``None`` means torch's
            default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``; context ``(learners, batch,
        ...)`` with `context_size` features.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = MTL2L(context_size=3)(model.parameters())
        >>> x = torch.ones(2, 3)
        >>> model(x).sum().backward()
        >>> optimiser.step(context=x)

    Departs from the paper: the last linear layer starts at zero, as in `LSTMOptimiser`. The
    lift from 2 features to `hidden_size` has no bias and is not in the equations, which need it:
    the fixed matrices are square. It is that of the released code.

    References:
        Kuo et al. (2020), MTL2L: a context aware neural optimiser, arXiv:2007.09343, equations 9
        to 17; Kuo (2021), thesis, section 5.1.4.
    """

    key = "mtl2l"
    reference = "kuo2020mtl2l"
    silent = True
    needs_context = True

    fixed: Tensor

    def __init__(
        self,
        *,
        context_size: int = 784,
        stable: bool = True,
        hidden_size: int = 20,
        layers: int = 2,
        hyper_size: int = 32,
        scale: float = 0.1,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        for name in ("context_size", "hidden_size", "layers", "hyper_size"):
            positive(type(self), name, self.options[name])
        self.context_size, self.stable, self.scale, self.p = context_size, stable, scale, p
        self.hidden_size, self.layers = hidden_size, layers
        self.lift = head(2, hidden_size, generator, bias=False)
        self.bias = nn.Parameter(torch.zeros(layers, GATES * hidden_size))
        self.hyper = nn.ModuleList(
            nn.Sequential(
                head(context_size, hyper_size, generator),
                nn.ReLU(),
                head(hyper_size, hidden_size, generator),
            )
            for _ in range(layers * SYNAPSES)
        )
        self.head = silent(hidden_size, 1)
        # (layer, synapse, left or right factor, gate, row, column)
        factors = torch.empty(layers * SYNAPSES * 2 * GATES * hidden_size, hidden_size)
        weights_(factors, "orthogonal", hidden_size, generator)
        shape = (layers, SYNAPSES, 2, GATES, hidden_size, hidden_size)
        self.register_buffer("fixed", factors.reshape(shape))

    def init(self, params: Tensor, view: View) -> State:
        k, n = params.shape
        zeros = self.bias.new_zeros(k, self.hidden_size, n).mT  # unit by unit, as its kernel wants
        each = tuple(LSTMState(zeros.clone(), zeros.clone()) for _ in range(self.layers))
        values = self.bias.new_zeros(len(params), self.layers * SYNAPSES, self.hidden_size)
        return State(each, Spectrum(values) if self.stable else ())

    @property
    def streams(self) -> bool:
        return has_kernel(self.layers)

    def singular_values(self, context: Tensor | None, state: State) -> Tensor:
        """One value for each unit, of each synapse of each layer: ``(learners, synapses, units)``.

        Averaged over the batch, and over time if stable.
        """
        if context is None:
            raise InputError(
                "MTL2L expects to see what the learner was shown, but got no context. Try "
                "attach(rule, model), which shows it each training pass of the model, or "
                "optimiser.step(context=x)."
            )
        if context.dim() < 3 or not context.numel():
            raise InputError(
                "MTL2L expects a context (batch, ...) of at least one row, but got the shape "
                f"{tuple(context.shape[1:])}. Show it the batch that the learner was shown."
            )
        seen = context.flatten(2).to(self.bias.dtype)
        if seen.shape[-1] != self.context_size:
            raise InputError(
                f"MTL2L expects a context of {self.context_size} features, but got "
                f"{seen.shape[-1]}. Make the rule with context_size={seen.shape[-1]}."
            )
        values = torch.stack([hyper(seen).mean(1) for hyper in self.hyper], dim=1)
        return 0.9 * state.shared.values + 0.1 * values if self.stable else values

    def look(self, context: Tensor | None, state: State) -> Sight:
        values = self.singular_values(context, state)
        return Sight(values, self.synapses(values))

    def synapses(self, values: Tensor) -> Tensor:
        """All weights: ``(learners, layers, 2, gates, hidden_size, hidden_size)``."""
        left, right = self.fixed.unbind(2)
        scaled = left * values.view(len(values), self.layers, SYNAPSES, 1, 1, -1)
        # (right diag left^T), so that a row of states is multiplied from the left
        return torch.einsum("lsgij,klsghj->klsgih", right, scaled)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        seen = view.context
        values, weights = seen if isinstance(seen, Sight) else self.look(seen, state)
        shared = Spectrum(values) if self.stable else ()
        if (found := self._fused(weights, grads, state.each, view)) is not None:
            said, each = found
            return self.scale * said, State(each, shared)
        h = self.lift(preprocess(grads, self.p))
        after = []
        for layer, (before, c) in enumerate(state.each):
            W, U = weights[:, layer].unbind(1)
            b = self.bias[layer].view(GATES, 1, -1)
            f, i, o, a = (h[:, None] @ W + before[:, None] @ U + b).unbind(1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(a)
            h = torch.sigmoid(o) * torch.tanh(c)
            after.append(LSTMState(h, c))
        return self.scale * self.head(h).squeeze(-1), State(tuple(after), shared)

    def _fused(
        self, weights: Tensor, grads: Tensor, each: Any, view: View
    ) -> tuple[Tensor, tuple[LSTMState, ...]] | None:
        """What each learner's own weights say, by their kernel; None where there is none."""
        said, after = [], []
        for k, own in enumerate(weights):
            at = slice(k, k + 1)
            states = [s[at] for layer in each for s in layer]
            found = step(self._as_lstm(own), grads[at], states, self.p, overwrite=view.overwrite)
            if found is None:
                return None
            said.append(found[0])
            after.append(found[1])
        # joined unit by unit, which is how the next step wants them
        leaves = [
            one[0] if len(one) == 1 else torch.cat([s.mT for s in one]).mT
            for one in zip(*after, strict=True)
        ]
        layers = (LSTMState(*leaves[i : i + 2]) for i in range(0, len(leaves), 2))
        return torch.cat(said), tuple(layers)

    def _as_lstm(self, synapses: Tensor) -> Weights:
        """One learner's weights as those of an LSTM, whose first layer has the lift in it."""
        turned = synapses.mT[:, :, ORDER].flatten(2, 3)
        bias = self.bias.view(self.layers, GATES, -1)[:, ORDER].flatten(1)
        layers = [(W, U, b) for (W, U), b in zip(turned, bias, strict=True)]
        (first, U, b), *rest = layers
        head = (self.head.weight, self.head.bias)
        return Weights(((first @ self.lift.weight, U, b), *rest), head)
