"""A hierarchical optimiser: recurrent networks of parameters, of tensors and of the network."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.cells import GRUCell
from attractor.cells.base import positive
from attractor.cells.init import uniform_
from attractor.errors import InputError
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.rules.recurrent import head, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View

EPSILON = 1e-8
LARGEST = 33.0
"""Of the logarithm of a rate, up and down."""


class Course(NamedTuple):
    """Of each coordinate: its hidden state, averages, their memories, and the log of its rate."""

    h: Tensor
    m: Tensor
    v: Tensor
    memory: Tensor
    scale: Tensor
    rate: Tensor


class Above(NamedTuple):
    """Hidden states of the tensors and of the network."""

    tensors: Tensor
    network: Tensor


class HierarchicalOptimiser(Rule):
    r"""Three levels of recurrent networks, of which the upper ones set the biases of the lower.

    Of each coordinate, at the timescales :math:`s = 0, \dots, S - 1`:

    .. math::
        m_{t,s} &= \beta_t^{2^{-s}} m_{t-1,s} + (1 - \beta_t^{2^{-s}}) \nabla_t, \qquad
        v_{t,s} = \lambda_t v_{t-1,s} + (1 - \lambda_t) m_{t,s}^2 \\
        \mu_{t,s} &= m_{t,s} / \sqrt{v_{t,s} + \epsilon^2} \\
        x_t &= \left[\mu_{t,s}, \ \mu_{t,s} \mu_{t,s+1}, \ \log v_{t,s} - \overline{\log v_t}, \
        \bar\eta_{t-1} - \langle \bar\eta_{t-1} \rangle\right] \\
        h_t &= \text{GRU}(x_t, h_{t-1};\ A\,H_{t-1} + B\,G_{t-1}) \\
        H_t &= \text{GRU}(\langle [h_t, x_t] \rangle_{tensor}, H_{t-1};\ C\,G_{t-1}), \qquad
        G_t = \text{GRU}(\langle H_t \rangle, G_{t-1})

    What follows the semicolon is added to the biases; :math:`\langle \cdot \rangle` is a mean over
    coordinates or tensors. From the hidden state come the direction, the rate and the memories:

    .. math::
        d_t &= w^\top h_t + q^\top \mu_t, \qquad \eta_t = \bar\eta_{t-1} + u^\top h_t + b, \qquad
        \bar\eta_t = \gamma \bar\eta_{t-1} + (1 - \gamma) \eta_t \\
        \theta_{t+1} &= \theta_t - e^{\eta_t + c} \, d_t / \text{rms}_{tensor}(d_t), \qquad
        \beta_{t+1} = \sigma(w_\beta^\top h_t + b_\beta), \quad
        \lambda_{t+1} = \sigma(w_\lambda^\top h_t + b_\lambda)

    with :math:`\beta_1 = \lambda_1 = 0`. The initial hidden states are learnt.

    Args:
        hidden_size: units of a coordinate.
        tensor_size: units of a tensor.
        network_size: units of the network.
        scales: S, at least 2.
        rate: :math:`e^{\bar\eta_0}`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = HierarchicalOptimiser()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: gradients are taken where the network is, not at a place that the rule
    attends to, and all rates start at `rate`, not at random. Products of neighbouring timescales
    and :math:`q`, which starts at 1/S, are the released code's, as are the numbers at the start;
    that code shows its uppermost network the last tensor alone, here it sees all, as in the paper.
    Weights start as those of our cells do. It is trained on losses, not on their logarithms.

    References:
        Wichrowska et al. (2017), Learned optimizers that scale and generalize, arXiv:1703.04813,
        section 3, and its released code.
    """

    key = "hierarchical"
    reference = "wichrowska2017learned"
    whole = True

    def __init__(
        self,
        *,
        hidden_size: int = 10,
        tensor_size: int = 20,
        network_size: int = 20,
        scales: int = 4,
        rate: float = 0.01,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        units = positive(type(self), "hidden_size", hidden_size)
        middle = positive(type(self), "tensor_size", tensor_size)
        top = positive(type(self), "network_size", network_size)
        if positive(type(self), "scales", scales) < 2 or rate <= 0:
            raise InputError(
                "expected scales of at least 2 and a rate above 0, but got "
                f"scales={scales} and rate={rate}. Try scales=4, rate=0.01."
            )
        self.scales, self.rate = scales, rate
        features = 3 * scales
        self.cells = nn.ModuleList(
            _cell(reads, size, generator)
            for reads, size in ((features, units), (units + features, middle), (middle, top))
        )
        self.starts = nn.ParameterList(
            nn.Parameter(uniform_(torch.empty(size), 1.0, generator))
            for size in (units, middle, top)
        )
        self.from_tensor = head(middle, 3 * units, generator)
        self.from_network = head(top, 3 * units, generator)
        self.to_tensor = head(top, 3 * middle, generator)
        self.direction = head(units, 1, generator, bias=False)
        self.shortcut = nn.Parameter(torch.full((scales,), 1 / scales))
        self.change = silent(units, 1)
        self.memory, self.scale = (head(units, 1, generator) for _ in range(2))
        nn.init.constant_(self.memory.bias, 2.2)
        nn.init.constant_(self.scale.bias, 3.2)
        self.logit_gamma = nn.Parameter(torch.tensor(3.2))
        self.offset = nn.Parameter(torch.tensor(-1.0))

    def init(self, params: Tensor, view: View) -> State:
        k, n = params.shape
        units, tensors, network = self.starts
        zeros, several = torch.zeros_like(params), params.new_zeros(k, n, self.scales)
        rates = torch.full_like(params, self.rate).log()
        each = Course(units.expand(k, n, -1), several, several, zeros, zeros, rates)
        count = len(view.parts())
        return State(each, Above(tensors.expand(k, count, -1), network.expand(k, -1)))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        h, m, v, memory, scale, rate = state.each
        tensors, network = state.shared
        powers = 0.5 ** torch.arange(self.scales, dtype=grads.dtype, device=grads.device)
        kept = memory[..., None] ** powers
        m = kept * m + (1 - kept) * grads[..., None]
        v = scale[..., None] * v + (1 - scale[..., None]) * m.square()
        scaled = m * (v + EPSILON**2).rsqrt()
        sizes = (v + EPSILON**2).log()
        x = torch.cat(
            [
                scaled,
                scaled[..., :-1] * scaled[..., 1:],
                sizes - sizes.mean(-1, keepdim=True),
                (rate - rate.mean(1, keepdim=True))[..., None],
            ],
            dim=-1,
        )
        counts = torch.tensor([count for _, count in view.parts()], device=grads.device)

        def to_each(of_tensors: Tensor) -> Tensor:
            return of_tensors.repeat_interleave(counts, dim=1, output_size=grads.shape[1])

        def means(of_each: Tensor) -> Tensor:
            return torch.stack([piece.mean(1) for piece in view.split(of_each)], dim=1)

        bias = to_each(self.from_tensor(tensors)) + self.from_network(network)[:, None]
        h = _step(self.cells[0], x, h, bias)
        seen = means(torch.cat([h, x], dim=-1))
        tensors = _step(self.cells[1], seen, tensors, self.to_tensor(network)[:, None])
        network = _step(self.cells[2], tensors.mean(1), network)

        d = self.direction(h).squeeze(-1) + scaled @ self.shortcut
        d = d * to_each((means(d.square()) + EPSILON**2).rsqrt())
        now = rate + self.change(h).squeeze(-1)
        now = now + (now.clamp(-LARGEST, LARGEST) - now).detach()  # gradients pass the bound
        rate = torch.lerp(now, rate, torch.sigmoid(self.logit_gamma))
        memory, scale = (torch.sigmoid(one(h)).squeeze(-1) for one in (self.memory, self.scale))
        steps = -torch.exp(now + self.offset) * d
        return steps, State(Course(h, m, v, memory, scale, rate), Above(tensors, network))


def _cell(inputs: int, units: int, generator: Generator | None) -> GRUCell:
    """A unit that at first keeps nine tenths of its state."""
    made = GRUCell(inputs, units, generator=generator)
    assert made.bias is not None
    with torch.no_grad():
        made.bias[:units] = 2.2
        made.bias[units : 2 * units] = -2.2
    return made


def _step(cell: nn.Module, x: Tensor, h: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    assert isinstance(cell, GRUCell)
    return cell.step(cell.prepare(x) + bias, h)[0]
