"""Both paths give the same numbers, for each cell and option that has a kernel."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils import _pytree as pytree

import attractor.cells.layer.recurrent as layer
from attractor.cells import CELLS, Recurrent, layer_norm, recurrent_dropout, zoneout
from attractor.cells.gated import GatedCell
from attractor.cells.kernels import STATUS
from attractor.cells.kernels.fused import fused
from attractor.cells.kernels.table import KERNELS, NORMED
from contracts.cells import perturb, seeded

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")

FORMS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in sorted(CELLS) if CELLS[name] in KERNELS),
    ("clockwork", {"periods": (2, 3), "bias": False}),
    ("clockwork", {"reads": "itself", "periods": (1, 3, 7)}),
    ("decaynet", {"length": 5, "bias": False}),
    ("decaynet_gru", {"length": 4, "bias": False}),
    ("lstm1997", {"bias": False}),
    ("decaynet", {"length": 9}),
    ("ihc_lstm", {"bias": False}),
    ("irc_gru", {"bias": False}),
    ("nru", {"bias": False, "average_heads": True}),
    ("stat_ru", {"bias": False}),
    ("dntm", {"controller": "lstm", "write_address": "before", "bias": False, "cells": 9}),
    ("dntm", {"controller": "rnn", "lru": False, "address_size": 3, "content_size": 5}),
    ("dntm", {"controller": "ff", "nop": False, "cells": 17}),
    ("dntm", {"discrete": True}),
    ("dntm", {"discrete": True, "nop": False, "lru": False, "cells": 5}),
    ("dntm", {"discrete": True, "write_address": "before", "cells": 2}),
    ("eurnn", {"real": True}),
    ("eurnn", {"bias": False}),
    ("eurnn", {"real": True, "bias": False, "capacity": 4, "hidden_size": 13}),
    ("eurnn", {"capacity": 3, "hidden_size": 13}),
    ("full_urnn", {"bias": False}),
    ("fastgrnn", {"bias": False}),
    ("fastgrnn", {"shared": True, "t_max": 9}),
    ("fastgrnn", {"shared": True, "bias": False}),
    ("goru", {"bias": False}),
    ("goru", {"capacity": 2, "hidden_size": 13}),
    ("gru", {"bias": False}),
    ("gru", {"reset": "after", "t_max": 9}),
    ("gru", {"reset": "after", "bias": False}),
    ("ihc_gru", {"gate_reads_input": False, "forget_bias": 0.5}),
    ("ihc_gru", {"bias": False}),
    ("ihc_gru", {"t_max": 9}),
    ("ihc_lstm", {"gate_reads_input": False}),
    ("ihc_lstm", {"forget_bias": 0.5, "input_size": 17}),
    ("irc_fastgrnn", {"beta_per_unit": True, "forget_bias": 1.0}),
    ("irc_fastgrnn", {"bias": False}),
    ("irc_fastgrnn", {"t_max": 9}),
    ("irc_gru", {"t_max": 9, "input_size": 40}),
    ("irc_lstm", {"forget_bias": 1.0, "input_size": 40}),
    ("irc_lstm", {"bias": False}),
    ("irc_lstm", {"t_max": 9}),
    ("irc_sru", {"highway_bias": -1.0, "forget_bias": 1.0}),
    ("irc_sru", {"bias": False}),
    ("irc_sru", {"t_max": 9}),
    ("irc_sru", {"highway_bias": -1.0, "input_size": 13, "hidden_size": 13}),
    ("irc_tlstm", {"forget_bias": 1.0}),
    ("irc_tlstm", {"bias": False}),
    ("irc_tlstm", {"t_max": 9}),
    ("janet", {"beta": 3.0, "bias": False}),
    ("lstm", {"bias": False}),
    ("lstm", {"peepholes": True, "t_max": 9}),
    ("lstm", {"proj_size": 5}),
    ("lstm", {"proj_size": 11, "peepholes": True, "bias": False}),
    ("nru", {"average_heads": True}),
    ("nru", {"memory": "multiplicative", "memory_size": 100, "average_heads": True}),
    ("nru", {"heads": 3, "memory_size": 27, "heads_read_input": False}),
    ("nru", {"heads": 1, "memory_size": 9}),
    ("nru", {"relu_heads": True}),
    ("nru", {"relu_heads": True, "memory": "multiplicative", "heads": 1, "memory_size": 36}),
    ("nru", {"relu_heads": True, "bias": False, "average_heads": True, "memory_size": 100}),
    ("ntm", {"controller": "gru", "cells": 9, "cell_size": 5}),
    ("ntm", {"controller": "rnn", "write_address": "before", "read_heads": 2, "bias": False}),
    ("ntm", {"controller": "ff", "write_heads": 3, "shift_width": 4, "cells": 17}),
    ("ntm", {"write_address": "before", "write_heads": 2, "read_heads": 3, "shift_width": 1}),
    ("rnn", {"bias": False}),
    ("rnn", {"nonlinearity": "relu"}),
    ("rnn", {"margin": 0.3}),
    ("rnn", {"layer_norm": True}),
    ("rnn", {"layer_norm": True, "bias": False, "nonlinearity": "relu"}),
    ("sru", {"rescale": True, "highway_bias": -1.0}),
    ("sru", {"bias": False, "input_size": 13, "hidden_size": 13}),
    ("stat_ru", {"statistics": 5, "recurrent_size": 3, "alphas": (0.2, 0.9)}),
    ("tardis", {"bias": False, "cells": 3, "content_size": 5, "attention_size": 11}),
    ("tardis", {"reset_gates": False, "cells": 5, "address_size": 3}),
    ("tardis", {"estimator": "reinforce", "cells": 9}),
    ("tardis", {"estimator": "reinforce", "reset_gates": False, "bias": False}),
    ("tlstm", {"output_gate": "tanh", "bias": False}),
    ("urnn", {"bias": False}),
]
IDS = [f"{name}-{'-'.join(f'{k}={v}' for k, v in o.items())}".rstrip("-") for name, o in FORMS]
PROPER: dict[str, Callable[[Tensor], Tensor]] = {
    "filled": lambda s: torch.arange(s.numel(), dtype=s.dtype).view_as(s),
    "read": lambda s: torch.softmax(s, -1),
    "usage": torch.abs,
    "write": lambda s: torch.softmax(s, -1),
}
"""What states are like that are no numbers of any size."""

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def make(name: str, options: dict[str, Any], dtype: torch.dtype, **more: Any) -> Recurrent:
    options = {"input_size": 3, "hidden_size": 16 if name in ("eurnn", "goru") else 13} | options
    made = perturb(Recurrent(name, dtype=dtype, generator=seeded(), **(options | more)), seeded(1))
    if name in (
        "nru",
        "ntm",
    ):  # a memory that is added to magnifies rounding errors where weights are large
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.mul_(0.5)
    return made


def draw(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


def answers(module: Recurrent, lengths: list[int] | None, every: bool) -> list[Tensor]:
    """All outputs and gradients of a layer, on an input and a state that are always the same."""
    dtype = next(module.parameters()).dtype
    batch = 5
    torch.manual_seed(4)  # what noise is drawn from
    x = draw(7, batch, module.input_size, seed=2, dtype=dtype).requires_grad_()
    cell: Any = module.cells[0]
    leaves = pytree.tree_leaves(cell.initial_state(batch))
    directions = len(module.cells)
    names = getattr(cell.initial_state(1), "_fields", [""] * len(leaves))
    state = [
        PROPER.get(name, Tensor.clone)(
            draw(directions, *s.shape, seed=3 + i, dtype=dtype)
        ).requires_grad_()
        for i, (name, s) in enumerate(zip(names, leaves, strict=True))
    ]
    given = x if lengths is None else pack_padded_sequence(x, lengths, enforce_sorted=False)
    within = getattr(cell, "cell", cell)
    if getattr(within, "length", 0) is None:  # a DecayNet that must see whole sequences
        state = []
    start = (state if len(state) > 1 else state[0]) if state else None
    output, *rest = module(given, start, return_states=every)
    shown = output.data if isinstance(output, PackedSequence) else output
    made = [shown, *pytree.tree_leaves(rest)]
    weights = [draw(*m.shape, seed=9 + i, dtype=dtype) for i, m in enumerate(made)]
    loss = sum((m * weight).sum() for m, weight in zip(made, weights, strict=True))
    inputs = [x, *state, *module.parameters()]
    # a count has no gradient, and what nothing reads gets none
    grads = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
    return [*made, *grads]


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same question to the kernel and to the loop; the kernel must not decline."""

    def ask(*args: Any) -> tuple[list[Tensor], list[Tensor]]:
        taken = []

        def watched(*inner: Any) -> Any:
            taken.append(fused(*inner))
            return taken[-1]

        monkeypatch.setattr(layer, "fused", watched)
        kernel = answers(*args)
        assert taken
        assert all(one is not None for one in taken)
        monkeypatch.setattr(layer, "fused", lambda *_: None)
        return kernel, answers(*args)

    return ask


