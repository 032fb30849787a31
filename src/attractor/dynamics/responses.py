"""What an optimiser does as a system: its answers to gradients that are made up."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from attractor.checks import one_of, whole
from attractor.optimisers.rule import Rule

Signal = Literal["constant", "sine", "step", "noise"]


def signal(
    kind: Signal, steps: int, *, size: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Gradients over time: a constant, a sine of 20 steps, a step half-way, or noise.

    Example:
        >>> signal("step", 4, size=0.5).tolist()
        [0.0, 0.0, 0.5, 0.5]
    """
    time = torch.arange(whole("steps", steps, 2), dtype=torch.float32)
    match one_of("signal", kind, get_args(Signal)):
        case "constant":
            return torch.full_like(time, size)
        case "sine":
            return size * torch.sin(2 * math.pi * time / 20)
        case "step":
            return torch.where(time >= steps / 2, size, 0.0)
        case _:
            drawn = generator or torch.Generator().manual_seed(0)
            return size * torch.randn(steps, generator=drawn)


@dataclass(frozen=True, slots=True)
class Response:
    r"""Gradients and steps ``(time,)``, with the rate and momentum that fit them best.

    The fit is :math:`\Delta_t = m \Delta_{t-1} - r g_t`, and `unexplained` the share of the
    variance of the steps that it leaves.
    """

    gradients: Tensor
    steps: Tensor
    rate: float
    momentum: float
    unexplained: float

    @property
    def settled(self) -> float:
        """How much the last tenth of the steps still varies, as a share of its size."""
        last = self.steps[-max(2, len(self.steps) // 10) :]
        return float(last.std() / last.abs().mean().clamp_min(1e-12))


def response(
    make: Callable[[Iterable[Tensor]], Optimizer] | Rule, gradients: Tensor, start: float = 0.0
) -> Response:
    """Feed gradients to an optimiser of one number, learned or not, and see its steps.

    Args:
        make: what makes an optimiser from parameters: a rule, or such as
            ``lambda p: torch.optim.SGD(p, 0.1)``.
        gradients: ``(time,)``, such as `signal` makes.
        start: the number.

    Example:
        >>> heavy = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)
        >>> found = response(heavy, signal("noise", 100))
        >>> round(found.rate, 4), round(found.momentum, 4), found.unexplained < 1e-6
        (0.1, 0.9, True)
    """
    number = nn.Parameter(torch.full((1,), float(start)))
    optimiser = make([number])
    moved = []
    for gradient in gradients:
        before = number.detach().clone()
        number.grad = gradient.reshape(1).clone()
        optimiser.step()
        moved.append(number.detach() - before)
    steps = torch.cat(moved)
    known = torch.stack([steps[:-1], -gradients[1:]], -1).double()
    answer = steps[1:, None].double()
    fit = torch.linalg.lstsq(known, answer, driver="gelsd").solution
    left = float((answer - known @ fit).square().sum())
    whole_ = float(answer.square().sum())
    return Response(
        gradients, steps, float(fit[1]), float(fit[0]), left / whole_ if whole_ else 0.0
    )


@dataclass(frozen=True, slots=True)
class NoUpdate:
    """Shares of parameters that DMSGD does not update: as printed, and as it is."""

    printed: float
    actual: float


def no_update(static: Tensor, dynamic: Tensor, gamma: float = 1.0) -> NoUpdate:
    r"""When DMSGD leaves a parameter alone.

    The thesis prints :math:`|\beta^{sta}| < |\gamma \beta^{dyn}|`. The rate is
    :math:`\mathrm{ReLU}(\beta^{sta} + \gamma \beta^{dyn})`, so it is zero exactly where
    :math:`\beta^{sta} \le -\gamma \beta^{dyn}`: the printed condition lacks the sign.

    Example:
        >>> no_update(torch.tensor([0.1, 0.1, 0.1]), torch.tensor([-0.5, 0.5, 0.05]))
        NoUpdate(printed=0.6666666865348816, actual=0.3333333432674408)

    References:
        Kuo (2021), thesis, equation 5.15 and the paragraph after 5.17.
    """
    moved = gamma * dynamic
    return NoUpdate(
        float((static.abs() < moved.abs()).float().mean()),
        float((torch.relu(static + moved) == 0).float().mean()),
    )


@dataclass(frozen=True, slots=True)
class RateShares:
    """The mean rate of each task, and its shares of small and of large ones, ``(tasks,)``."""

    mean: Tensor
    small: Tensor
    large: Tensor


def rate_shares(rates: Tensor, small: float = 0.02, large: float = 0.05) -> RateShares:
    """How the rates ``(tasks, parameters)`` of MetaSGD-CL are spread, task by task.

    Example:
        >>> rate_shares(torch.tensor([[0.01, 0.06], [0.01, 0.01]])).large.tolist()
        [0.5, 0.0]

    References:
        Kuo (2021), thesis, table 6.3 and figure 6.8.
    """
    return RateShares(
        rates.mean(-1), (rates < small).float().mean(-1), (rates > large).float().mean(-1)
    )
