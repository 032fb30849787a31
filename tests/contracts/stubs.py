"""Write what type checkers and editors see of the named layers, from the table of cells.

``make stubs`` runs this; a contract test asks for it when a cell or an option has changed.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from inspect import Parameter
from pathlib import Path
from typing import Any

from attractor.cells import CELLS
from attractor.cells.layer import named, recurrent

PATH = Path(named.__file__).with_suffix(".pyi")

HEADER = '''"""The named layers for type checkers and editors; written by ``make stubs``."""

from collections.abc import Sequence
from inspect import Parameter
from typing import Literal

import torch
from torch import Generator

from attractor.cells.init import Initialiser
from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.memory.controllers import ControllerKind, WriteAddress

COMMON: list[Parameter]
PLACES: dict[str, dict[str, int]]
LAYERS: dict[str, type[Recurrent]]

def parameters(key: str) -> list[Parameter]: ...
'''


def stub() -> str:
    """The text of ``named.pyi``."""
    names = sorted(named.LAYERS, key=lambda name: (not name.isupper(), name))
    listed = ["__all__ = [", *(f'    "{name}",' for name in names), "]"]
    return "\n".join([HEADER, *listed, *(line for key in CELLS for line in _layer(key)), ""])


def _layer(key: str) -> Iterator[str]:
    cell = CELLS[key]
    written = _written(cell) | _written(recurrent.Recurrent)
    yield ""
    yield f"class {cell.__name__.removesuffix('Cell')}(Recurrent):"
    yield f'    """{(cell.__doc__ or "").splitlines()[0]}'
    yield ""
    yield f"    A `Recurrent` layer of `attractor.cells.{cell.__name__}`, which has the equations."
    yield '    """'
    yield ""
    yield "    def __init__("
    yield "        self,"
    yield from (f"        {line}," for line in _arguments(named.parameters(key), written))
    yield "    ) -> None: ..."


def _arguments(parameters: Iterable[Parameter], written: dict[str, str]) -> Iterator[str]:
    starred = False
    for parameter in parameters:
        if parameter.kind is Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        default = "" if parameter.default is Parameter.empty else f" = {_quoted(parameter.default)}"
        yield f"{parameter.name}: {written[parameter.name]}{default}"


def _quoted(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _written(owner: type) -> dict[str, str]:
    """The annotations of the constructor's parameters, as its author wrote them."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__))).body  # type: ignore[misc]
    assert isinstance(function, ast.FunctionDef)
    given = [*function.args.args, *function.args.kwonlyargs]
    return {a.arg: ast.unparse(a.annotation).replace("'", '"') for a in given if a.annotation}


if __name__ == "__main__":
    PATH.write_text(stub())
