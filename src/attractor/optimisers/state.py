"""What a rule remembers of an optimisation: tensors in nested tuples, each with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor


class State(NamedTuple):
    """What a rule remembers of an optimisation.

    Shape:
        each tensor of `each` is ``(learners, coordinates, ...)``, each of `shared` is
        ``(learners, ...)``; both are nested tuples, named or not, and may be empty.

    Example:
        >>> import torch
        >>> from attractor.cells import LSTMState
        >>> state = State(each=(LSTMState(torch.zeros(1, 3, 4), torch.zeros(1, 3, 4)),))
        >>> list(state.named())
        ['0.h', '0.c']
    """

    each: Any = ()
    shared: Any = ()

    def at(self, where: slice) -> State:
        """The state of some of the coordinates."""
        return State(map_tensors(lambda s: s[:, where], self.each), self.shared)

    def map(self, function: Callable[..., Tensor], *others: State) -> State:
        """The state with `function` applied to every tensor, or to those of several states."""
        return State(*map_tensors(function, tuple(self), *others))

    def named(self) -> dict[str, Tensor]:
        """Its tensors: a layer's number and a field's name, such as ``0.h``."""
        return {name: leaf for part in self for name, leaf in _leaves(part)}

    def filled(self, named: Mapping[str, Tensor]) -> State:
        """A state like this one with the tensors of these names in it."""
        names = iter(self.named())
        return self.map(lambda _: named[next(names)])


def map_tensors(function: Callable[..., Tensor], *trees: Any) -> Any:
    """Apply `function` to every tensor of nested tuples, or to those of several alike.

    What torch's pytree does, in a quarter of its time, for it is done several times a block.

    Example:
        >>> import torch
        >>> map_tensors(torch.add, (torch.ones(1), ()), (torch.ones(1), ()))
        (tensor([2.]), ())
    """
    first = trees[0]
    if isinstance(first, Tensor):
        return function(*trees)
    mapped = [map_tensors(function, *parts) for parts in zip(*trees, strict=True)]
    return type(first)(*mapped) if hasattr(first, "_fields") else tuple(mapped)


def longer(old: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of more coordinates and tensors: what there was, and the new behind it.

    Example:
        >>> import torch
        >>> longer({"m": torch.ones(1, 2)}, {"m": torch.zeros(1, 3)})
        {'m': tensor([[1., 1., 0.]])}
    """
    if not old:
        return dict(new)
    return {
        name: old[name]
        if old[name].shape == one.shape
        else torch.cat([old[name], one[:, old[name].shape[1] :]], dim=1)
        for name, one in new.items()
    }


def _leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    if isinstance(tree, Tensor):
        yield name, tree
        return
    for key, part in zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True):
        yield from _leaves(part, f"{name}.{key}" if name else str(key))