def same(both: tuple[list[Tensor], list[Tensor]], tolerance: float) -> None:
    kernel, loop = both
    for index, (found, expected) in enumerate(zip(kernel, loop, strict=True)):
        scale = 1 + expected.abs().max().item()
        error = (found - expected).abs().max().item() / scale
        assert error < tolerance, f"tensor {index}: {error:.1e}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), FORMS, ids=IDS)
def test_kernel_is_the_loop(
    name: str, options: dict[str, Any], dtype: torch.dtype, paths: Any
) -> None:
    module = make(name, options, dtype)
    same(paths(module, None, True), TOLERANCE[dtype])
    same(paths(module, [3, 7, 1, 7, 2], True), TOLERANCE[dtype])


ZONED = [
    ("lstm", 0.5, 0.2),
    ("lstm", 0.0, 0.2),
    ("gru", 0.0, 0.3),
    ("sru", 0.4, 0.0),
    ("nru", 0.0, 0.3),
]


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize(("name", "cell_rate", "hidden_rate"), ZONED)
def test_zoneout_is_the_loops(
    name: str, cell_rate: float, hidden_rate: float, training: bool, paths: Any
) -> None:
    made = Recurrent(zoneout(name, cell_rate, hidden_rate), 3, 13, dtype=torch.float64)
    made.train(training)
    same(paths(made, None, True), 1e-10)
    same(paths(made, [3, 7, 1, 7, 2], True), 1e-10)


