"""One recurrent network for all parameters at once: the form of the DecayNet paper."""

from typing import Any

from torch import Generator, Tensor

from attractor.cells import layer_norm
from attractor.cells.base import positive
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.decaynet import rewound
from attractor.optimisers.rules.preprocess import preprocess
from attractor.optimisers.rules.recurrent import CellStack, head, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View


class GlobalOptimiser(Rule):
    r"""A recurrent network that reads all of a learner and names a rate for each parameter.

    .. math::
        x_t &= D (\theta_t \odot G_t), \qquad G_t \text{ the product of the preprocessed pair} \\
        h_t, s_t &= \text{DecayNet}^n(x_t, s_{t-1}) \text{, its } W x \text{ and } U h
            \text{ layer-normalised} \\
        \theta_{t+1} &= \theta_t - (E h_t) \odot \nabla_\theta L

    :math:`D` takes the r parameters to 28 numbers, and :math:`E` takes 64 hidden units to r rates.

    Args:
        size: r, the parameters of the network to be trained; it goes on no other size.
        cell: a key of ``CELLS``: ``"decaynet"``, or ``"lstm"``, its rival in the paper, which takes
            one step at a time (``iterations=1``).
        reduced_size: the numbers that the cell reads.
        hidden_size: units of the cell.
        iterations: n, the internal steps.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, size)``.

    Example:
        >>> rule = GlobalOptimiser(size=15_910)
        >>> sum(p.numel() for p in rule.parameters()) > 92 * 15_910
        True

    Departs from the paper: the rates start at zero, as the weights of :math:`E` do, so that an
    untrained rule moves nothing.

    References:
        Kuo et al. (2018), DecayNet: a study on the cell states of long short term memories,
        section 6.2, appendices D and E.
    """

    key = "global"
    reference = "kuo2018decaynet"
    silent = True
    whole = True

    def __init__(
        self,
        *,
        size: int,
        cell: str = "decaynet",
        reduced_size: int = 28,
        hidden_size: int = 64,
        iterations: int = 2,
        p: float = 10.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.size = positive(type(self), "size", size)
        self.iterations, self.p = positive(type(self), "iterations", iterations), p
        options: dict[str, Any] = {"length": iterations} if cell == "decaynet" else {}
        self.down = head(size, reduced_size, generator, bias=False)
        self.stack = CellStack(
            layer_norm(cell), reduced_size, hidden_size, layers=1, generator=generator, **options
        )
        # two layer norms, of W x and of U h: none of the cell state
        self.stack.cells[0].norm_c = None  # type: ignore[assignment]
        self.up = silent(hidden_size, size, bias=False)

    def init(self, params: Tensor, view: View) -> State:
        return State(shared=self.stack.start(params[:, :1]))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        x = self.down(params * preprocess(grads, self.p).prod(-1))[:, None]
        shared = rewound(state.shared)
        h, shared = self.stack(x, shared, self.iterations)
        return -self.up(h[:, 0]) * grads, State(shared=shared)
