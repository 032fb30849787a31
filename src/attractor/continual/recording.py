"""What linear layers read and put out in one pass."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class UnusualError(Exception):
    """A layer was not used once, on vectors."""


class Recording:
    """Linear layers that note what they read and put out while this is open.

    Args:
        layers: of which each has to be used once, on vectors.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> with Recording([layer]) as recording:
        ...     loss = layer(torch.ones(3, 2)).sum()
        >>> recording.reads()[0].shape, recording.deltas(loss)[0].flatten()
        (torch.Size([3, 2]), tensor([1., 1., 1.]))
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = layers
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> "Recording":
        self._hooks = [layer.register_forward_hook(self._note) for layer in self.layers]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _note(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if id(layer) in self._found or inputs[0].ndim != 2:
            raise UnusualError("a layer was used twice, or not on vectors")
        self._found[id(layer)] = (inputs[0].detach(), output)

    def reads(self) -> list[Tensor]:
        """What each layer read."""
        if len(self._found) != len(self.layers):
            raise UnusualError("a layer was not used")
        return [self._found[id(layer)][0] for layer in self.layers]

    def deltas(self, loss: Tensor) -> list[Tensor | None]:
        """The gradient of the loss in each layer's output, if anything in the layer is trained."""
        trained = [
            layer for layer in self.layers if any(p.requires_grad for p in layer.parameters())
        ]
        wanted = [self._found[id(layer)][1] for layer in trained]
        found = torch.autograd.grad(loss, wanted, materialize_grads=True) if wanted else ()
        of = dict(zip(map(id, trained), found, strict=True))
        return [of.get(id(layer)) for layer in self.layers]
