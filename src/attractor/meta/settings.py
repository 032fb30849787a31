"""What the settings of all estimators have in common: their checks, and what is drawn."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import TypeGuard

import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.optimisers import Rule
from attractor.training.process import Row


def measured(loss: float, last: float) -> list[Row]:
    """What an update of a rule came to: the mean loss, and that at the end of the unroll.

    Nothing, if it is not finite.

    Example:
        >>> measured(2.0, 1.5)
        [{'split': 'meta', 'loss': 2.0, 'last': 1.5}]
    """
    finite = math.isfinite(loss) and math.isfinite(last)
    return [{"split": "meta", "loss": loss, "last": last}] if finite else []


def bounds(steps: int | Sequence[int]) -> tuple[int, int]:
    """The two numbers between which a horizon is drawn, which may be the same.

    Example:
        >>> bounds(100), bounds((50, 200))
        ((100, 100), (50, 200))
    """
    pair = (steps, steps) if isinstance(steps, int) else tuple(steps)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in pair)
    if len(pair) != 2 or not whole:
        raise InputError(
            f"expected steps to be a whole number of at least 1, or two such numbers, but got "
            f"{steps}. Try steps=100, or steps=(50, 200)."
        )
    return pair


def draw_horizon(steps: int | Sequence[int], generator: Generator) -> int:
    """A number between two, evenly on a logarithmic scale; one number is taken as it is.

    Example:
        >>> draw_horizon(100, torch.Generator())
        100
    """
    if isinstance(steps, int):
        return steps
    low, high = steps
    u = torch.rand((), generator=generator, device=generator.device).item()
    return round(low * (high / low) ** u)


def normal(shape: Sequence[int], *, like: Tensor, generator: Generator) -> Tensor:
    """Normal numbers of a tensor's type, drawn where the generator is and put where the tensor is.

    Example:
        >>> normal((2, 3), like=torch.zeros(1), generator=torch.Generator()).shape
        torch.Size([2, 3])
    """
    drawn = torch.randn(
        tuple(shape), generator=generator, dtype=like.dtype, device=generator.device
    )
    return drawn.to(like.device)


def check_counts(**counts: tuple[int, int | None]) -> None:
    """Refuse a number that is not whole, below 1 or above its limit."""
    for name, (value, most) in counts.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < 1 or (most is not None and value > most):
            limit = "" if most is None else f" and at most {most}"
            raise InputError(
                f"expected {name} to be at least 1{limit}, but got {value}. Try {name}=1."
            )


def check_numbers(**numbers: object) -> None:
    """Refuse what is no number, not finite or below 0."""
    for name, value in numbers.items():
        if not (_real(value) and 0 <= value < math.inf):
            raise InputError(
                f"expected {name} to be a finite number of at least 0, but got {value!r}. Leave it "
                "out for the default."
            )


def check_above_zero(**numbers: object) -> None:
    """Refuse what is no number, or not above 0; it may be infinite."""
    for name, value in numbers.items():
        if not (_real(value) and value > 0):
            raise InputError(
                f"expected {name} to be a number above 0, but got {value!r}. Leave it out for the "
                "default."
            )


def _real(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_choices(**choices: tuple[object, Sequence[object]]) -> None:
    """Refuse what is not among the choices."""
    for name, (value, known) in choices.items():
        if value not in known:
            listed = " or ".join(map(repr, known))
            raise InputError(
                f"expected {name} to be {listed}, but got {value!r}. Try {name}={known[0]!r}."
            )


def check_trainable(rule: Rule) -> None:
    """Refuse a rule of which nothing may change."""
    if not any(p.requires_grad for p in rule.parameters()):
        raise InputError(
            f"expected {type(rule).__name__} to have weights to train, but all of its are frozen. "
            "Try rule.requires_grad_(True)."
        )


def check_generator(generator: Generator | None) -> Generator:
    """Refuse to draw from anything but a generator."""
    if not isinstance(generator, Generator):
        raise InputError(
            f"expected a generator, but got {generator!r}. Try "
            "generator=torch.Generator().manual_seed(0)."
        )
    return generator
