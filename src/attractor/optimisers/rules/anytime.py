"""Anytime: a learned rule of fifteen numbers that needs no horizon."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attractor.optimisers.rule import Numbers, Rule, Update
from attractor.optimisers.state import State
from attractor.optimisers.view import View, tensor_size

EPSILON = 1e-7
FLOOR = 1e-4


class Averages(NamedTuple):
    """Of each coordinate: three averages, and D of the equations."""

    m: Tensor
    n: Tensor
    v: Tensor
    apart: Tensor


class Clock(NamedTuple):
    """Updates so far."""

    t: Tensor


class Anytime(Rule):
    r"""Normalised momenta, scaled by how sure they are, around an average that grows with time.

    .. math::
        m_t &= \mu m_{t-1} + (1 - \mu) g_t, \qquad
        n_t = \nu n_{t-1} + (1 - \nu) g_t, \qquad
        v_t = \rho v_{t-1} + (1 - \rho) g_t^2 \\
        s_0, s_1, s_2 &= (g_t, \hat m_t, \hat n_t) / \sqrt{\hat v_t + \epsilon^2} \\
        d_t &= (w_0 s_0 + w_1 s_1 + w_2 s_2) \, (s_2^2 + 10^{-4})^{a/2} \, e^{b \tanh(s_0 s_2)} \\
        q_t &= \gamma (1 + t / \tau)^{-p} (\sigma^e d_t + \delta \theta_t) \\
        c_t &= \kappa / (t - 1 + \kappa) \\
        \theta_{t+1} &= \theta_t - (1 - \beta) q_t - \beta c_t (D_t + q_t), \qquad
        D_{t+1} = (1 - c_t)(D_t + q_t)

    Hats are Adam's corrections for the start at zero. The size :math:`\sigma` of a matrix or a
    filter is :math:`10 \, (3 \cdot \text{fan-in})^{-1/2}` between 0.1 and 1, for a sum of many
    inputs wants small steps in each; that of vectors and of the tables of embeddings is 1. The last
    line keeps a fast iterate, which moves by :math:`-q_t`, and the average of its places, in which
    the latest :math:`1/\kappa` of all steps count most; :math:`\theta` is at the share
    :math:`\beta` of the way from the one to the other, and :math:`D` is how far they are apart.
    Such an average takes the noise out of the steps at any time, so no schedule has to know when
    training ends. A network is best judged at the average itself, :math:`\theta + (1 - \beta) D`:
    ``optimiser.eval()`` puts it there, and ``optimiser.train()`` back.

    A user's ``lr`` multiplies :math:`q_t`, and ``weight_decay`` takes the place of :math:`\delta`.

    Two tensors of one shape are told apart by what the network says of them: `attach` knows
    embeddings, and a parameter group says ``tables=True`` of its tensors.

    The fifteen :math:`\mu, \nu, \rho, w, a, b, e, \gamma, \tau, p, \delta, \kappa, \beta` are
    meta-learned. They start as schedule-free Adam's: w = (0, 1, 0), a = b = e = 0.

    Args:
        rate: :math:`\gamma` before meta-training.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = Anytime()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()

    Departs from the paper: no paper has this rule. The last line is that of Defazio et al., with
    the polynomial average that they mention; the rest and the learning are ours.

    References:
        Defazio et al. (2024), The road less scheduled, arXiv:2405.15682.
    """

    key = "anytime"
    reference = "defazio2024road"
    version = 2  # in the first, a tensor's size was that of its initial values
    averages = True

    def __init__(self, *, rate: float = 3e-3) -> None:
        super().__init__()
        # every number is kept so that a step of 0.1 is a small one, and any real number is allowed
        self.logit_memory = nn.Parameter(torch.logit(torch.tensor([0.9, 0.99, 0.999])))
        self.mixture = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))
        self.strength = nn.Parameter(torch.tensor(0.0))
        self.agreement = nn.Parameter(torch.tensor(0.0))
        self.size_power = nn.Parameter(torch.tensor(0.0))
        self.log_gamma = nn.Parameter(torch.tensor(math.log(rate)))
        self.log_tau = nn.Parameter(torch.tensor(math.log(1000.0)))
        self.log_p = nn.Parameter(torch.tensor(math.log(0.2)))
        self.log_delta = nn.Parameter(torch.tensor(math.log(1e-3)))
        self.log_kappa = nn.Parameter(torch.tensor(math.log(8.0)))
        self.logit_beta = nn.Parameter(torch.logit(torch.tensor(0.8)))

    def init(self, params: Tensor, view: View) -> State:
        zeros = torch.zeros_like(params)
        averages = Averages(m=zeros, n=zeros, v=zeros, apart=zeros)
        return State(averages, Clock(params.new_zeros(len(params))))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        m, n, v, apart = state.each
        t = state.shared.t[:, None] + 1
        memory = torch.sigmoid(self.logit_memory)
        forget, whole = 1 - memory, 1 - memory ** t[..., None]
        m = torch.lerp(m, grads, forget[0])
        n = torch.lerp(n, grads, forget[1])
        v = memory[2] * v + forget[2] * grads.square()  # stays infinite once it is, as Adam's
        scale = (v / whole[..., 2] + EPSILON**2).rsqrt()
        s0, s1, s2 = grads * scale, m * (scale / whole[..., 0]), n * (scale / whole[..., 1])
        sure = self.strength / 2 * (s2.square() + FLOOR).log()
        sure = sure + self.agreement * torch.tanh(s0 * s2)
        w = self.mixture
        d = (w[0] * s0 + w[1] * s1 + w[2] * s2) * sure.exp()
        gamma = torch.exp(self.log_gamma - self.log_p.exp() * torch.log1p(t / self.log_tau.exp()))
        decay = self.log_delta.exp() if view.decay is None else view.decay
        q = view.rate * gamma * (self.sizes(params, view) * d + decay * params)
        kappa = self.log_kappa.exp()
        c = kappa / (t - 1 + kappa)
        ahead = apart + q
        step = (self.beta - 1) * q - self.beta * c * ahead
        return step, State(Averages(m, n, v, (1 - c) * ahead), Clock(t[:, 0]))

    def settled(self, params: Tensor, state: State, view: View) -> Tensor:
        apart: Tensor = state.each.apart
        return params + (1 - self.beta) * apart

    def numbers(self) -> Numbers:
        return Numbers(swept(self), each=Averages._fields, shared=Clock._fields)

    @property
    def beta(self) -> Tensor:
        r""":math:`\beta` of the equations."""
        return torch.sigmoid(self.logit_beta)

    @property
    def decay(self) -> float:
        return self.log_delta.exp().item()

    def sizes(self, like: Tensor, view: View) -> Tensor:
        r""":math:`\sigma^e` of each coordinate: ``(coordinates,)``."""
        sizes = [(tensor_size(view.fan_in(tensor)), count) for tensor, count in view.parts()]
        rows = [(size**self.size_power).expand(count) for size, count in sizes]
        return torch.cat([like.new_zeros(0), *rows])


def swept(rule: Any) -> list[float]:
    """The numbers of the equations in the order of ``AnytimeRule`` in ``rules.hpp``."""
    own = rule._parameters  # which attributes take nine times as long to find
    strength, agreement, size_power = numbers_of(own, "strength", "agreement", "size_power")
    rest = numbers_of(own, "log_gamma", "log_tau", "log_p", "log_kappa", by=torch.exp)
    memory = numbers_of(own, "logit_memory", by=torch.sigmoid)
    (beta,) = numbers_of(own, "logit_beta", by=torch.sigmoid)
    return [*memory, *numbers_of(own, "mixture"), strength, agreement, *rest, beta, size_power]


def numbers_of(
    weights: Mapping[str, Any], *names: str, by: Callable[[Tensor], Tensor] | None = None
) -> Sequence[float]:
    """The numbers of some weights, or what a function makes of them in their type.

    It is computed once for as long as the numbers stay what they are.
    """
    found: list[float] = []
    for name in names:
        weight = weights[name]
        found.extend(weight.tolist() if weight.dim() else (weight.item(),))
    return found if by is None else _applied(by, tuple(found), weight.dtype)


@lru_cache(maxsize=256)
def _applied(
    function: Callable[[Tensor], Tensor], numbers: tuple[float, ...], dtype: torch.dtype
) -> tuple[float, ...]:
    return tuple(function(torch.tensor(numbers, dtype=dtype)).tolist())
