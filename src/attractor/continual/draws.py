"""What a learner draws from torch's default generator, which others draw from too."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Draws:
    """A state of torch's default generator that belongs to one learner.

    Dropout, and cells that draw, take no generator. While this is open they draw from here, on the
    CPU; afterwards the default generator is where it was.

    Args:
        seed: decides what is drawn.

    Example:
        >>> one, other, numbers = Draws(3), Draws(3), []
        >>> for own in (one, other):
        ...     _ = torch.rand(5)  # somebody else
        ...     with own():
        ...         numbers.append(float(torch.rand(())))
        >>> numbers[0] == numbers[1]
        True
    """

    def __init__(self, seed: int) -> None:
        self.state = torch.Generator().manual_seed(seed).get_state()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        outside = torch.get_rng_state()
        torch.set_rng_state(self.state)
        try:
            yield
        finally:
            self.state = torch.get_rng_state()
            torch.set_rng_state(outside)
