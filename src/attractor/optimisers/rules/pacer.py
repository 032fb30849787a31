"""Pacer: a learned rule that sees whole tensors, and paces each of them."""

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.optimisers.rule import Numbers, Rule, Update
from attractor.optimisers.rules.anytime import numbers_of, swept
from attractor.optimisers.rules.features import (
    log_sizes,
    means,
    normalised,
    rows_and_columns,
    spread,
)
from attractor.optimisers.rules.recurrent import head, silent
from attractor.optimisers.state import State
from attractor.optimisers.view import View, tensor_size

EPSILON = 1e-7
FLOOR = 1e-4
TINY = 1e-24
SLOWEST, FASTEST = -4.0, 6.0
STRIDE = 0.2


class Averages(NamedTuple):
    """Of each coordinate: averages of gradients and their squares, and D of the equations."""

    m: Tensor
    n: Tensor
    v: Tensor
    factors: Tensor
    """R and C, where networks read them."""
    apart: Tensor


class Pace(NamedTuple):
    """Of each tensor: updates so far, the logarithm of its pace, and whether it is on its way."""

    t: Tensor
    pace: Tensor
    trend: Tensor


class Pacer(Rule):
    r"""The successor of anytime: it paces each tensor, and a network may correct each step.

    .. math::
        m_t &= \mu m_{t-1} + (1 - \mu) g_t, \qquad
        n_t = \nu n_{t-1} + (1 - \nu) g_t, \qquad
        v_t = \rho v_{t-1} + (1 - \rho) (g_t^2 + \epsilon^2) \\
        R_t, C_t &= \nu (R_{t-1}, C_{t-1}) + (1 - \nu) (\text{mean}_{col}, \text{mean}_{row})
        (g_t^2 + \epsilon^2), \qquad f_t = (R_t / \overline{R_t})^{-1/2} C_t^{-1/2} \\
        s &= (g_t, \hat m_t, \hat n_t) / \sqrt{\hat v_t} \\
        \kappa, \iota &= B \, \text{relu}\left(A \left[N(s, f_t g_t, f_t m_t, f_t n_t, \theta_t),
        \tfrac14 \log(v_t / \overline{v_t}, R_t / \overline{R_t}, C_t / \overline{C_t}),
        \tfrac14 \log t\right]\right) \\
        d_t &= (w^\top s + \kappa) \, (s_2^2 + 10^{-4})^{a/2} \, e^{b \tanh(s_0 s_2) + \iota}

    and of each tensor, whose means are the overlines,

    .. math::
        c_t &= \overline{s_0 D_t} / \sqrt{\overline{D_t^2} \, (\overline{s_0^2} + 10^{-4})}, \qquad
        h_t = \lambda h_{t-1} + (1 - \lambda) c_t \\
        u_t &= (\eta_1 [h_t]_+ - \eta_2 [-h_t]_+) / (1 + \tfrac{t - 1}{\omega}) + \eta_3 [-\ell_t]_+
        + \tfrac15 Z \tanh(Y [c_t,
        h_t, \tfrac14 \log \overline{s_1^2}, \tfrac14 \log \overline{s_2^2}, \tfrac14 \log t,
        \ell_t, \log \sigma]) \\
        \ell_{t+1} &= \ell_t + \tfrac15 \tanh(5 u_t) \text{ between -4 and 6} \\
        r_t &= \min(1, r / \sqrt{\overline{s_0^2} + 10^{-4}}), \qquad
        q_t = \gamma (1 + t / \tau)^{-p} (e^{\ell_{t+1} / (1 + t / \chi)} r_t \sigma^e d_t
        + \delta \theta_t)

    The fast iterate, which moves by :math:`-q_t`, its average, and the size :math:`\sigma` of a
    tensor are those of `Anytime`; :math:`D` is how far the average is from the fast iterate, and N
    divides numbers by the root of their mean square in their tensor. The cosine :math:`c` is above
    zero while the gradient still points where the tensor has been going, that is, while its steps
    are too small: then its pace grows, :math:`\ell` by at most a fifth in an update. It falls
    slowly once the gradients turn, for the average takes care of noise, and settles as a training
    goes on: else it would grow for ever where all is learnt by heart. In trainings of many times
    :math:`\chi` updates it goes back to that of `Anytime`, which ends lower there. Where gradients
    are suddenly r times as large as they have been, no more than that is taken of them, as
    Adafactor clips its updates: else a pace that is nearly too large ends in bursts.

    In the manner of Celo, a network with few weights can serve every parameter and read what
    Adafactor and momenta of several memories make of gradients (A, B); another one, recurrent by
    way of :math:`\ell` and :math:`h`, can schedule whole tensors (Y, Z); and they are meta-trained
    one after the other. Both start as nothing, and the other numbers as those of `Anytime` with a
    pace: so even the untrained rule is an optimiser of use. Without ``hidden_size`` it has no
    networks, and an update costs a third less.

    A user's ``lr`` multiplies :math:`q_t`; ``weight_decay`` takes the place of :math:`\delta`. A
    network is best judged at the average, by ``optimiser.eval()``.

    Args:
        hidden_size: units of each of the two networks; 0 for none, where :math:`\kappa`,
            :math:`\iota` and Z are zero.
        generator: draws their first layers; ``None`` means torch's default generator.

    Shape:
        gradients, parameters and steps ``(learners, coordinates)``.

    Example:
        >>> model = torch.nn.Linear(3, 1)
        >>> optimiser = Pacer()(model.parameters())
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()
        >>> optimiser.eval()

    Departs from the paper: Celo's scheduler reads the loss and how much of a training is over,
    which ``torch.optim`` is not told, and its steps are proportional to a tensor's size; this one
    reads the cosine, and its rule is a correction of `Anytime`'s.

    References:
        Moudgil et al. (2025), Celo: training versatile learned optimizers on a compute diet,
        arXiv:2501.12670; Metz et al. (2022), arXiv:2203.11860; Defazio et al. (2024), The road
        less scheduled, arXiv:2405.15682; Shazeer and Stern (2018), Adafactor, arXiv:1804.04235.
    """

    key = "pacer"
    reference = "moudgil2025celo"
    averages = True
    tensorwise = True

    def __init__(self, *, hidden_size: int = 0, generator: Generator | None = None) -> None:
        super().__init__()
        # the numbers of `Anytime` begin where its meta-training ended
        self.logit_memory = nn.Parameter(torch.logit(torch.tensor([0.908, 0.992, 0.998])))
        self.mixture = nn.Parameter(torch.tensor([1.43, 1.84, 0.64]))
        self.strength = nn.Parameter(torch.tensor(-0.066))
        self.agreement = nn.Parameter(torch.tensor(0.179))
        self.size_power = nn.Parameter(torch.tensor(1.25))
        self.log_gamma = nn.Parameter(torch.tensor(math.log(0.0057)))
        self.log_tau = nn.Parameter(torch.tensor(math.log(588.0)))
        self.log_p = nn.Parameter(torch.tensor(math.log(0.26)))
        self.log_delta = nn.Parameter(torch.tensor(math.log(0.1)))
        self.log_kappa = nn.Parameter(torch.tensor(math.log(7.1)))
        self.logit_beta = nn.Parameter(torch.logit(torch.tensor(0.72)))
        self.log_gain = nn.Parameter(torch.tensor([0.2, 0.05, 0.1]).log())
        self.logit_trend = nn.Parameter(torch.logit(torch.tensor(0.9)))
        self.log_limit = nn.Parameter(torch.tensor(math.log(2.0)))
        self.log_wane = nn.Parameter(torch.tensor(math.log(100.0)))
        self.log_return = nn.Parameter(torch.tensor(math.log(1000.0)))
        self.units = whole("hidden_size", hidden_size, 0)
        if self.units:
            self.lift = head(11, self.units, generator)
            self.correct = silent(self.units, 2)
            self.read = head(7, self.units, generator)
            self.steer = silent(self.units, 1)

    def init(self, params: Tensor, view: View) -> State:
        zeros = torch.zeros_like(params)
        factors = params.new_zeros(*params.shape, 2 if self.units else 0)
        tensors = params.new_zeros(len(params), len(view.parts()))
        return State(Averages(zeros, zeros, zeros, factors, zeros), Pace(*[tensors] * 3))

    def update(self, grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        m, n, v, factors, apart = state.each
        t = state.shared.t + 1
        memory = torch.sigmoid(self.logit_memory)
        forget, whole = 1 - memory, spread(1 - memory ** t[..., None], view)
        squares = grads.square()
        m, n = torch.lerp(m, grads, forget[0]), torch.lerp(n, grads, forget[1])
        v = memory[2] * v + forget[2] * squares  # stays infinite once it is, as Adam's
        hat = v / whole[..., 2] + EPSILON**2
        scale = hat.rsqrt()
        s0, s1, s2 = s = grads * scale, m * (scale / whole[..., 0]), n * (scale / whole[..., 1])
        sigma = log_sizes(view, tensor_size, params).expand_as(t)
        pace, trend, log_share = self.paced(s, apart, sigma, state.shared, view)
        log_gamma = self.log_gamma - self.log_p.exp() * torch.log1p(t / self.log_tau.exp())
        ahead_by = pace / (1 + t / self.log_return.exp())
        rates = torch.exp(log_gamma + ahead_by + log_share + self.size_power * sigma)
        c = torch.exp(self.log_kappa) / (t - 1 + torch.exp(self.log_kappa))
        told = spread(torch.stack([log_gamma.exp(), rates, c], -1), view)
        gamma, rate, c = told.unbind(-1)
        w = self.mixture
        d = w[0] * s0 + w[1] * s1 + w[2] * s2
        sure = self.strength / 2 * (s2.square() + FLOOR).log()
        sure = sure + self.agreement * torch.tanh(s0 * s2)
        if self.units:
            pair = torch.stack(rows_and_columns(squares + EPSILON**2, view), -1)
            factors = torch.lerp(factors, pair, forget[1])
            each = Averages(m, n, hat, factors, apart)
            said = self.said(s, grads, each, params, t, view)
            d, sure = d + said[..., 0], sure + said[..., 1]
        decay = self.log_delta.exp() if view.decay is None else view.decay
        q = view.rate * (rate * d * sure.exp() + gamma * decay * params)
        ahead = apart + q
        step = (self.beta - 1) * q - self.beta * c * ahead
        each = Averages(m, n, v, factors, (1 - c) * ahead)
        return step, State(each, Pace(t, pace, trend))

    def said(
        self,
        s: tuple[Tensor, ...],
        grads: Tensor,
        each: Averages,
        params: Tensor,
        t: Tensor,
        view: View,
    ) -> Tensor:
        r""":math:`\kappa` and :math:`\iota` of each coordinate: ``(learners, coordinates, 2)``."""
        row, column = each.factors.unbind(-1)
        f = (row / spread(means(row, view), view)).rsqrt() * column.rsqrt()
        seen = torch.stack([*s, f * grads, f * each.m, f * each.n, params], -1)
        large = torch.stack([each.v, row, column], -1)
        shares = (large / spread(means(large, view), view)).log() / 4
        time = spread(t.log() / 4, view)[..., None]
        features = torch.cat([normalised(seen, view), shares, time], -1)
        said: Tensor = self.correct(torch.relu(self.lift(features)))
        return said

    def paced(
        self, s: tuple[Tensor, ...], apart: Tensor, sigma: Tensor, old: Pace, view: View
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""The next pace of each tensor, whether it is on its way, and :math:`\log r` of its steps.

        Shape:
            each ``(learners, tensors)``.
        """
        mean = means(torch.stack([s[0].square(), s[0] * apart, apart.square()], -1), view)
        size, along, way = mean.unbind(-1)
        size = size + FLOOR
        cosine = along * (way + TINY).rsqrt() * size.rsqrt()
        log_share = (self.log_limit - size.log() / 2).clamp(max=0)
        trend = torch.lerp(cosine, old.trend, torch.sigmoid(self.logit_trend))
        faster, slower, back = self.log_gain.exp()
        push = faster * trend.relu() - slower * (-trend).relu()
        push = push / (1 + old.t * torch.exp(-self.log_wane)) + back * (-old.pace).relu()
        if self.units:
            sizes = means(torch.stack([s[1].square(), s[2].square()], -1), view) + FLOOR
            logs = [*(sizes.log() / 4).unbind(-1), (old.t + 1).log() / 4]
            seen = torch.stack([cosine, trend, *logs, old.pace, sigma], -1)
            push = push + STRIDE * self.steer(torch.tanh(self.read(seen)))[..., 0]
        pace = (old.pace + STRIDE * torch.tanh(push / STRIDE)).clamp(SLOWEST, FASTEST)
        return pace, trend, log_share

    def settled(self, params: Tensor, state: State, view: View) -> Tensor:
        apart: Tensor = state.each.apart
        return params + (1 - self.beta) * apart

    def numbers(self) -> Numbers | None:
        if self.units:
            return None
        own = self._parameters
        trend = numbers_of(own, "logit_trend", by=torch.sigmoid)
        limits = numbers_of(own, "log_limit", "log_wane", "log_return", by=torch.exp)
        rest = [*numbers_of(own, "log_gain", by=torch.exp), *trend, *limits]
        each = tuple(name for name in Averages._fields if name != "factors")
        return Numbers([*swept(self), *rest], each=each, shared=Pace._fields)

    @property
    def beta(self) -> Tensor:
        r""":math:`\beta` of the equations."""
        return torch.sigmoid(self.logit_beta)

    @property
    def decay(self) -> float:
        return self.log_delta.exp().item()