COMPOSED: dict[str, Any] = {
    "lstm normalised": layer_norm("lstm"),
    "lstm normalised and dropped": recurrent_dropout(layer_norm("lstm"), 0.4),
    "lstm with all": zoneout(recurrent_dropout(layer_norm("lstm"), 0.4), 0.5, 0.1),
    "lstm zoned out and dropped": zoneout(recurrent_dropout("lstm", 0.3), 0.5, 0.0),
    "dntm zoned out": zoneout("dntm", 0.0, 0.3),
    "lstm dropped per sequence": recurrent_dropout("lstm", 0.4, per="sequence"),
}


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", COMPOSED)
def test_composed_cells_are_the_loops(name: str, training: bool, paths: Any) -> None:
    for dtype, tolerance in TOLERANCE.items():
        made = Recurrent(COMPOSED[name], 3, 13, dtype=dtype, generator=seeded())
        if dtype == torch.float64:  # large weights magnify rounding errors
            perturb(made, seeded(1))
        made.train(training)
        same(paths(made, None, True), tolerance)
        same(paths(made, [3, 7, 1, 7, 2], True), tolerance)


DROPPED: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, {})
        for name, kind in CELLS.items()
        if issubclass(kind, GatedCell) and name not in ("dntm", "goru", "ntm", "tardis")
    ),
    ("fastgrnn", {"shared": True}),
    ("goru", {"capacity": 2}),
    ("goru", {"capacity": 2, "bias": False}),
    ("gru", {"reset": "after"}),
]


@pytest.mark.parametrize(("name", "options"), DROPPED)
def test_dropout_is_the_loops(name: str, options: dict[str, Any], paths: Any) -> None:
    dropped = recurrent_dropout(name, 0.4)
    made = Recurrent(dropped, 3, 13, dtype=torch.float64, generator=seeded(), **options)
    same(paths(perturb(made, seeded(1)), [3, 7, 1, 7, 2], True), 1e-10)


KNOWN = {"length": 9}  # or there is no state but zero, of which a norm magnifies rounding errors
NORMALISED: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, KNOWN if "decaynet" in name else {})
        for name in sorted(CELLS)
        if CELLS[name] in NORMED
    ),
    ("decaynet", {"bias": False, **KNOWN}),
    ("fastgrnn", {"shared": True}),
    ("goru", {"capacity": 2, "bias": False}),
    ("gru", {"bias": False}),
    ("gru", {"reset": "after"}),
    ("gru", {"reset": "after", "bias": False}),
    ("irc_gru", {"input_size": 40, "bias": False}),
    ("lstm", {"bias": False}),
    ("lstm", {"proj_size": 7, "peepholes": True}),
    ("rnn", {"layer_norm": True, "nonlinearity": "relu"}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), NORMALISED)
def test_normalised_kernel_is_the_loop(
    name: str, options: dict[str, Any], dtype: torch.dtype, paths: Any
) -> None:
    sizes = {"input_size": 3, "hidden_size": 16 if name == "goru" else 13}
    made = Recurrent(layer_norm(name), **(sizes | options), dtype=dtype, generator=seeded())
    if dtype == torch.float64:  # large weights magnify rounding errors
        perturb(made, seeded(1))
    same(paths(made, None, True), TOLERANCE[dtype])
    same(paths(made, [3, 7, 1, 7, 2], True), TOLERANCE[dtype])


def test_rectified_heads_have_no_slope_at_zero(paths: Any) -> None:
    made = make("nru", {"relu_heads": True, "heads": 2, "memory_size": 32}, torch.float64)
    cell: Any = made.cells[0]
    silent = torch.tensor([0, 3, 5, 9, 14, 21, 23, 30, 35])  # contents, p and q that are zero
    with torch.no_grad():
        for weight in (cell.weight_ih, cell.weight_mh, cell.bias):
            weight[13 + silent] = 0
        cell.weight_heads[silent] = 0
    same(paths(made, None, True), 1e-10)


@pytest.mark.parametrize("name", ["lstm", "nru", "sru"])
def test_kernel_is_the_loop_both_ways_and_without_states(name: str, paths: Any) -> None:
    module = make(name, {}, torch.float64)
    same(paths(module, None, False), 1e-10)
    both = make(name, {}, torch.float64, bidirectional=True)
    same(paths(both, [3, 7, 1, 7, 2], False), 1e-10)


def test_every_cell_has_a_kernel() -> None:
    without = {name for name in CELLS if CELLS[name] not in KERNELS}
    assert not without
