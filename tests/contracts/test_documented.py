"""Every key of a table has a place in a guide, and what it names is in the reference."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attractor.cells import CELLS
from attractor.continual import STRATEGIES
from attractor.models import MODELS
from attractor.optimisers import OPTIMISERS
from attractor.tasks import TASKS
from attractor.tasks.streams import STREAMS

DOCS = Path(__file__).parents[2] / "docs"
TABLES: dict[str, dict[str, Callable[..., Any]]] = {
    "cells.md": dict(CELLS),
    "continual.md": dict(STRATEGIES),
    "continual/streams.md": dict(STREAMS),
    "optimisers.md": {key: one.kind for key, one in OPTIMISERS.items() if one.learned},
    "tasks.md": dict(TASKS),
}
ENTRIES = [(guide, key) for guide, table in TABLES.items() for key in sorted(table)]
entries = pytest.mark.parametrize(("guide", "key"), ENTRIES)


@cache
def pages() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}


def named(text: str) -> set[str]:
    """Keys with a section of their own, or in the first column of a table."""
    sections = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {*sections, *(key for row in rows for key in re.findall(r"`(\w+)`", row))}


def listed(name: str) -> list[Path]:
    """Pages that show the signature and docstring of a name."""
    return [p for p, text in pages().items() if re.search(rf"^::: [\w.]+\.{name}$", text, re.M)]


@entries
def test_a_key_has_a_row_or_a_section(guide: str, key: str) -> None:
    assert key in named(pages()[DOCS / guide]), f"docs/{guide} has no row or section for {key}"


@entries
def test_what_it_names_is_in_the_reference_once(guide: str, key: str) -> None:
    name = TABLES[guide][key].__name__
    assert len(listed(name)) == 1, f"expected one page with `::: ...{name}`, got {listed(name)}"


@pytest.mark.parametrize("key", sorted(MODELS))
def test_a_network_of_an_experiment_has_a_row(key: str) -> None:
    assert key in named(pages()[DOCS / "models.md"])


@pytest.mark.parametrize("key", sorted(CELLS))
def test_the_page_of_a_cell_says_what_it_computes_and_when_to_use_it(key: str) -> None:
    (page,) = listed(CELLS[key].__name__)
    assert page.parent == DOCS / "cells"
    text = pages()[page]
    for part in ("$$", "```python", "## When to use it", "When not:", "## Options"):
        assert part in text, f"docs/cells/{page.name} lacks {part!r}"
    assert re.search(rf'`{key}`|citation\("{key}"\)', text), f"{page.name} never names {key}"
