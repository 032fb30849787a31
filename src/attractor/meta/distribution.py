"""Problems at random: what a learner is, drawn anew for each from lists and ranges."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Generator, nn

from attractor.errors import InputError
from attractor.meta.learners import Problem

RANGE = {"from", "to"}


class Distribution:
    """What makes a problem from values that are drawn at random.

    In the place of a `Problem` a trainer takes this too, and draws anew for each learner.

    Args:
        make: makes a problem from values by name; called with the same, it makes the same.
        choices: by name, a list to choose from, each entry as likely as another; or a range
            ``{"from": 8, "to": 128}``, evenly on a logarithmic scale, of whole numbers if both
            are; or a dictionary of such.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> task = Digits(order="flat")
        >>> def make(width: int, activation: str, batch_size: int) -> Problem:
        ...     sizes = [64, width, 10]
        ...     model = lambda g: MLP(sizes, activation=activation, generator=g)
        ...     return Problem(model, task, batch_size)
        >>> some = Distribution(
        ...     make,
        ...     width={"from": 8, "to": 128}, activation=["relu", "tanh"], batch_size=[32, 128],
        ... )
        >>> drawn = some.draw(torch.Generator().manual_seed(0))
        >>> drawn
        {'width': 32, 'activation': 'tanh', 'batch_size': 128}
        >>> some.made(drawn).batch_size
        128
    """

    def __init__(self, make: Callable[..., Problem], **choices: Any) -> None:
        for name, choice in choices.items():
            _check(name, choice)
        self.make, self.choices = make, choices

    def draw(self, generator: Generator) -> dict[str, Any]:
        """Plain values, one for each choice."""
        return {name: _drawn(choice, generator) for name, choice in self.choices.items()}

    def made(self, drawn: Mapping[str, Any]) -> Problem:
        """The problem of values that were drawn."""
        return self.make(**drawn)


def quieter(network: nn.Module, factor: float) -> nn.Module:
    """A network whose last layer starts at so much of its initial weights; 0 is silence.

    Example:
        >>> network = quieter(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), 0.0)
        >>> [bool(p.any()) for p in network.parameters()]
        [True, True, False, False]
    """
    every = list(network.parameters())
    matrices = [i for i, parameter in enumerate(every) if parameter.dim() > 1]
    with torch.no_grad():
        for parameter in every[matrices[-1] :] if matrices else ():
            parameter.mul_(factor)
    return network


def _drawn(choice: Any, generator: Generator) -> Any:
    if not isinstance(choice, Mapping):
        place = torch.randint(len(choice), (), generator=generator, device=generator.device)
        return choice[int(place)]
    if choice.keys() != RANGE:
        return {name: _drawn(one, generator) for name, one in choice.items()}
    low, high = choice["from"], choice["to"]
    u = torch.rand((), generator=generator, device=generator.device).item()
    value = low * (high / low) ** u
    return round(value) if isinstance(low, int) and isinstance(high, int) else value


def _check(name: str, choice: Any) -> None:
    if isinstance(choice, Mapping) and choice.keys() != RANGE and choice:
        for inner, one in choice.items():
            _check(f"{name}.{inner}", one)
        return
    if isinstance(choice, list | tuple) and choice:
        return
    bounds = [choice["from"], choice["to"]] if isinstance(choice, Mapping) and choice else []
    numbers = all(isinstance(one, int | float) and 0 < one < math.inf for one in bounds)
    if not (bounds and numbers and bounds[0] <= bounds[1]):
        raise InputError(
            f"expected {name} to be a list to choose from, or a range such as {{from = 8, to = "
            f"128}} of numbers above 0, but got {choice!r}. Try {name} = [{choice!r}]."
        )
