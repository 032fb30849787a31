"""Every entry of every table names its paper."""

from typing import Any

import pytest

import attractor
from attractor.cells import CELLS
from attractor.continual import STRATEGIES
from attractor.models import MODELS
from attractor.optimisers import OPTIMISERS
from attractor.references import bibtex
from attractor.tasks import TASKS
from attractor.tasks.streams import STREAMS

TABLES: list[dict[str, Any]] = [
    dict(CELLS),
    dict(OPTIMISERS),
    dict(STRATEGIES),
    dict(TASKS),
    dict(STREAMS),
    dict(MODELS),
]
"""In the order in which a key that two of them share is looked up."""

FIRST = {name: entry for table in reversed(TABLES) for name, entry in table.items()}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_every_key_has_a_citation(name: str) -> None:
    found = attractor.citation(name)
    assert found == bibtex(FIRST[name].reference)
    assert found.startswith("@")


def test_every_entry_names_a_paper_that_there_is() -> None:
    for table in TABLES:
        for entry in table.values():
            assert bibtex(entry.reference)


def test_it_is_told_of_by_the_package() -> None:
    assert "citation" in dir(attractor)


def test_streams_and_models() -> None:
    assert "kirkpatrick2017overcoming" in attractor.citation("permuted_images")
    assert "Deep residual learning" in attractor.citation("resnet")
