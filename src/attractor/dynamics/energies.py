"""Lyapunov functions of gradient descent: what should only fall, measured on real losses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from attractor.checks import number, one_of, positive, whole
from attractor.dynamics.landscapes import Parameters, own

Method = Literal["sgd", "momentum", "nag"]


@dataclass(frozen=True, slots=True)
class Energy:
    """Losses and energies ``(steps + 1,)`` of an optimisation, and how often each rises."""

    losses: Tensor
    energies: Tensor

    @property
    def loss_rises(self) -> int:
        """Steps in which the loss rises."""
        return _rises(self.losses)

    @property
    def energy_rises(self) -> int:
        """Steps in which the energy rises; 0 for a Lyapunov function."""
        return _rises(self.energies)


def _rises(values: Tensor) -> int:
    floor = 1e-9 * values.abs().max()
    return int((values[1:] > values[:-1] + floor).sum()) + int((~values.isfinite()).sum())


def energy(
    loss: Callable[[], Tensor],
    parameters: Parameters,
    method: Method = "momentum",
    *,
    rate: float,
    momentum: float = 0.9,
    steps: int = 100,
) -> Energy:
    r"""Follow an optimisation and its energy :math:`V_t = L(\theta_t) + \frac{p}{2\alpha} |v_t|^2`.

    .. math::
        v_{t+1} &= p v_t - \alpha \nabla L(\theta_t) \\
        \theta_{t+1} &= \theta_t + v_{t+1}

    With p = 0 it is plain descent and V the loss; NAG takes the gradient at
    :math:`\theta_t + p v_t`. Where the curvature is at most :math:`\lambda`, V never rises under
    momentum if :math:`\alpha \le 2 (1 - p) / \lambda`: expand L to second order, replace the
    gradient by :math:`(p v_t - v_{t+1}) / \alpha`, and bound the product of the velocities.

    Args:
        loss: without arguments, at the present parameters.
        parameters: of the network; they are put back afterwards.
        method: ``"sgd"``, ``"momentum"`` or ``"nag"``.
        rate: alpha.
        momentum: p; not used by ``"sgd"``.
        steps: how many.

    Example:
        >>> w = nn.Parameter(torch.tensor([3.0, 1.0]))
        >>> scale = torch.tensor([1.0, 10.0])
        >>> found = energy(lambda: (scale * w**2).sum() / 2, [w], rate=0.01, momentum=0.9)
        >>> found.energy_rises, found.loss_rises > 0
        (0, True)

    Departs from the paper: the energy is that of the discrete steps; the thesis, after Qian,
    argues from the differential equation, which knows no step that is too large.

    References:
        Qian (1999), On the momentum term in gradient descent learning algorithms; Kuo (2021),
        thesis, appendix B, ICC-24.
    """
    one_of("method", method, get_args(Method))
    p = 0.0 if method == "sgd" else number("momentum", momentum, 0, 1)
    alpha = positive("rate", rate)
    mine = own(parameters)
    kept = [parameter.detach().clone() for parameter in mine]
    velocity = [torch.zeros_like(parameter) for parameter in mine]
    losses, energies = [], []
    try:
        for _ in range(whole("steps", steps, 1) + 1):
            with torch.enable_grad():
                now = loss()
            moved = sum(float(v.double().square().sum()) for v in velocity)
            losses.append(float(now.detach()))
            energies.append(losses[-1] + p / (2 * alpha) * moved)
            _step(loss, now, mine, velocity, alpha, p, ahead=method == "nag")
    finally:
        with torch.no_grad():
            for parameter, old in zip(mine, kept, strict=True):
                parameter.copy_(old)
    return Energy(torch.tensor(losses).double(), torch.tensor(energies).double())


def _step(
    loss: Callable[[], Tensor],
    now: Tensor,
    parameters: list[nn.Parameter],
    velocity: list[Tensor],
    alpha: float,
    p: float,
    *,
    ahead: bool,
) -> None:
    with torch.no_grad():
        if ahead:
            for parameter, v in zip(parameters, velocity, strict=True):
                parameter.add_(p * v)
    with torch.enable_grad():
        value = loss() if ahead else now
        grads = torch.autograd.grad(value, parameters, materialize_grads=True)
    with torch.no_grad():
        for parameter, v, grad in zip(parameters, velocity, grads, strict=True):
            if ahead:
                parameter.sub_(p * v)
            v.mul_(p).sub_(alpha * grad)
            parameter.add_(v)


def implied_rates(steps: Tensor, grads: Tensor) -> Tensor:
    r"""The rates :math:`-\Delta\theta / \nabla L` of an update; zero where there is no gradient.

    A rule with rates that are never negative is said to converge (5.13). In discrete time that is
    not enough: rates above :math:`2 / \lambda` diverge, however positive they are.

    Example:
        >>> implied_rates(torch.tensor([-0.2, 0.1, 0.3]), torch.tensor([2.0, 1.0, 0.0])).tolist()
        [0.10000000149011612, -0.10000000149011612, 0.0]

    References:
        Kuo (2021), thesis, equations 5.12 and 5.13.
    """
    return torch.where(grads == 0, 0.0, -steps / torch.where(grads == 0, 1.0, grads))


def interference(losses: list[Callable[[], Tensor]], parameters: Parameters) -> Tensor:
    """Cosines ``(tasks, tasks)`` between the gradients of tasks: negative ones interfere.

    Example:
        >>> w = nn.Parameter(torch.tensor([1.0, 1.0]))
        >>> tasks = [lambda: w[0] * 2, lambda: -w[0] + w[1]]
        >>> round(float(interference(tasks, [w])[0, 1]), 4)
        -0.7071
    """
    mine = own(parameters)
    rows = []
    for loss in losses:
        with torch.enable_grad():
            grads = torch.autograd.grad(loss(), mine, materialize_grads=True)
        rows.append(torch.cat([grad.reshape(-1).double() for grad in grads]))
    units = torch.nn.functional.normalize(torch.stack(rows), dim=-1)
    return units @ units.T
