"""Networks with more units that say the same."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Generator, nn

from attractor.cells import Recurrent
from attractor.cells.wrap.dropconnect import WeightDrop
from attractor.checks import number, whole
from attractor.continual.growing.cells import PASSING, edits_of, resized
from attractor.continual.growing.widening import (
    Edit,
    Edits,
    Growth,
    Wide,
    beside,
    kept,
    units,
    widened,
)
from attractor.errors import InputError
from attractor.models import (
    HCN,
    MLP,
    LanguageModel,
    MultiHead,
    ResMLP,
    SequenceClassifier,
    SequenceTagger,
    StrokeReader,
)

Found = dict[str, Edits]


def grow(
    model: nn.Module,
    hidden_size: int,
    *,
    noise: float = 1.0,
    generator: Generator | None = None,
) -> nn.Module:
    r"""A wider network that says what the given one does, to rounding (Net2WiderNet).

    .. math::
        U_{jk} = W_{g(j)k}, \qquad
        U_{kj} = \frac{W_{kg(j)}}{f_{g(j)}} + \varepsilon_{kj}, \qquad
        \sum_{j: g(j) = i} \varepsilon_{kj} = 0

    Units are copied, :math:`f` times each; what reads them is shared out among the copies, with
    noise that is zero in sum, so that copies can part and recurrent matrices have full rank.

    Args:
        model: an `MLP`, `HCN` or `ResMLP`, a `SequenceClassifier`, `SequenceTagger`, `StrokeReader`
            or `LanguageModel` whose embedding is its own, a `Recurrent` or an ``nn.Sequential`` of
            embeddings and these, of any cell whose units can be copied; any number of layers and
            both directions. It is left as it is.
        hidden_size: units of every hidden layer that has fewer.
        noise: how large :math:`\varepsilon` is, in deviations of the weights; 0 means none.
        generator: draws copies and noise; ``None`` means torch's default generator.

    Example:
        >>> model = SequenceTagger("lstm", 8, 16, 7).double()
        >>> wider = grow(model, hidden_size=32)
        >>> x = torch.randn(2, 50, 8).double()
        >>> bool((wider(x) - model(x)).abs().max() < 1e-12)
        True

    Departs from the paper: the thesis adds the noise to the weights into the copies, where the sum
    over copies does not vanish in what is computed; here it is on those out of them, where it does.

    References:
        Chen et al. (2016), Net2Net: accelerating learning via knowledge transfer, arXiv:1511.05641,
        section 2.2; Chandar (2020), section 5.4.3 and algorithm 2; Sodhani et al. (2020).
    """
    return grown(model, hidden_size, noise=noise, generator=generator).model


def grown(
    model: nn.Module,
    hidden_size: int,
    *,
    noise: float = 1.0,
    generator: Generator | None = None,
) -> Growth:
    """As `grow`, with what became of each weight, for `Growth.carry`."""
    whole("hidden_size", hidden_size, 1)
    number("noise", noise, 0)
    wide = deepcopy(model)

    def map_of(n: int) -> Wide:
        return units(n, max(n, hidden_size), generator)

    edits = _edits(wide, "", None, map_of)[0]
    with torch.no_grad():
        for name, some in edits.items():
            parent, _, own = name.rpartition(".")
            old = wide.get_parameter(name)
            new = nn.Parameter(widened(old, some, noise, generator), old.requires_grad)
            setattr(wide.get_submodule(parent), own, new)
    if [p.shape for p in wide.parameters()] == [p.shape for p in model.parameters()]:
        raise InputError(
            f"expected a hidden_size above that of the network, but got {hidden_size}, which no "
            f"layer of {type(model).__name__} has fewer units than. Try {2 * hidden_size}."
        )
    return Growth(wide, edits)


def _edits(
    model: nn.Module, prefix: str, inputs: Wide | None, map_of: Callable[[int], Wide]
) -> tuple[Found, Wide | None]:
    """What becomes of each weight below a module, and of its outputs; sizes are set on the way."""
    match model:
        case MultiHead():
            return _edits(model.body, f"{prefix}body.", inputs, map_of)
        case MLP():
            return _layered(model, prefix, inputs, map_of)
        case HCN() | ResMLP():
            return _joined(model, prefix, inputs, map_of)
        case SequenceClassifier() | SequenceTagger() | StrokeReader():
            found, outputs = _recurrent(model.recurrent, f"{prefix}recurrent.", inputs, map_of)
            return found | _linear(model.readout, f"{prefix}readout.", outputs), None
        case LanguageModel():
            return _language(model, prefix, map_of)
        case Recurrent():
            return _recurrent(model, prefix, inputs, map_of)
        case nn.Sequential():
            found = {}
            for name, one in model.named_children():
                some, inputs = _edits(one, f"{prefix}{name}.", inputs, map_of)
                found |= some
            return found, inputs
        case nn.Embedding() | nn.Flatten() | nn.Dropout() | nn.Identity():
            return {}, inputs
        case nn.Linear():
            return _linear(model, prefix, inputs), None
    raise InputError(
        "expected a network whose units can be copied (MLP, HCN, ResMLP, SequenceClassifier, "
        "SequenceTagger, StrokeReader, LanguageModel, Recurrent, or an nn.Sequential of them), but "
        f"got {type(model).__name__}. Grow the parts of it that can."
    )


def _linear(layer: Any, prefix: str, inputs: Wide | None, outputs: Wide | None = None) -> Found:
    found: Found = {}
    own = None if outputs is None else Edit("copy", outputs)
    reads = None if inputs is None else Edit("share", inputs)
    if own is None and reads is None:
        return found
    found[f"{prefix}weight"] = (own, reads)
    if own is not None and layer.bias is not None:
        found[f"{prefix}bias"] = (own,)
    layer.in_features = layer.in_features if inputs is None else len(inputs.units)
    layer.out_features = layer.out_features if outputs is None else len(outputs.units)
    return found


def _layered(
    model: MLP, prefix: str, inputs: Wide | None, map_of: Callable[[int], Wide]
) -> tuple[Found, Wide | None]:
    found: Found = {}
    layers: list[Any] = list(model.layers)
    for place, layer in enumerate(layers):
        last = place == len(layers) - 1
        outputs = None if last else map_of(layer.out_features)
        found |= _linear(layer, f"{prefix}layers.{place}.", inputs, outputs)
        inputs = outputs
    return found, None


def _joined(
    model: Any, prefix: str, inputs: Wide | None, map_of: Callable[[int], Wide]
) -> tuple[Found, Wide | None]:
    """Layers past which something goes: a unit has the same copies in all of them."""
    own = map_of(model.first.out_features)
    found = _linear(model.first, f"{prefix}first.", inputs, own)
    for place, layer in enumerate(model.layers):
        found |= _linear(layer, f"{prefix}layers.{place}.", own, own)
    for place, gate in enumerate(getattr(model, "gates", ())):
        found |= _linear(gate, f"{prefix}gates.{place}.", inputs, own)
    return found | _linear(model.last, f"{prefix}last.", own), None


def _language(
    model: LanguageModel, prefix: str, map_of: Callable[[int], Wide]
) -> tuple[Found, Wide | None]:
    """Layers of their own, one on the other, between an embedding and a readout."""
    if model.readout.weight is model.embedding.weight:
        raise InputError(
            "expected a LanguageModel whose readout is its own, since what reads copied units is "
            "shared out among them and an embedding is not, but got a tied one. Try tied=False."
        )
    found: Found = {}
    inputs: Wide | None = None
    for place, layer in enumerate(model.layers):
        name = f"{prefix}layers.{place}."
        dropped = isinstance(layer, WeightDrop)
        inner: Any = layer.layer if dropped else layer
        some, inputs = _recurrent(inner, f"{name}layer." if dropped else name, inputs, map_of)
        found |= some
    return found | _linear(model.readout, f"{prefix}readout.", inputs), None


def _recurrent(
    layer: Recurrent, prefix: str, inputs: Wide | None, map_of: Callable[[int], Wide]
) -> tuple[Found, Wide]:
    found: Found = {}
    directions, cells = layer.num_directions, list(layer.cells)
    below = inputs or kept(layer.input_size)
    layer.input_size = len(below.units)
    for place in range(layer.num_layers):
        outputs = []
        for direction in range(directions):
            index = place * directions + direction
            cell: Any = cells[index]
            n = cell.hidden_size
            inner = type(getattr(cell, "cell", cell)).__name__
            passes = inner in PASSING and len(below.units) > cell.input_size == n
            own = below if passes else map_of(n)
            for name, some in edits_of(cell, below, own).items():
                found[f"{prefix}cells.{index}.{name}"] = some
            if layer.initial is not None:
                for name, start in layer.initial[index].named_parameters():
                    *rest, size = start.shape
                    start_edits = (*[None] * len(rest), Edit("copy", own.repeated(size)))
                    found[f"{prefix}initial.{index}.{name}"] = start_edits
            outputs.append(own if cell.output_size == n else kept(cell.output_size))
            resized(cell, below, own)
        below = beside(outputs)
    layer.hidden_sizes = tuple(cell.hidden_size for cell in cells[::directions])  # type: ignore[misc]
    layer.hidden_size, layer.output_size = layer.hidden_sizes[-1], len(below.units)
    return found, below
