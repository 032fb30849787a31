"""Lyapunov exponents, and the singular values of a Jacobian over many steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from attractor.checks import whole
from attractor.dynamics.orbits import orbit
from attractor.dynamics.systems import (
    Steppable,
    as_layer,
    layer_step,
    system,
)
from attractor.errors import InputError


@dataclass(frozen=True, slots=True)
class Exponents:
    """Lyapunov exponents, largest first: natural logarithms of stretching per step.

    `values` is ``(size,)``, or ``(batch, size)`` for a batch of starts. A positive one is chaos;
    all negative is a sink. ``float`` gives the largest of a single orbit.
    """

    values: Tensor
    steps: int

    def __float__(self) -> float:
        return float(self.values.max())


def jacobians_along(step: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """Jacobians ``(n, size, size)`` of a step at flat states ``(n, size)``, in bounded memory."""
    rows = max(1, 2**19 // states.shape[-1] ** 2)
    found: Tensor = vmap(jacrev(step), chunk_size=rows)(states)
    return found


@torch.no_grad()
def lyapunov_exponents(
    step: Steppable,
    x0: Any = None,
    *,
    steps: int = 10_000,
    discard: int = 1_000,
    count: int | None = None,
    input: Tensor | None = None,  # noqa: A002 - as nn.GRU names it
    size: int | None = None,
    batched: bool = False,
) -> Exponents:
    r"""Mean logarithms of how much a step stretches, along an orbit.

    The orbit comes first, then all Jacobians at once, then :math:`Q_{t+1} R_{t+1} = J_t Q_t`:
    the exponents are the means of :math:`\log |\mathrm{diag} R_t|`.

    Args:
        step: a function from one state to the next, a cell, a layer, or any module.
        x0: where the orbit starts; the initial state of a network if not given.
        steps: how many are averaged.
        discard: steps before, while the orbit finds its attractor.
        count: how many exponents; all if not given.
        input: what a recurrent network reads at every step; zero if not given.
        size: numbers of a state, for a function of vectors without `x0`.
        batched: `x0` has several starts of a function, in rows.

    Example:
        >>> exponent = lyapunov_exponents(lambda x: 4 * x * (1 - x), x0=0.3)
        >>> abs(float(exponent) - 0.6931) < 0.01
        True

    References:
        Benettin et al. (1980), Lyapunov characteristic exponents for smooth dynamical systems.
    """
    whole("steps", steps, 1)
    whole("discard", discard, 0)
    first = x0[0] if batched else x0
    made = system(step, input=input, x0=first, size=size)
    start = x0.reshape(len(x0), -1).to(made.start) if batched else made.start[None]
    states = orbit(made.many, start, discard + steps)[discard:-1]
    if not bool(states.isfinite().all()):
        raise InputError(
            "expected an orbit that stays finite, but it leaves all bounds. Try another x0."
        )
    kept = made.size if count is None else min(whole("count", count, 1), made.size)
    jacobians = jacobians_along(made.step, states.flatten(0, 1))
    jacobians = jacobians.reshape(*states.shape[:2], made.size, made.size)
    if made.size == 1:
        logs = jacobians[..., 0, 0].abs().log()
        return Exponents(_single(logs.mean(0)[:, None], batched), steps)
    # not the axes: a direction that the system keeps would never turn to the one that grows most
    drawn = torch.randn(made.size, kept, generator=torch.Generator().manual_seed(0)).to(start)
    Q = torch.linalg.qr(drawn).Q.expand(len(start), -1, -1)
    total = start.new_zeros(len(start), kept)
    for J in jacobians:
        Q, R = torch.linalg.qr(J @ Q)
        total += R.diagonal(dim1=-2, dim2=-1).abs().log()
    values = (total / steps).sort(-1, descending=True).values
    return Exponents(_single(values, batched), steps)


def _single(values: Tensor, batched: bool) -> Tensor:
    return values if batched else values[0]


@dataclass(frozen=True, slots=True)
class LongTermJacobian:
    r"""Singular values of :math:`\partial h_{t_0 + n} / \partial h_{t_0}`, for n = 1, 2, ...

    `singular_values` is ``(steps, size)``, largest first; `rates` is how much the largest shrank
    or grew per step on the way.
    """

    singular_values: Tensor
    final: Tensor

    @property
    def rates(self) -> Tensor:
        """The largest singular value to the power 1/n, ``(steps,)``: below 1 vanishes."""
        n = torch.arange(1, len(self.singular_values) + 1, device=self.final.device)
        return self.singular_values[:, 0] ** (1 / n)


@torch.no_grad()
def long_term_jacobian(
    network: nn.Module, x: Tensor, *, x0: Tensor | None = None
) -> LongTermJacobian:
    r"""How the state after each step of a sequence depends on the first one.

    .. math::
        \frac{\partial h_{t_1}}{\partial h_{t_0}}
        = \prod_{t_0 < t \le t_1} \frac{\partial h_t}{\partial h_{t-1}}

    Args:
        network: a cell, a layer, or torch's own; it is copied, never changed.
        x: one sequence, ``(time, features)``.
        x0: the flat state to start from; the initial one if not given.

    Example:
        >>> found = long_term_jacobian(nn.RNN(1, 4), torch.zeros(6, 1))
        >>> found.singular_values.shape
        torch.Size([6, 4])

    References:
        Chandar (2020), thesis, equations 2.14 to 2.16.
    """
    layer = as_layer(network)
    if layer is None or x.dim() != 2:
        raise InputError(
            "expected a recurrent network and one sequence (time, features), but got "
            f"{type(network).__name__} and {tuple(x.shape)}. Try nn.GRU(1, 8) and x[:, 0]."
        )
    x = x.detach().to(next(layer.parameters()))
    made = system(layer, x0=x0)
    shapes = [(-1, *leaf.shape[1:]) for leaf in _leaves(layer.starts(1))]

    def step(flat: Tensor, now: Tensor) -> Tensor:
        sizes = [size for _, size in made.parts]
        pieces = [
            p.reshape(1, *s[1:]) for p, s in zip(torch.split(flat, sizes), shapes, strict=True)
        ]
        _, after = layer_step(layer, now[None], _like(layer.starts(1), pieces))
        return torch.cat([leaf.reshape(-1).to(flat) for leaf in _leaves(after)])

    states = [made.start]
    for now in x:
        states.append(step(states[-1], now))
    each: Tensor = vmap(jacrev(step), chunk_size=max(1, 2**19 // made.size**2))(
        torch.stack(states[:-1]), x
    )
    product, values = each[0], [torch.linalg.svdvals(each[0])]
    for J in each[1:]:
        product = J @ product
        values.append(torch.linalg.svdvals(product))
    return LongTermJacobian(torch.stack(values), product)


def _leaves(states: Any) -> list[Tensor]:
    leaves: list[Tensor] = torch.utils._pytree.tree_leaves(states)
    return leaves


def _like(states: Any, pieces: list[Tensor]) -> Any:
    _, spec = torch.utils._pytree.tree_flatten(states)
    return torch.utils._pytree.tree_unflatten(pieces, spec)
