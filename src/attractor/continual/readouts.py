"""The last linear layer of a network, and what it reads."""

from typing import Any

from torch import Tensor, nn

from attractor.errors import InputError
from attractor.tasks import Batch
from attractor.tasks.answers import tell


def readout(model: nn.Module) -> tuple[str, nn.Linear]:
    """The name of the linear layer with which a network ends, and the layer.

    Example:
        >>> from attractor.models import MLP
        >>> readout(MLP([4, 3, 2]))
        ('layers.1', Linear(in_features=3, out_features=2, bias=True))
    """
    found = [(name, one) for name, one in model.named_modules() if isinstance(one, nn.Linear)]
    if not found:
        raise InputError(
            "expected a network that ends with a linear layer, whose inputs are its features, but "
            f"{type(model).__name__} has none. Add an nn.Linear."
        )
    return found[-1]


def replaced(model: nn.Module, name: str, layer: nn.Module) -> nn.Module:
    """The model, with another layer under a name."""
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, layer)
    return model


def features(model: nn.Module, batch: Batch) -> Tensor:
    """What the last layer reads of each sample.

    Shape:
        ``(samples, features)``.

    Example:
        >>> import torch
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        >>> features(model, Batch(torch.ones(3, 4), torch.zeros(3))).shape
        torch.Size([3, 4])
    """
    read: list[Tensor] = []

    def note(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        read.append(inputs[0])

    hook = readout(model)[1].register_forward_pre_hook(note)
    try:
        tell(model, batch.inputs, batch.task)
    finally:
        hook.remove()
    if len(read) != 1 or read[0].shape[:-1] != (len(batch),):
        raise InputError(
            "expected a network whose last layer reads the features of each sample once, but it "
            f"reads {[tuple(one.shape) for one in read]} of {len(batch)} samples. Try another "
            "strategy, such as er."
        )
    return read[0]
