"""What makes networks of cells from the tables of a configuration."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Generator, nn

from attractor.cells import Recurrent
from attractor.cells import compose as composed
from attractor.cells.layer.options import LayerCell, cell_options, name_of, resolve
from attractor.checks import whole
from attractor.errors import InputError, unknown
from attractor.models.language_model import LanguageModel
from attractor.models.pair_classifier import PairClassifier
from attractor.models.sequence import SequenceClassifier, SequenceTagger
from attractor.models.stroke_reader import StrokeReader

GIVEN = ("batch_first", "device", "dtype")
"""Options of layers that are not for a configuration to choose."""


def recurrent(
    shape: Sequence[int],
    outputs: int,
    *,
    cell: LayerCell | Sequence[LayerCell],
    hidden_size: int | None = None,
    hidden: Sequence[int] = (),
    num_layers: int = 1,
    compose: Mapping[str, Any] | None = None,
    each_step: bool = False,
    generator: Generator | None = None,
    **options: Any,
) -> nn.Module:
    """A recurrent network that answers once, or at each step.

    Args:
        shape: features of a step.
        outputs: numbers in an answer.
        cell: a key of ``CELLS``, or ``module:Class``; or a list with that of each layer, where a
            table has a ``cell`` and its options.
        hidden_size: units of the cell.
        hidden: the width of each layer, as other networks have it.
        num_layers: how many layers, where no list says so.
        compose: normalisers and regularisers: the arguments of `attractor.cells.compose`.
        each_step: answer at each step.
        generator: draws the initial weights.
        options: of `Recurrent` and of the cell.

    Example:
        >>> import torch
        >>> model = recurrent([28], 10, cell="nru", hidden_size=64)
        >>> model(torch.zeros(5, 28, 28)).shape
        torch.Size([5, 10])
    """
    if (hidden_size is None) == (not hidden):
        raise InputError(
            f"expected hidden_size or hidden for the recurrent network of {cell!r}, but got "
            f"hidden_size={hidden_size} and hidden={list(hidden)}. Try hidden_size=100."
        )
    kind = SequenceTagger if each_step else SequenceClassifier
    widths = [hidden_size] if hidden_size is not None else list(hidden)
    units = widths[0] if len({*widths}) == 1 else widths
    layers = whole("num_layers", num_layers, 1) if len(widths) == 1 else len(widths)
    if num_layers not in (1, layers):
        raise InputError(
            f"expected num_layers={layers}, or none, beside hidden={widths}, which has a size for "
            f"each layer, but got {num_layers}. Leave one of them out."
        )
    given = {**options, "num_layers": layers, "generator": generator}
    return with_cell(kind, cell, compose, (shape[0], units, outputs), given)


def language_model(
    shape: Sequence[int],
    outputs: int,
    *,
    cell: LayerCell | Sequence[LayerCell],
    embedding_size: int,
    hidden: Sequence[int],
    compose: Mapping[str, Any] | None = None,
    each_step: bool = False,
    generator: Generator | None = None,
    **options: Any,
) -> nn.Module:
    """A `LanguageModel`, for texts.

    Args:
        shape: tokens that are told apart.
        outputs: as many.
        cell: a key of ``CELLS``, or ``module:Class``; or a list with that of each layer, where a
            table has a ``cell`` and its options.
        embedding_size: features of an embedded token.
        hidden: units of each layer.
        compose: normalisers and regularisers: the arguments of `attractor.cells.compose`.
        each_step: whether the task asks at each step, as it must.
        generator: draws the initial weights.
        options: of `LanguageModel` and of the cell.
    """
    if not each_step:
        raise InputError(
            "expected a task that asks for an answer at each step, as a language model gives, but "
            "got one that asks once. Try model.name=pair_classifier."
        )
    sizes = (shape[0], embedding_size, list(hidden))
    return with_cell(LanguageModel, cell, compose, sizes, {**options, "generator": generator})


def pair_classifier(
    shape: Sequence[int],
    outputs: int,
    *,
    cell: LayerCell | Sequence[LayerCell],
    embedding_size: int,
    hidden_size: int | Sequence[int],
    compose: Mapping[str, Any] | None = None,
    each_step: bool = False,
    generator: Generator | None = None,
    **options: Any,
) -> nn.Module:
    """A `PairClassifier`, for pairs of sentences.

    Args:
        shape: words that are told apart.
        outputs: classes.
        cell: a key of ``CELLS``, or ``module:Class``; or a list with that of each layer, where a
            table has a ``cell`` and its options.
        embedding_size: features of an embedded word.
        hidden_size: units of the cell, or a list with those of each layer.
        compose: normalisers and regularisers: the arguments of `attractor.cells.compose`.
        each_step: whether the task asks at each step, as it must not.
        generator: draws the initial weights.
        options: of `PairClassifier`, of `Recurrent` and of the cell.
    """
    if each_step:
        raise InputError(
            "expected a task that asks once, as a pair of sentences does, but got one that asks at "
            "each step. Try model.name=language_model."
        )
    sizes = (shape[0], embedding_size, hidden_size, outputs)
    return with_cell(PairClassifier, cell, compose, sizes, {**options, "generator": generator})


def stroke_reader(
    shape: Sequence[int],
    outputs: int,
    *,
    cell: LayerCell | Sequence[LayerCell],
    hidden_size: int | Sequence[int],
    compose: Mapping[str, Any] | None = None,
    generator: Generator | None = None,
    **options: Any,
) -> nn.Module:
    """A `StrokeReader`, for strokes after which digits are to be named.

    Args:
        shape: features of a step.
        outputs: symbols.
        cell: a key of ``CELLS``, or ``module:Class``; or a list with that of each layer, where a
            table has a ``cell`` and its options.
        hidden_size: units of the cell, or a list with those of each layer.
        compose: normalisers and regularisers: the arguments of `attractor.cells.compose`.
        generator: draws the initial weights.
        options: of `Recurrent` and of the cell.
    """
    sizes = (shape[0], hidden_size, outputs)
    return with_cell(StrokeReader, cell, compose, sizes, {**options, "generator": generator})


def with_cell(
    kind: Callable[..., nn.Module],
    cell: Any,
    compose: Mapping[str, Any] | None,
    sizes: Sequence[Any],
    options: Mapping[str, Any],
) -> nn.Module:
    """A network of a cell with what goes on it, once the options are known to be for it."""
    for name in GIVEN:
        if name in options:
            raise InputError(
                f"expected options of the cell {cell}, but got {name!r}, which is not for a "
                "configuration to choose. Leave it out; the device is train.device."
            )
    _check_names(kind, cell, options)
    try:
        return kind(_composed(cell, compose) if compose else cell, *sizes, **options)
    except TypeError as error:
        told = {name: value for name, value in options.items() if name != "generator"}
        raise InputError(
            f"expected values that the cell {cell} can use, but got {told}: {error}. "
            f"Try `attractor list cells {cell}` for its options."
        ) from error


def _check_names(kind: Callable[..., Any], cell: Any, options: Mapping[str, Any]) -> None:
    """Refuse an option that neither the cells nor the network around them have."""
    listed = cell if isinstance(cell, list | tuple) else [cell]
    named = [one.get("cell") if isinstance(one, Mapping) else one for one in listed]
    cells = [resolve(one) for one in named if one is not None]  # whose lack the layer tells of
    signatures = [inspect.signature(one).parameters.values() for one in cells]
    if any(one.kind is one.VAR_KEYWORD for found in signatures for one in found):
        return
    around = {**inspect.signature(Recurrent).parameters, **inspect.signature(kind).parameters}
    known = {name for name, one in around.items() if one.default is not one.empty}
    known |= {name for one in cells for name in cell_options(one)}
    for name in options:
        if name not in known:
            owners = " or ".join(dict.fromkeys(name_of(one) for one in (*cells, kind)))
            known = known - {"generator", *GIVEN} | {"hidden_size"}
            raise unknown(f"option of {owners}", name, known)


def _composed(cell: Any, compose: Mapping[str, Any]) -> Any:
    """A cell, or the cell of each layer, with normalisers and regularisers on it."""
    known = [name for name in inspect.signature(composed).parameters if name != "cell"]
    for name in compose:
        if name not in known:
            raise unknown("key of model.compose", name, known)
    if isinstance(cell, list | tuple):
        return [_composed(one, compose) for one in cell]
    if isinstance(cell, Mapping):
        return {**cell, "cell": composed(cell["cell"], **compose)}
    return composed(cell, **compose)
