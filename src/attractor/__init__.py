"""Memory that lasts, in PyTorch: recurrent cells, learned optimisers, continual learning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attractor.errors import InputError as InputError
from attractor.errors import RunError as RunError

if TYPE_CHECKING:
    from attractor.cells import CELLS as CELLS
    from attractor.cells import Cell as Cell
    from attractor.cells import Recurrent as Recurrent
    from attractor.cells import copy_from_torch as copy_from_torch
    from attractor.cells import copy_to_torch as copy_to_torch
    from attractor.cells.layer.named import *  # noqa: F403 - typed in named.pyi
    from attractor.citations import citation as citation

    __version__: str

_FROM_CELLS = ("CELLS", "Cell", "Recurrent", "copy_from_torch", "copy_to_torch")


if not TYPE_CHECKING:  # a checker knows all names from above, and so finds misspelt ones

    def __getattr__(name: str) -> Any:
        # what takes long is imported when it is first used, so that `attractor --help` answers
        # at once
        if name == "__version__":
            return import_module("importlib.metadata").version("attractor")
        if name == "citation":
            return import_module("attractor.citations").citation
        if not name.startswith("_"):
            cells = import_module("attractor.cells")
            if name in _FROM_CELLS:
                return getattr(cells, name)
            if name in cells.LAYERS:
                return cells.LAYERS[name]
        raise AttributeError(f"module 'attractor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "citation", *_FROM_CELLS, *import_module("attractor.cells").LAYERS])
