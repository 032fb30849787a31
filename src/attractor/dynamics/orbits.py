"""Orbits of difference systems: their course, their cobweb, and what a parameter changes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attractor.checks import whole
from attractor.dynamics.maps import Map
from attractor.errors import InputError


def as_state(x0: float | Tensor) -> Tensor:
    """A state in a floating-point type; a plain number in double precision."""
    state = torch.as_tensor(x0, dtype=None if isinstance(x0, Tensor) else torch.float64).detach()
    return state if state.is_floating_point() else state.double()


@torch.no_grad()
def orbit(step: Map, x0: float | Tensor, steps: int) -> Tensor:
    """The states ``(steps + 1, ...)`` that follow `x0`, with `x0` first.

    Example:
        >>> orbit(lambda x: 0.5 * x, 8.0, 3).tolist()
        [8.0, 4.0, 2.0, 1.0]
    """
    state = as_state(x0)
    states = [state]
    for _ in range(whole("steps", steps, 1)):
        state = torch.as_tensor(step(state))
        if state.shape != states[0].shape:
            raise InputError(
                f"expected a step that keeps the shape {tuple(states[0].shape)} of its state, but "
                f"it returned {tuple(state.shape)}. Try a step from a state to the next."
            )
        states.append(state)
    return torch.stack(states)


@dataclass(frozen=True, slots=True)
class Cobweb:
    """A cobweb: outline ``(samples, 2)`` of y = T(x), and the corners ``(2 steps + 1, 2)``.

    The path goes up or down to the outline, which is the computation, and across to the diagonal,
    which is the update. `before` is the outline of the step before, where there is one.
    """

    outline: Tensor
    path: Tensor
    before: Tensor | None = None

    @property
    def states(self) -> Tensor:
        """The orbit ``(steps + 1,)``: the points of the path that are on the diagonal."""
        return self.path[::2, 0]


@torch.no_grad()
def cobweb(
    step: Map,
    x0: float = 0.5,
    *,
    steps: int = 20,
    low: float | None = None,
    high: float | None = None,
    before: Map | None = None,
    samples: int = 401,
) -> Cobweb:
    r"""Follow :math:`x_t = T(x_{t-1})` between the outline of T and the diagonal.

    Args:
        step: T, from a tensor to a tensor of its shape, element by element.
        x0: where the orbit starts.
        steps: how far it is followed.
        low: where to begin to draw; ``None`` is a little before the orbit.
        high: where to end; ``None`` is a little behind it.
        before: the map of the step before, whose outline is shown too.
        samples: points of the outline.

    Example:
        >>> web = cobweb(lambda x: 0.5 * x, 8.0, steps=2, low=0, high=8)
        >>> web.path.tolist()
        [[8.0, 8.0], [8.0, 4.0], [4.0, 4.0], [4.0, 2.0], [2.0, 2.0]]
        >>> web.states.tolist()
        [8.0, 4.0, 2.0]

    References:
        Kuo (2021), thesis, section 2.3.2; Kuo et al. (2018), DecayNet, appendix A.
    """
    states = orbit(step, float(x0), steps)
    if not bool(states.isfinite().all()):
        left = int(states.isfinite().cumprod(0).sum())
        raise InputError(
            f"expected an orbit that stays finite, but from {x0} it leaves all bounds in "
            f"step {left}. Try fewer steps, or another start."
        )
    corners = torch.stack([states[:-1], states[1:]], -1)
    ends = torch.stack([states[1:], states[1:]], -1)
    path = torch.cat([states[:1, None].expand(1, 2), torch.stack([corners, ends], 1).flatten(0, 1)])
    reach = max(float(states.abs().max()), 1e-3) * 1.15
    x = torch.linspace(
        -reach if low is None else low,
        reach if high is None else high,
        whole("samples", samples, 2),
        dtype=torch.float64,
    )
    old = None if before is None else torch.stack([x, before(x)], -1)
    return Cobweb(torch.stack([x, step(x)], -1), path, old)


@dataclass(frozen=True, slots=True)
class Bifurcation:
    """Where orbits end for each parameter: parameters ``(n,)``, states ``(n, kept)``."""

    parameters: Tensor
    states: Tensor


@torch.no_grad()
def bifurcation(
    step: Callable[[Tensor, Tensor], Tensor],
    parameters: Tensor,
    x0: float = 0.5,
    *,
    discard: int = 500,
    keep: int = 100,
) -> Bifurcation:
    """Follow one orbit for each parameter, all at once, and keep its last states.

    Args:
        step: from the states ``(n,)`` and the parameters ``(n,)`` to the next states.
        parameters: one for each orbit.
        x0: where all start.
        discard: steps before any is kept.
        keep: how many states are kept.

    Example:
        >>> r = torch.tensor([2.0, 3.2])
        >>> ends = bifurcation(lambda x, r: r * x * (1 - x), r, keep=2)
        >>> [sorted(round(x, 3) for x in row) for row in ends.states.tolist()]
        [[0.5, 0.5], [0.513, 0.799]]
    """
    r = as_state(parameters).double().reshape(-1)
    states = orbit(lambda x: step(x, r), torch.full_like(r, float(x0)), discard + keep)
    return Bifurcation(r, states[-whole("keep", keep, 1) :].T)
