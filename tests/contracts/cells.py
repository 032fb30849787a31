"""What the contract tests need to know about a cell, beyond what every cell has in common."""

from typing import Any, TypeVar

import torch
from torch import Generator, Tensor

from attractor.cells import CELLS, Cell, Recurrent

INPUT_SIZE = 3
HIDDEN_SIZE = 8
NAMES = sorted(CELLS)

M = TypeVar("M", bound=torch.nn.Module)

OPTIONS: dict[str, dict[str, Any]] = {
    "clockwork": {"periods": (1, 2, 4)},  # all of which move twice in a short sequence
    "decaynet": {"length": 8},  # the length of the input would change when it is cut
    "decaynet_gru": {"length": 8},
    "dntm": {"cells": 5, "address_size": 3, "content_size": 4},
    "ntm": {"cells": 6, "cell_size": 4, "read_heads": 2, "write_heads": 2},
    "nru": {"average_heads": True},  # summed heads with such large weights magnify rounding errors
    "tardis": {"cells": 3, "address_size": 3, "content_size": 4, "attention_size": 5},
}
"""Options with which a cell is tested, where its defaults do not suit a tiny network."""

FORMS: list[tuple[str, dict[str, Any]]] = [
    ("clockwork", {"periods": (1, 3), "reads": "itself"}),
    ("dntm", {"discrete": True}),
    ("dntm", {"hops": 2}),
    ("dntm", {"controller": "lstm", "nop": False}),
    ("dntm", {"controller": "ff", "lru": False}),
    ("dntm", {"controller": "rnn", "write_address": "before", "bias": False}),
    ("eurnn", {"real": True}),
    ("eurnn", {"capacity": 2}),
    ("eurnn", {"bias": False}),
    ("fastgrnn", {"shared": True}),
    ("goru", {"capacity": 2}),
    ("goru", {"bias": False}),
    ("gru", {"reset": "after"}),
    ("ihc_lstm", {"gate_reads_input": False}),
    ("irc_fastgrnn", {"beta_per_unit": True}),
    ("lstm", {"peepholes": True}),
    ("lstm", {"proj_size": 5}),
    ("nru", {"memory": "multiplicative"}),
    ("nru", {"relu_heads": True, "heads_read_input": False}),
    ("ntm", {"controller": "gru"}),
    ("ntm", {"controller": "ff"}),
    ("ntm", {"controller": "rnn", "write_address": "before", "bias": False}),
    ("rnn", {"nonlinearity": "relu", "layer_norm": True}),
    ("rnn", {"margin": 0.2}),
    ("sru", {"rescale": True}),
    ("stat_ru", {"statistics": 5, "recurrent_size": 3}),
    ("tardis", {"estimator": "reinforce"}),
    ("tardis", {"reset_gates": False}),
    ("tardis", {"growing": True}),
    ("tardis", {"bias": False}),
    ("tlstm", {"output_gate": "tanh"}),
    ("urnn", {"bias": False}),
]
"""Other forms of cells, with what differs from those options."""


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def make_cell(name: str, seed: int = 0, **options: Any) -> Cell[Any, Any]:
    """A small cell whose every parameter is random, so that none is tested at zero."""
    made: Any = CELLS[name]
    g = seeded(seed)
    cell: Cell[Any, Any] = made(
        INPUT_SIZE, HIDDEN_SIZE, generator=g, **(OPTIONS.get(name, {}) | options)
    )
    return perturb(cell, g)


def make_layer(name: str, seed: int = 0, **options: Any) -> Recurrent:
    g = seeded(seed)
    options = OPTIONS.get(name, {}) | options
    return perturb(Recurrent(name, INPUT_SIZE, HIDDEN_SIZE, generator=g, **options), g)


def perturb(module: M, generator: Generator) -> M:
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.3 * noise.to(parameter.dtype))
    return module


def inputs(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, INPUT_SIZE, generator=seeded(seed), dtype=dtype)
