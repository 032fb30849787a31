"""The paper of anything in the tables: above them all, since it looks into each."""

from typing import Any

from attractor.cells import CELLS
from attractor.continual import STRATEGIES
from attractor.errors import unknown
from attractor.models import MODELS
from attractor.optimisers import OPTIMISERS
from attractor.references import BibTeX, bibtex
from attractor.tasks import TASKS
from attractor.tasks.streams import STREAMS

METHODS: dict[str, Any] = {**MODELS, **STREAMS, **TASKS, **STRATEGIES, **OPTIMISERS, **CELLS}
"""By key; where two tables share one, such as ``"lstm"``, the later of them has it."""


def citation(name: str) -> BibTeX:
    """BibTeX for a cell, an optimiser, a strategy, a task, a stream or a model, by its key.

    Where two tables share a key, such as ``"lstm"``, it is that of the first in this order.

    Example:
        >>> citation("rnn")
        @article{elman1990finding,
          author = {Elman, Jeffrey L.},
          title = {Finding structure in time},
          journal = {Cognitive Science},
          volume = {14},
          number = {2},
          pages = {179--211},
          year = {1990},
        }
    """
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return bibtex(METHODS[name].reference)
