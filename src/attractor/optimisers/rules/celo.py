"""Celo: a perceptron that serves every parameter, and a recurrent network that schedules it."""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.features import factored, means, normalised, spread
from attractor.optimisers.rules.recurrent import head, silent
from attractor.optimisers.rules.small_fc import MEMORIES, RMS_MEMORY, Averages
from attractor.optimisers.state import State
from attractor.optimisers.view import View

FEATURES = 30
PLACES = (0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1)
"""Shares of a training near which the scheduler can tell where it is."""
AVERAGES = 10
"""Of the loss, over ten updates to the whole horizon."""
LARGEST = 1000.0
SMALL_STEP = 0.001


class Course(NamedTuple):
    """Of each tensor: updates so far, the scheduler's state, and averages of the loss."""

    t: Tensor
    hidden: Tensor
    cell: Tensor
    loss: Tensor
    lowest: Tensor


class Celo(Rule):
    r"""The learned optimiser of Moudgil et al., which can take the weights that they published.

    .. math::
        x &= [g, [g]_{\pm 0.1}, \theta, m^i, v, m^i v^{-1/2}, v^{-1/2}, f^i g, g v^{-1/2}, r^i, c^i,
        (r^i)^{-1/2}, (c^i)^{-1/2}, f^i m^i] \\
        d, \ell &= \text{MLP}\left(x / \sqrt{\text{mean}(x^2) + 10^{-5}}\right) \\
        \theta_{t+1} &= \theta_t - 10^{-3} \, a_t \sqrt{\text{mean}(\theta_t^2) + 10^{-9}} \; d \,
        e^{\ell / 1000}

    with the averages m, v, r, c and f of `SmallFC`, whose memories are fixed, so that the
    perceptron reads 30 numbers of a parameter, in units of their size in its tensor. A scheduler
    says a:

    .. math::
        y_t &= \left[\tanh 10 \left(\tfrac{t}{T} - p_k\right), \;
        \left[\frac{\bar L^j_t - \min_s \bar L^j_s}{\bar L^{j+1}_t - \min_s \bar L^j_s} - 1
        \right]_{\pm 1}\right] \\
        h_t &= \text{LSTM}(W y_t + b + \text{relu}(V y_t + c), \; h_{t-1}), \qquad
        a_t = \tfrac{1}{10} e^{u^\top h_t + e}

    from how much of a training of T updates is over, at nine places p, and from ten averages
    :math:`\bar L^j` of the loss, over 10 to T updates. A loss of more than twice the largest
    average counts as that; the second part of y is zero in the first two updates. Gradients are cut
    at :math:`\pm 1000`.

    The loss is what a closure returns: ``optimiser.step(lambda: loss)``. Where none is told it
    counts as constant, as in the authors' option of that name.

    Args:
        horizon: T, the updates of the training.
        hidden_size: units of each hidden layer of the perceptron.
        scheduler_size: units of the LSTM.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = Celo(horizon=100)(model.parameters())
        >>> loss = model(torch.ones(2, 3)).sum()
        >>> loss.backward()
        >>> optimiser.step(lambda: loss) is loss
        True

    Departs from the paper: nothing that changes its numbers. The released code has a scheduler for
    each tensor, mixed with those of the others by their largest values; all read the same and begin
    alike, so that they say the same, and here each tensor's goes by itself. What the released
    weights have and do not use (the first layer of the mixture, one set of weights to choose from,
    a third number that the perceptron says) is left out.

    References:
        Moudgil et al. (2025), Celo: training versatile learned optimizers on a compute diet,
        arXiv:2501.12670, with the constants of the released code.
    """

    key = "celo"
    reference = "moudgil2025celo"
    tensorwise = True
    needs_loss = True

    def __init__(
        self,
        *,
        horizon: int = 1000,
        hidden_size: int = 4,
        scheduler_size: int = 64,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.horizon: int = whole("horizon", horizon, 1)
        units = whole("hidden_size", hidden_size, 1)
        memory = whole("scheduler_size", scheduler_size, 1)
        sizes = [FEATURES, units, units]
        hidden = [head(a, b, generator) for a, b in pairwise(sizes)]
        self.layers = nn.ModuleList([*hidden, head(units, 2, generator)])
        told = len(PLACES) + AVERAGES - 1
        self.read, self.mix = head(told, memory, generator), head(told, memory, generator)
        self.gates = head(2 * memory, 4 * memory, generator)
        self.rate = silent(memory, 1)
        self.hidden = nn.Parameter(torch.zeros(memory))
        self.cell = nn.Parameter(torch.zeros(memory))

    def init(self, params: Tensor, view: View) -> State:
        return begun(params, view, self.hidden, self.cell)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        x, each = perceived(grads, state.each, params, view)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        direction, power = self.layers[-1](x).unbind(-1)
        course, rate = self.scheduled(state.shared, view.loss)
        return moved(direction, power, rate, params, view), State(each, course)

    def scheduled(self, old: Course, loss: Tensor | None) -> tuple[Course, Tensor]:
        """The course of each tensor after one more update, and what its steps are multiplied by.

        Shape:
            loss ``(learners,)``; the rates ``(learners, tensors)``.
        """
        y, course = heard(old, loss, self.horizon)
        x = self.read(y) + torch.relu(self.mix(y))
        hidden, cell = remembered(self.gates(torch.cat([x, old.hidden], -1)), old.cell)
        rate = 0.1 * self.rate(hidden)[..., 0].exp()
        return course._replace(hidden=hidden, cell=cell), rate


def begun(params: Tensor, view: View, hidden: Tensor, cell: Tensor) -> State:
    """No averages and no losses yet, and a scheduler of each tensor that begins there."""
    three, one = (params.new_zeros(*params.shape, k) for k in (3, 1))
    clock = params.new_zeros(len(params), len(view.parts()))
    loss = clock.new_zeros(*clock.shape, AVERAGES)
    hidden, cell = (begin.expand(*clock.shape, -1).clone() for begin in (hidden, cell))
    course = Course(clock, hidden, cell, loss, torch.full_like(loss, 1e12))
    return State(Averages(three, one, three, three), course)


def perceived(grads: Tensor, old: Averages, params: Tensor, view: View) -> tuple[Tensor, Averages]:
    """What the perceptron reads of each coordinate, and the next averages.

    Shape:
        grads and params ``(learners, coordinates)``; the first result has 30 numbers of each.
    """
    g = grads.clamp(-LARGEST, LARGEST)[..., None]
    forget = g.new_tensor([1 - memory for memory in MEMORIES])
    m = torch.lerp(old.m, g.expand_as(old.m), forget)
    rms = torch.lerp(old.rms, g.square(), 1 - RMS_MEMORY)
    row, column, of_g, of_m = factored(
        old.row,
        old.column,
        g.square() + 1e-30,
        forget,
        view,
        lambda v: v.clamp(min=1e-23).rsqrt(),  # of less, derivatives are not finite
    )
    small = (rms + 1e-6).rsqrt()
    seen = [g, g.clamp(-0.1, 0.1), params[..., None], m, rms, m * small, small, g * of_g]
    seen += [g * small, row, column, (row + 1e-8).rsqrt(), (column + 1e-8).rsqrt(), m * of_m]
    return normalised(torch.cat(seen, -1), view), Averages(m, rms, row, column)


def heard(old: Course, loss: Tensor | None, horizon: int) -> tuple[Tensor, Course]:
    """How far a training is and how its loss went, and the course with one more loss.

    Shape:
        loss ``(learners,)``; the first result has 18 numbers of each tensor.
    """
    average, lowest, seen = losses(old, loss, horizon)
    place = torch.tanh(10 * (old.t[..., None] / horizon - old.t.new_tensor(PLACES)))
    return torch.cat([place, seen], -1), old._replace(t=old.t + 1, loss=average, lowest=lowest)


def losses(old: Course, loss: Tensor | None, horizon: int) -> tuple[Tensor, Tensor, Tensor]:
    """Averages of the loss, 1 if it is not told, their lowest values, and what is read of them."""
    t = old.t[..., None] + 1
    spans = torch.logspace(1, math.log10(horizon), AVERAGES, dtype=t.dtype)
    memory = torch.exp(-1 / spans.to(t.device))
    whole = 1 - memory**t
    now = torch.ones_like(t) if loss is None else loss.to(t)[:, None, None].expand_as(t)
    largest = (old.loss / whole).amax(-1, keepdim=True).abs() * 2
    now = torch.where(t == 1, now, torch.minimum(largest, now))
    average = old.loss * memory + now * (1 - memory)
    mean = average / whole
    lowest = torch.minimum(old.lowest, mean)
    above, span = mean[..., :-1] - lowest[..., :-1], mean[..., 1:] - lowest[..., :-1]
    rounding = 8 * torch.finfo(t.dtype).eps * lowest[..., :-1].abs()
    above = torch.where(above > rounding, above, 0)  # which would be divided by 1e-8
    seen = (above / span.clamp(min=1e-8) - 1).clamp(-1, 1)
    return average, lowest, torch.where(t <= 2, torch.zeros_like(seen), seen)


def remembered(sums: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden and cell state of an LSTM whose gates have these sums."""
    i, a, f, o = sums.chunk(4, -1)
    cell = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(a)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def moved(direction: Tensor, power: Tensor, rate: Tensor, params: Tensor, view: View) -> Tensor:
    """The step of each coordinate, in proportion to the size of its tensor.

    Shape:
        direction, power, params and the result ``(learners, coordinates)``; rate ``(learners,
        tensors)``.
    """
    size = (means(params.square(), view) + 1e-9).sqrt()
    return -SMALL_STEP * direction * torch.exp(SMALL_STEP * power) * spread(rate * size, view)
