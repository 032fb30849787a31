"""The LSTM-optimiser, with any cell in the LSTM's place."""

from typing import Any

from torch import Generator, Tensor

from attractor.optimisers.preprocess import preprocess
from attractor.optimisers.recurrent import CellStack, silent
from attractor.optimisers.rule import Rule, State


class LSTMOptimiser(Rule):
    r"""The LSTM-optimiser: a small recurrent network that turns gradients into steps.

    .. math::
        x_t &= \text{preprocess}(\nabla_\theta L) \\
        h_t, s_t &= \text{LSTM}(x_t, s_{t-1}) \\
        \theta_{t+1} &= \theta_t + 0.1 \, (w^\top h_t + b)

    The same two layers serve every coordinate, each with a state of its own.

    Args:
        cell: a key of ``CELLS``: what takes the LSTM's place.
        hidden_size: units of each layer.
        layers: how many.
        scale: of the output.
        p: gradients below :math:`e^{-p}` count as small; see `preprocess`.
        generator: draws the initial weights; ``None`` means torch's default generator.
        options: go to the cell.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = LSTMOptimiser()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: the linear layer starts at zero. With the random start of nn.Linear the
    first learners are pushed all one way, and in 100 meta-updates the rule then learns to do
    nothing. The released script of the thesis has a second layer of one
    unit and no linear layer; the equations and the original paper have 20 and one.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474; Kuo (2021), thesis, section 3.2.5.
    """

    key = "lstm"
    reference = "andrychowicz2016learning"

    def __init__(
        self,
        *,
        cell: str = "lstm",
        hidden_size: int = 20,
        layers: int = 2,
        scale: float = 0.1,
        p: float = 10.0,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.scale, self.p = scale, p
        self.stack = CellStack(cell, 2, hidden_size, layers=layers, generator=generator, **options)
        self.head = silent(hidden_size, 1)

    def init(self, params: Tensor) -> State:
        return State(self.stack.start(params))

    def update(
        self,
        grads: Tensor,
        state: State,
        params: Tensor,
        *,
        context: Tensor | None = None,
        where: slice = slice(None),
    ) -> tuple[Tensor, State]:
        h, each = self.stack(preprocess(grads, self.p), state.each)
        return self.scale * self.head(h).squeeze(-1), State(each)
