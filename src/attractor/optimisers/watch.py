"""What a model is shown, for an optimiser that wants to see it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from attractor.optimisers.learned import Learned


class Watch:
    """A hook that shows an optimiser the input of each training pass of a model.

    The optimiser is held weakly, so a model does not keep it alive, and a copy of the model, by
    ``copy.deepcopy`` or ``torch.save``, shows its passes to nobody.

    Args:
        optimiser: is shown the first tensor among the model's arguments.
        model: is watched until `remove` is called.

    Example:
        >>> import torch
        >>> from attractor.optimisers import MTL2L
        >>> model = nn.Linear(3, 1)
        >>> optimiser = MTL2L(context_size=3)(model.parameters())
        >>> watch = optimiser.watch(model)
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()
        >>> watch.remove()
    """

    def __init__(self, optimiser: Learned | None = None, model: nn.Module | None = None) -> None:
        self._optimiser = None if optimiser is None else weakref.ref(optimiser)
        self._handle: RemovableHandle | None = None
        if model is not None:
            self._handle = model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        shown = next((x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)), None)
        if module.training and shown is not None:
            self._show(shown.detach())

    def __reduce__(self) -> tuple[type[Watch], tuple[()]]:
        return Watch, ()

    def remove(self) -> None:
        """Watch no longer, and forget what was seen."""
        if self._handle is not None:
            self._handle.remove()
        self._show(None)

    def _show(self, shown: Tensor | None) -> None:
        optimiser = None if self._optimiser is None else self._optimiser()
        if optimiser is not None:
            optimiser._seen = shown
