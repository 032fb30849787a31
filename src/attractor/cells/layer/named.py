"""A layer by its own name for each cell: ``attractor.LSTM`` for ``nn.LSTM``.

The layers are made from the table of cells. What a type checker and an editor see of them is in
``named.pyi``, which ``make stubs`` writes.
"""

from inspect import Parameter, Signature, signature
from typing import Any

from attractor.cells.layer.options import cell_options
from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.table import CELLS

COMMON = [p for p in signature(Recurrent).parameters.values() if p.name != "cell"]
"""The parameters of every layer."""

PLACES = {"rnn": {"nonlinearity": 3}, "lstm": {"proj_size": 7}}
"""Options of a cell that have a place among the positional arguments, as in torch."""


def parameters(key: str) -> list[Parameter]:
    """The parameters of the layer of a cell, in torch's order."""
    options = cell_options(CELLS[key])
    found = [p for p in COMMON if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    for name, place in PLACES.get(key, {}).items():
        moved = options[name].replace(kind=Parameter.POSITIONAL_OR_KEYWORD)
        found.insert(place, moved)
    names = {p.name for p in found}
    found += [p for name, p in options.items() if name not in names]
    return found + [p for p in COMMON if p.kind is Parameter.KEYWORD_ONLY]


def _layer(key: str) -> type[Recurrent]:
    """A `Recurrent` with its cell chosen, and arguments in the order of torch's layers."""
    cell, listed = CELLS[key], parameters(key)
    name = cell.__name__.removesuffix("Cell")
    order = [p.name for p in listed if p.kind is Parameter.POSITIONAL_OR_KEYWORD]

    def __init__(self: Recurrent, *arguments: Any, **options: Any) -> None:  # noqa: N807
        if len(arguments) > len(order):
            raise TypeError(
                f"{name} takes at most {len(order)} positional arguments ({', '.join(order)}), "
                f"but got {len(arguments)}."
            )
        placed: dict[str, Any] = dict(zip(order, arguments, strict=False))
        Recurrent.__init__(self, key, **placed, **options)

    return type(
        name,
        (Recurrent,),
        {
            "__init__": __init__,
            "__doc__": f"A `Recurrent` layer of `{cell.__name__}`, called as ``nn.LSTM``.\n\n"
            f"{cell.__doc__}",
            "__module__": __name__,
            "__signature__": Signature(listed),
        },
    )


LAYERS: dict[str, type[Recurrent]] = {
    cell.__name__.removesuffix("Cell"): _layer(key) for key, cell in CELLS.items()
}
"""The layers by name."""


def __getattr__(name: str) -> type[Recurrent]:
    if name in LAYERS:
        return LAYERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
