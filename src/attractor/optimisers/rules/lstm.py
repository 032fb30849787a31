"""The LSTM-optimiser, with any cell in the LSTM's place."""

from typing import Any

from torch import Generator, Tensor, nn

from attractor.cells import LSTMCell
from attractor.cells.base import positive
from attractor.errors import InputError
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.recurrent import CellStack, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View


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
        narrow: the last layer has one unit, whose output is the step, and no linear layer follows;
            the input gates of an LSTM start at a bias of -1. No step is then larger than `scale`.
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
    nothing. The released script of the thesis has a second layer of one unit and no linear layer
    (``narrow``); the equations and the original paper have 20 and one.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474; Kuo (2021), thesis, section 3.2.5.
    """

    key = "lstm"
    reference = "andrychowicz2016learning"
    silent = True

    def __init__(
        self,
        *,
        cell: str = "lstm",
        hidden_size: int = 20,
        layers: int = 2,
        scale: float = 0.1,
        narrow: bool = False,
        p: float = 10.0,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.scale, self.p = scale, p
        for name in ("device", "dtype"):
            if name in options:
                raise InputError(
                    f"expected options of the cell, but got {name}, which is the whole rule's. Try "
                    f"LSTMOptimiser(...).to({options[name]!r})."
                )
        units = [hidden_size] * positive(type(self), "layers", layers)
        if narrow:
            units[-1] = 1
        try:
            self.stack = CellStack(cell, 2, units, generator=generator, **options)
        except TypeError as error:
            raise InputError(
                f"expected options that the optimiser lstm takes, or its cell {cell}, but got "
                f"{options}: {error}. See docs/optimisers.md."
            ) from error
        self.head = None if narrow else silent(hidden_size, 1)
        for one in self.stack.cells if narrow else ():
            if isinstance(one, LSTMCell) and one.bias is not None:
                nn.init.constant_(one.bias[: one.hidden_size], -1.0)

    def init(self, params: Tensor, view: View) -> State:
        return State(self.stack.start(params))

    @property
    def streams(self) -> bool:
        return self.stack.streams

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        said, each = self.stack.read(grads, state.each, self.p, self.head, view)
        return self.scale * said, State(each)
