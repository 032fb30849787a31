"""Networks that grow to the sizes of a saved one."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from attractor.continual.growing.deeper import deepen
from attractor.continual.growing.heads import more_answers
from attractor.continual.growing.models import grow
from attractor.continual.readouts import readout
from attractor.errors import InputError

Sizes = dict[str, torch.Size]


def as_saved(model: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    """The network itself if it has the sizes of a saved one, else one that has grown to them.

    Its weights are still to be loaded. It may become deeper, wider and have more answers; since
    `grow` gives every layer that has fewer units the same number, one size says it all.

    Args:
        model: as it was before it grew; it is left as it is.
        state: the ``state_dict()`` of the one that had grown.

    Example:
        >>> from attractor.models import MLP
        >>> wide = deepen(grow(MLP([4, 8, 2]), 16))
        >>> found = as_saved(MLP([4, 8, 2]), wide.state_dict())
        >>> [layer.out_features for layer in found.layers]
        [16, 16, 2]
    """
    wanted = _sizes(state)
    with torch.random.fork_rng(devices=[]):  # new layers draw weights, which are not used
        found = _ahead(model, wanted)
    if _sizes(found.state_dict()) == wanted:
        return found
    for size in sorted({n for shape in wanted.values() for n in shape}):
        try:
            wide = grow(found, size, generator=torch.Generator())
        except InputError:  # it has as many units, or cannot have as many
            continue
        if _sizes(wide.state_dict()) == wanted:
            return wide
    own = _sizes(model.state_dict())
    name = next(n for n in {**wanted, **own} if wanted.get(n) != own.get(n))
    raise InputError(
        f"expected the state of a network to which this {type(model).__name__} can grow, but the "
        f"saved one has {_told(name, wanted)}, and this one {_told(name, own)}. Make the learner "
        "with the network as it had grown."
    )


def _ahead(model: nn.Module, wanted: Sizes) -> nn.Module:
    """The network with as many layers and answers as the saved one, as far as it can."""
    try:
        while len(model.state_dict()) < len(wanted):
            model = deepen(model)
        name, layer = readout(model)
        rows = wanted[f"{name}.weight"]
        if rows[0] > layer.out_features:
            model = more_answers(model, rows[0], generator=torch.Generator()).model
    except (InputError, KeyError):
        pass
    return model


def _sizes(state: Mapping[str, Tensor]) -> Sizes:
    return {name: value.shape for name, value in state.items()}


def _told(name: str, sizes: Sizes) -> str:
    return f"{name} of shape {tuple(sizes[name])}" if name in sizes else f"no {name}"
