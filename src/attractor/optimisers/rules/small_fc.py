"""small_fc: a small perceptron that reads 39 numbers of each parameter."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.features import factored, normalised, spread
from attractor.optimisers.rules.recurrent import head
from attractor.optimisers.state import State
from attractor.optimisers.view import View

TIMES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Updates over which time is told."""
MEMORIES, RMS_MEMORY = (0.9, 0.99, 0.999), 0.999
"""What the averages keep from one update to the next, before meta-training."""
FEATURES = 28 + len(TIMES)


class Averages(NamedTuple):
    """Of each coordinate: three momenta, squares, and the squares' means by row and column."""

    m: Tensor
    rms: Tensor
    row: Tensor
    column: Tensor


class Clock(NamedTuple):
    """Updates of each tensor so far."""

    t: Tensor


class SmallFC(Rule):
    r"""The perceptron of Metz et al. that serves every parameter, also known by muLO's weights.

    .. math::
        m^i_t &= \beta_i m^i_{t-1} + (1 - \beta_i) g_t, \qquad
        v_t = \beta v_{t-1} + (1 - \beta) g_t^2 \\
        r^i_t &= \gamma_i r^i_{t-1} + (1 - \gamma_i) \text{mean}_{col}(g_t^2), \qquad
        c^i_t = \gamma_i c^i_{t-1} + (1 - \gamma_i) \text{mean}_{row}(g_t^2) \\
        f^i &= (r^i / \text{mean}(r^i))^{-1/2} (c^i)^{-1/2} \\
        x &= [g, \theta, m^i, v, m^i v^{-1/2}, v^{-1/2}, f^i g, r^i, c^i, (r^i)^{-1/2},
        (c^i)^{-1/2}, f^i m^i] \\
        d, \ell &= \text{MLP}\left(\left[x / \sqrt{\text{mean}(x^2) + 10^{-5}}, \;
        \tanh(t / \tau_k - 1)\right]\right) \\
        \theta_{t+1} &= \theta_t - \alpha \, d \, e^{\lambda \ell}

    with i = 1, 2, 3, so that the perceptron reads 28 numbers of a parameter, in units of their
    size in its tensor, and the time in eleven. The rows and columns of a tensor are those of its
    two largest dimensions; of a vector, r and c are an average of :math:`g^2` itself. Memories
    begin at 0.9, 0.99 and 0.999 and are learnt: :math:`1 - \beta` is multiplied by
    :math:`e^{10 b}`.

    Args:
        hidden_size: units of each hidden layer.
        layers: hidden layers.
        scale: :math:`\alpha`.
        exponent: :math:`\lambda`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = SmallFC()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: nothing but that the averages of rows and columns are kept for each
    parameter, which takes more memory and gives the same numbers, and that initial weights are
    uniform. In muLO the rates of matrices are divided by how much wider they are than those of
    meta-training: give them a parameter group with that ``lr``.

    References:
        Metz et al. (2022), Practical tradeoffs between memory, compute, and performance in learned
        optimizers, arXiv:2203.11860, appendix A; Thérien et al. (2024), μLO, arXiv:2406.00153.
    """

    key = "small_fc"
    reference = "metz2022practical"
    tensorwise = True

    def __init__(
        self,
        *,
        hidden_size: int = 4,
        layers: int = 2,
        scale: float = 0.001,
        exponent: float = 0.001,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        units, count = whole("hidden_size", hidden_size, 1), whole("layers", layers, 1)
        self.scale, self.exponent = scale, exponent
        sizes = [FEATURES, *[units] * count]
        hidden = [head(a, b, generator) for a, b in pairwise(sizes)]
        self.layers = nn.ModuleList([*hidden, head(units, 2, generator)])
        self.momentum_decays = nn.Parameter(torch.zeros(3))
        self.rms_decays = nn.Parameter(torch.zeros(1))
        self.adafactor_decays = nn.Parameter(torch.zeros(3))

    def init(self, params: Tensor, view: View) -> State:
        three, one = (params.new_zeros(*params.shape, k) for k in (3, 1))
        clock = Clock(params.new_zeros(len(params), len(view.parts())))
        return State(Averages(three, one, three, three), clock)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        t = state.shared.t
        forget = forgotten(self.momentum_decays, MEMORIES)
        g = grads[..., None]
        m = torch.lerp(state.each.m, g.expand_as(state.each.m), forget)
        rms = torch.lerp(state.each.rms, g.square(), forgotten(self.rms_decays, (RMS_MEMORY,)))
        row, column, of_g, of_m = factored(
            state.each.row,
            state.each.column,
            g.square() + 1e-30,
            forgotten(self.adafactor_decays, MEMORIES),
            view,
            lambda v: (v + 1e-6).rsqrt(),
        )
        small = (rms + 1e-6).rsqrt()
        seen = [g, params[..., None], m, rms, m * small, small, g * of_g, row, column]
        seen += [(row + 1e-8).rsqrt(), (column + 1e-8).rsqrt(), m * of_m]
        time = torch.tanh(t[..., None] / t.new_tensor(TIMES) - 1)
        x = torch.cat([normalised(torch.cat(seen, -1), view), spread(time, view)], -1)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        said = self.layers[-1](x)
        step = -self.scale * said[..., 0] * torch.exp(self.exponent * said[..., 1])
        return step, State(Averages(m, rms, row, column), Clock(t + 1))


def forgotten(decays: Tensor, memories: tuple[float, ...]) -> Tensor:
    r"""What averages forget in an update: :math:`(1 - \beta) e^{10 b}`, between 0 and 1."""
    begin = decays.new_tensor([1 - memory for memory in memories])
    return (begin * torch.exp(10 * decays)).clamp(0, 1)
