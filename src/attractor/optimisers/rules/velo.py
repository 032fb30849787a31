"""VeLO: a recurrent network for each tensor, which mixes the perceptron that serves it."""

from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from attractor.cells.init import uniform_
from attractor.checks import whole
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.celo import (
    AVERAGES,
    FEATURES,
    PLACES,
    begun,
    heard,
    moved,
    perceived,
    remembered,
)
from attractor.optimisers.rules.features import means, spread
from attractor.optimisers.rules.recurrent import head
from attractor.optimisers.rules.small_fc import Averages
from attractor.optimisers.state import State
from attractor.optimisers.view import View

RANKS = 5
TOLD = len(PLACES) + AVERAGES - 1 + 1 + RANKS + 3 + 3
"""How many numbers a recurrent network reads."""


class Velo(Rule):
    r"""The learned optimiser of Metz et al. (2022), which can take the weights that they published.

    .. math::
        z_t &= \left[y_t, \; \text{rank}, \; \ell(\overline{v}), \; \ell(\overline{(m^i -
        \overline{m^i})^2}), \; \ell(\overline{(v - \overline{m^i})^2})\right], \qquad
        \ell(a) = \tfrac12 \left[\log(10 |a| + 10^{-8})\right]_{\pm 5} \\
        h_t &= \text{LSTM}\left(W z_t + b + \max_{tensors} \text{relu}(V z_t + c), \;
        h_{t-1}\right) \\
        a_t &= u^\top h_t + e, \qquad k_t = K h_t + f, \qquad
        M_t = \frac{100}{n} \sum_{j=1}^n k_{t,j} M^j \\
        d, p &= \text{MLP}_{M_t}(x), \qquad
        \theta_{t+1} = \theta_t - 10^{-3} \, a_t \sqrt{\text{mean}(\theta_t^2) + 10^{-9}} \; d \,
        e^{p / 1000}

    Each tensor has a recurrent network. It reads y, how far the training is and how its loss goes,
    as that of `Celo` does; of the tensor how many of its dimensions are larger than 1, among five,
    and the means and variances of its averages m and v before this update, in units of the tensor's
    root mean square; and the largest of what the tensors say to one another. It says how large
    steps are, and by :math:`k` which mixture of n perceptrons serves the tensor's parameters; that
    reads the 30 numbers x of `Celo`.

    The loss is what a closure returns: ``optimiser.step(lambda: loss)``. Where none is told it
    counts as constant, as in the authors' option of that name.

    Args:
        horizon: the updates of the training.
        hidden_size: units of each hidden layer of a perceptron.
        scheduler_size: units of the LSTM.
        perceptrons: n, how many there are to mix.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = Velo(horizon=100, scheduler_size=8, perceptrons=4)(model.parameters())
        >>> loss = model(torch.ones(2, 3)).sum()
        >>> loss.backward()
        >>> optimiser.step(lambda: loss) is loss
        True

    Departs from the paper: nothing that changes its numbers. As in the released code, the last
    variance is about the mean of m, not of v. What the released weights have and do not use (a
    first layer of the mixture, a third number that the perceptrons say, a feature that is zero but
    in validation) is left out. A learning rate multiplies the steps.

    References:
        Metz et al. (2022), VeLO: training versatile learned optimizers by scaling up,
        arXiv:2211.09760, with the constants of the released code.
    """

    key = "velo"
    reference = "metz2022velo"
    tensorwise = True
    needs_loss = True

    def __init__(
        self,
        *,
        horizon: int = 1000,
        hidden_size: int = 4,
        scheduler_size: int = 512,
        perceptrons: int = 256,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.horizon: int = whole("horizon", horizon, 1)
        units = whole("hidden_size", hidden_size, 1)
        memory = whole("scheduler_size", scheduler_size, 1)
        bank = whole("perceptrons", perceptrons, 1)
        sizes = [FEATURES, units, units, 2]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            weight = torch.empty(bank, inputs, outputs)
            self.weights.append(uniform_(nn.Parameter(weight), inputs**-0.5, generator))
            self.biases.append(nn.Parameter(torch.zeros(bank, outputs)))
        self.read, self.mix = head(TOLD, memory, generator), head(TOLD, memory, generator)
        self.gates = head(2 * memory, 4 * memory, generator)
        self.rate, self.choose = head(memory, 1, generator), head(memory, bank, generator)
        self.hidden = nn.Parameter(torch.zeros(memory))
        self.cell = nn.Parameter(torch.zeros(memory))

    def init(self, params: Tensor, view: View) -> State:
        return begun(params, view, self.hidden, self.cell)

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        y, course = heard(state.shared, view.loss, self.horizon)
        z = torch.cat([y, *measured(state.each, params, view)], -1)
        x = self.read(z) + torch.relu(self.mix(z)).amax(1, keepdim=True)
        sums = self.gates(torch.cat([x, course.hidden], -1))
        hidden, cell = remembered(sums, course.cell)
        rate, chosen = self.rate(hidden)[..., 0], self.choose(hidden)
        seen, each = perceived(grads, state.each, params, view)
        direction, power = self.said(seen, chosen, view).unbind(-1)
        step = moved(direction, power, rate, params, view)
        return step, State(each, course._replace(hidden=hidden, cell=cell))

    def said(self, x: Tensor, chosen: Tensor, view: View) -> Tensor:
        """What the perceptron of each tensor says to its coordinates.

        Shape:
            x ``(learners, coordinates, 30)``, chosen ``(learners, tensors, perceptrons)``; the
            result ``(learners, coordinates, 2)``.
        """
        share = chosen * (100 / chosen.shape[-1])
        layers = [
            (torch.tensordot(share, weight, 1), torch.tensordot(share, bias, 1))
            for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        parts = []
        for number, part in enumerate(view.split(x)):
            for depth, (weight, bias) in enumerate(layers):
                part = torch.baddbmm(bias[:, number, None], part, weight[:, number])
                part = torch.relu(part) if depth < len(layers) - 1 else part
            parts.append(part)
        return torch.cat(parts, 1)


def measured(averages: Averages, params: Tensor, view: View) -> list[Tensor]:
    """What the recurrent network reads of each tensor by itself, in the order of the weights.

    Shape:
        each ``(learners, tensors, numbers)``.
    """
    unit = means(params.square(), view).clamp(min=1e-9).rsqrt()[..., None]
    mean_m, mean_v = means(averages.m, view), means(averages.rms, view)
    centre = spread(mean_m, view)
    var_m, var_v = (means((one - centre).square(), view) for one in (averages.m, averages.rms))
    ranks = [sum(size > 1 for size in view.shapes[tensor]) for tensor, _ in view.parts()]
    rank = params.new_tensor([[float(rank == place) for place in range(RANKS)] for rank in ranks])
    own = [logged(mean_v * unit), rank.expand(len(params), -1, -1)]
    return [*own, logged(var_m * unit**2), logged(var_v * unit**2)]


def logged(value: Tensor) -> Tensor:
    r""":math:`\ell` of the equations."""
    return (10 * value.abs() + 1e-8).log().clamp(-5, 5) / 2
