"""The leading eigenvalues of a loss's Hessian, and whether a step of gradient descent goes down."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.errors import InputError

Loss = Callable[[], Tensor]
"""The loss at the present parameters, as a scalar that autograd can go back from."""


@dataclass(frozen=True, slots=True)
class HessianEigenvalues:
    """Eigenvalues ``(count,)``, largest magnitude first, and how far each is from being one.

    `residuals` are the lengths of :math:`H v - \\lambda v`.
    """

    values: Tensor
    residuals: Tensor
    iterations: int


def product(loss: Loss, parameters: list[nn.Parameter]) -> Callable[[Tensor], Tensor]:
    """The function from a flat vector v to H v, by differentiating the gradient once more."""
    with torch.enable_grad():
        grads = torch.autograd.grad(loss(), parameters, create_graph=True, materialize_grads=True)
        flat = torch.cat([grad.reshape(-1) for grad in grads])

    def times(v: Tensor) -> Tensor:
        if not flat.requires_grad:  # a loss that is linear in its parameters
            return torch.zeros_like(v)
        found = torch.autograd.grad(flat, parameters, v, retain_graph=True, materialize_grads=True)
        return torch.cat([part.reshape(-1) for part in found])

    return times


def hessian_eigenvalues(
    loss: Loss,
    parameters: nn.Module | list[nn.Parameter],
    count: int = 5,
    *,
    iterations: int | None = None,
    generator: Generator | None = None,
) -> HessianEigenvalues:
    r"""The eigenvalues of largest magnitude of :math:`\nabla^2 L`, by Lanczos.

    Only products of the Hessian with vectors are computed, each for about the price of two
    gradients. The basis is orthogonalised in full, so no eigenvalue comes twice.

    Args:
        loss: a function without arguments that returns the loss at the present parameters.
        parameters: a module, or the parameters themselves; they and their ``grad`` stay as they
            are.
        count: how many eigenvalues.
        iterations: of Lanczos; by default four times `count` plus 20, at most the parameters.
        generator: draws the first vector; ``None`` means a fixed seed.

    Example:
        >>> w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        >>> scale = torch.tensor([1.0, 10.0, -4.0])
        >>> found = hessian_eigenvalues(lambda: (scale * w**2).sum() / 2, [w], 2)
        >>> [round(value, 3) for value in found.values.tolist()]
        [10.0, -4.0]

    References:
        Ghorbani et al. (2019), An investigation into neural net optimization via Hessian
        eigenvalue density; Kuo (2021), thesis, section 2.2.4.
    """
    own = list(parameters.parameters()) if isinstance(parameters, nn.Module) else list(parameters)
    own = [parameter for parameter in own if parameter.requires_grad]
    if not own:
        raise InputError(
            "expected parameters that ask for a gradient, but there are none. "
            "Try model.requires_grad_()."
        )
    size = sum(parameter.numel() for parameter in own)
    wanted = min(whole("count", count, 1), size)
    most = min(size, 4 * wanted + 20 if iterations is None else whole("iterations", iterations, 1))
    times = product(loss, own)
    like = own[0]
    drawn = torch.randn(size, generator=generator or torch.Generator().manual_seed(0))
    basis = [F.normalize(drawn.to(like), dim=0)]
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for step in range(most):
        w = times(basis[-1]).detach()
        diagonal.append(w @ basis[-1])
        Q = torch.stack(basis)
        for _ in range(2):  # once is not enough in finite precision
            w = w - Q.T @ (Q @ w)
        length = w.norm()
        if step == most - 1 or float(length) <= 1e-7 * max(1.0, float(diagonal[0].abs())):
            last = length
            break
        beside.append(length)
        basis.append(w / length)
    n = len(diagonal)
    T = torch.diag(torch.stack(diagonal).double())
    if n > 1:
        off = torch.stack(beside[: n - 1]).double()
        T = T + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(T)
    order = values.abs().argsort(descending=True)[:wanted]
    residuals = float(last) * vectors[-1, order].abs()
    return HessianEigenvalues(values[order], residuals, n)


@dataclass(frozen=True, slots=True)
class StepCondition:
    r"""The second-order view of one step of gradient descent with rate :math:`\epsilon`.

    .. math::
        L(w - \epsilon g) \approx L(w) - \epsilon g^\top g + \tfrac12 \epsilon^2 g^\top H g

    `largest_rate` is :math:`2 g^\top g / g^\top H g`, above which the estimate no longer falls
    (infinite where the loss curves down along the gradient).
    """

    first_order: float
    second_order: float
    predicted: float
    actual: float
    largest_rate: float


def step_condition(
    loss: Loss, parameters: nn.Module | list[nn.Parameter], rate: float
) -> StepCondition:
    """What a step of gradient descent should do to the loss, to second order, and what it does.

    The parameters are moved for one evaluation, and put back.

    Example:
        >>> w = nn.Parameter(torch.tensor([1.0, 1.0]))
        >>> told = step_condition(lambda: (torch.tensor([1.0, 9.0]) * w**2).sum() / 2, [w], 0.1)
        >>> round(told.largest_rate, 3), round(told.predicted - told.actual, 6) + 0.0
        (0.225, 0.0)

    References:
        Kuo (2021), thesis, appendix B, ICC-09; Santurkar et al. (2018).
    """
    own = list(parameters.parameters()) if isinstance(parameters, nn.Module) else list(parameters)
    own = [parameter for parameter in own if parameter.requires_grad]
    with torch.enable_grad():
        now = loss()
        grads = torch.autograd.grad(now, own, materialize_grads=True)
    g = torch.cat([grad.reshape(-1) for grad in grads])
    squared, curved = float(g @ g), float(g @ product(loss, own)(g))
    kept = [parameter.detach().clone() for parameter in own]
    try:
        with torch.no_grad():
            for parameter, grad in zip(own, grads, strict=True):
                parameter.sub_(rate * grad)
            actual = float(loss()) - float(now)
    finally:
        with torch.no_grad():
            for parameter, old in zip(own, kept, strict=True):
                parameter.copy_(old)
    first, second = -rate * squared, 0.5 * rate**2 * curved
    return StepCondition(
        first, second, first + second, actual, 2 * squared / curved if curved > 0 else float("inf")
    )
