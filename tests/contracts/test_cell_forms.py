"""What every cell of the table says of itself: names that last, docs, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

import attractor
from attractor.cells import CELLS, Recurrent
from contracts.cells import HIDDEN_SIZE, INPUT_SIZE, NAMES, OPTIONS

cells = pytest.mark.parametrize("name", NAMES)
DOCUMENTED = (
    ".. math::",
    "Args:",
    "Shape:",
    "Example:",
    ">>>",
    "Departs from the paper:",
    "References:",
)


@cells
def test_state_dict_names_are_frozen(name: str) -> None:
    """Saved models must keep loading: a change here breaks every user's checkpoint."""
    path = Path(__file__).with_name("state_dicts.json")
    frozen = json.loads(path.read_text())
    made: Any = CELLS[name]
    cell = made(INPUT_SIZE, HIDDEN_SIZE, **OPTIONS.get(name, {}))
    found = {key: list(value.shape) for key, value in cell.state_dict().items()}
    assert found == frozen.get(name), (
        f"expected the names and shapes in {path.name}; if {name} is new, add\n"
        f'"{name}": {json.dumps(found)}'
    )


@cells
def test_documented(name: str) -> None:
    cell = CELLS[name]
    assert cell.__name__.endswith("Cell")
    text = cell.__doc__ or ""
    for part in DOCUMENTED:
        assert part in text, f"{cell.__name__} lacks {part!r} in its docstring"


@cells
@pytest.mark.parametrize("size", [0, -1, True, 2.5])
def test_sizes_are_checked(name: str, size: Any) -> None:
    for sizes in ((size, 4), (4, size)):
        with pytest.raises(attractor.InputError, match="whole number of at least 1, but got"):
            Recurrent(name, sizes[0], sizes[1])
    with pytest.raises(attractor.InputError, match="num_layers"):
        Recurrent(name, 3, 4, num_layers=size)


@cells
def test_unknown_option_names_the_nearest(name: str) -> None:
    with pytest.raises(attractor.InputError, match=f"known option of {CELLS[name].__name__}"):
        Recurrent(name, 3, 4, no_such_option=1)
