"""From what a user asks for to the cells of each layer, with their sizes and options checked."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from attractor.cells.base import Cell, positive
from attractor.cells.table import CELLS
from attractor.checks import plain
from attractor.errors import InputError, unknown
from attractor.tables import fits, lookup

CellFactory = Callable[..., Cell[Any, Any]]
"""A `Cell` class, or whatever else makes a cell from sizes and options."""

LayerCell = str | CellFactory | Mapping[str, Any]
"""The cell of one layer: what `Recurrent` takes, or a table of it as ``cell`` and its options."""


class LayerSpec(NamedTuple):
    """One layer: what makes its cells, how many units they have, and their options."""

    make: CellFactory
    hidden_size: int
    options: dict[str, Any]


def layer_specs(
    owner: type,
    cell: LayerCell | Sequence[LayerCell],
    hidden_size: int | Sequence[int],
    num_layers: int,
    options: Mapping[str, Any],
) -> list[LayerSpec]:
    """What each layer is made of, from the first on.

    Args:
        owner: whom messages name.
        cell: the cell of all layers, or a list with that of each.
        hidden_size: the units of all layers, or a list with those of each.
        num_layers: how many layers, where no list says so.
        options: go to the cells of all layers.

    Example:
        >>> specs = layer_specs(Cell, ["lstm", {"cell": "nru", "heads": 1}], [64, 32], 1, {})
        >>> [(spec.make.__name__, spec.hidden_size, spec.options) for spec in specs]
        [('LSTMCell', 64, {}), ('NRUCell', 32, {'heads': 1})]
    """
    count = positive(owner, "num_layers", num_layers)
    lists = {
        name: given
        for name, given in (("cell", cell), ("hidden_size", hidden_size))
        if isinstance(given, list | tuple)
    }
    for name, given in lists.items():
        if not given or num_layers not in (1, len(given)):
            raise InputError(
                f"{owner.__name__} expects {name} to have an entry for each layer, but got "
                f"{len(given)} and num_layers={num_layers}. Leave num_layers out."
            )
        count = len(given)
    if len({len(given) for given in lists.values()}) > 1:
        raise InputError(
            f"{owner.__name__} expects as many entries in cell as in hidden_size, but got "
            f"{len(lists['cell'])} and {len(lists['hidden_size'])}. Give one for each layer."
        )
    chosen: Any = lists.get("cell", [cell] * count)
    sizes: Any = lists.get("hidden_size", [hidden_size] * count)
    return [_spec(owner, one, size, options) for one, size in zip(chosen, sizes, strict=True)]


def _spec(owner: type, cell: LayerCell, size: int, options: Mapping[str, Any]) -> LayerSpec:
    own = dict(cell) if isinstance(cell, Mapping) else {"cell": cell}
    if "cell" not in own:
        raise InputError(
            f"{owner.__name__} expects the table of a layer to name its cell, but got {own}. "
            "Try {'cell': 'lstm'}."
        )
    make = resolve(own.pop("cell"))
    all_options = {name: plain(value) for name, value in {**options, **own}.items()}
    check_options(make, all_options)
    return LayerSpec(make, positive(owner, "hidden_size", size), all_options)


def resolve(cell: str | CellFactory) -> CellFactory:
    """What makes the cell meant by a key of ``CELLS``, ``module:Class``, a class or a function."""
    if isinstance(cell, str):
        cell = lookup("cell", CELLS, cell)
    if isinstance(cell, Cell):
        made = type(cell).__name__
        raise InputError(
            f"expected cell to be a key of CELLS or a Cell class, but got a {made} that is made "
            f"already. Try {made} itself, and its options beside it."
        )
    if issubclass(cell, Cell) if inspect.isclass(cell) else callable(cell):
        return cell
    raise InputError(
        f"expected cell to be a key of CELLS or a Cell class, but got {cell!r}. "
        f"Try one of {', '.join(sorted(CELLS))}."
    )


def name_of(cell: CellFactory) -> str:
    """The name of a cell in messages."""
    return str(getattr(cell, "__name__", cell))


def cell_options(cell: CellFactory) -> dict[str, inspect.Parameter]:
    """The options of a cell, by name."""
    common = {"generator", "device", "dtype"}
    parameters = inspect.signature(cell).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in common}


def check_options(cell: CellFactory, options: Mapping[str, Any]) -> None:
    """Raise unless the cell knows all options, and their values are of the right kind."""
    known = cell_options(cell)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(cell).parameters.values())
    for name, value in options.items():
        if name in known:
            _check_kind(name_of(cell), known[name], value)
        elif not takes_any:
            raise unknown(f"option of {name_of(cell)}", name, known)
    if options.get("t_max") is not None and options.get("forget_bias") is not None:
        raise InputError(
            f"{name_of(cell)} expects t_max or forget_bias, as both say where the bias of its "
            f"forget gate starts, but got {options['t_max']} and {options['forget_bias']}. Leave "
            "one of them out."
        )


def _check_kind(owner: str, option: inspect.Parameter, value: Any) -> None:
    """A value must be of the kind of the default, or of the hint where that says nothing."""
    name, default, hint = option.name, option.default, option.annotation
    kinds: list[tuple[type, tuple[type, ...], str]] = [
        (bool, (bool,), "True or False"),
        (int, (int,), "a whole number"),
        (float, (int, float), "a finite number"),
        (str, (str,), "text"),
    ]
    for kind, accepted, words in kinds:
        if type(default) is kind:
            right = isinstance(value, accepted) and isinstance(value, bool) == (kind is bool)
            if not right or (kind is float and not math.isfinite(value)):
                raise InputError(
                    f"{owner} expects {name} to be {words}, but got {value!r}. "
                    f"The default is {default!r}."
                )
            return
    if not fits(value, Any if hint is option.empty else hint):
        raise InputError(
            f"{owner} expects {name} to be {inspect.formatannotation(hint)}, but got {value!r}. "
            f"The default is {default!r}."
        )
