"""A layer by its own name for each cell: ``attractor.LSTM`` for ``nn.LSTM``."""

from typing import Any

from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.table import CELLS
from attractor.errors import InputError


def _layer(key: str) -> type[Recurrent]:
    """A `Recurrent` with its cell chosen, and arguments in ``nn.LSTM``'s order."""
    cell = CELLS[key]

    def __init__(  # noqa: N807
        self: Recurrent,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(bias, bool):
            raise InputError(
                f"{name} expects its fourth argument, bias, to be True or False, but got {bias!r}. "
                "Name other options, such as nonlinearity='relu'."
            )
        # not every cell can do without biases; one that cannot says so
        without: dict[str, Any] = {} if bias else {"bias": False}
        Recurrent.__init__(
            self,
            key,
            input_size,
            hidden_size,
            num_layers,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            **without,
            **options,
        )

    name = cell.__name__.removesuffix("Cell")
    doc = f"A `Recurrent` layer of `{cell.__name__}`, called as ``nn.LSTM``.\n\n{cell.__doc__}"
    return type(name, (Recurrent,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


LAYERS: dict[str, type[Recurrent]] = {
    cell.__name__.removesuffix("Cell"): _layer(key) for key, cell in CELLS.items()
}
"""The layers by name."""


def __getattr__(name: str) -> type[Recurrent]:
    if name in LAYERS:
        return LAYERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
