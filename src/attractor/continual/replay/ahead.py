"""Random draws that are looked at before they are made."""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Generator, Tensor

T = TypeVar("T")


class Ahead(Generic[T]):
    """What a generator is about to draw: to look at it any number of times, then to take it.

    Args:
        generator: moves on only when something is taken.

    Example:
        >>> ahead = Ahead(torch.Generator().manual_seed(0))
        >>> draw = lambda g: int(torch.randint(100, (), generator=g))
        >>> ahead.look("a number", draw) == ahead.look("a number", draw)
        True
        >>> seen = ahead.look("a number", draw)
        >>> ahead.take("a number", draw) == seen, ahead.look("a number", draw) == seen
        (True, False)
    """

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self._seen: tuple[object, Tensor, Tensor, T] | None = None

    def look(self, what: object, draw: Callable[[Generator], T]) -> T:
        """What `take` will give; `what` tells one kind of draw from another."""
        return self._ahead(what, draw)[1]

    def take(self, what: object, draw: Callable[[Generator], T]) -> T:
        """Draw, and move the generator on."""
        after, found = self._ahead(what, draw)
        self.generator.set_state(after)
        self.forget()
        return found

    def forget(self) -> None:
        """Look anew, since what is drawn from has changed."""
        self._seen = None

    def _ahead(self, what: object, draw: Callable[[Generator], T]) -> tuple[Tensor, T]:
        before = self.generator.get_state()
        if self._seen is None or self._seen[0] != what or not torch.equal(self._seen[1], before):
            copy = Generator()
            copy.set_state(before)
            found = draw(copy)
            self._seen = (what, before, copy.get_state(), found)
        return self._seen[2:]
