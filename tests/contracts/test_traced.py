"""Every cell as torch's tracers see it: torch.compile and torch.export."""

import copy
import io
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from attractor.cells import Recurrent, compile_steps
from contracts.cells import (
    FORMS,
    HIDDEN_SIZE,
    INPUT_SIZE,
    NAMES,
    OPTIONS,
    inputs,
    make_layer,
    seeded,
)

close = torch.testing.assert_close
cells = pytest.mark.parametrize("name", NAMES)
tracing = pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves
LARGE = ("dntm", "eurnn", "goru", "ntm", "tardis")
"""Cells of so many operations that an export takes 15 to 25 seconds of a processor."""


@cells
@tracing
def test_compile_whole_graph(name: str) -> None:
    layer = make_layer(name).eval()
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="eager", dynamic=True)
    with torch.no_grad():
        for length in (4, 9):
            x = inputs(length, 2)
            close(compiled(x), layer(x))


@pytest.mark.slow
@pytest.mark.parametrize("in_chunks", [False, True])
@pytest.mark.parametrize("input_size", [INPUT_SIZE, HIDDEN_SIZE])
@tracing
def test_compiled_to_machine_code_has_the_same_gradients(in_chunks: bool, input_size: int) -> None:
    """Square weights too: there inductor has once given wrong gradients without a word."""
    layer = Recurrent("lstm", input_size, HIDDEN_SIZE, generator=seeded())
    other: Any = copy.deepcopy(layer)
    torch.compiler.reset()
    if in_chunks:
        compile_steps(other, 3)
    run: Any = other if in_chunks else torch.compile(other, fullgraph=True)
    x = torch.randn(7, 2, input_size, generator=seeded())
    layer(x)[0].square().sum().backward()
    run(x)[0].square().sum().backward()
    for mine, theirs in zip(layer.parameters(), other.parameters(), strict=True):
        close(mine.grad, theirs.grad)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in NAMES],
)
@tracing
def test_export_with_dynamic_time(name: str) -> None:
    # layers and directions are the layer's own work: exported for one cell, not for each
    form = {"num_layers": 2, "bidirectional": True} if name == "lstm" else {}
    layer = make_layer(name, **form).eval()
    sizes = {0: torch.export.Dim("time", min=2, max=4096), 1: torch.export.Dim("batch", min=2)}
    shapes = {"input": sizes}
    exported = torch.export.export(layer, (inputs(4, 3),), dynamic_shapes=shapes)
    saved = io.BytesIO()
    torch.export.save(exported, saved)
    saved.seek(0)
    for module in (exported.module(), torch.export.load(saved).module()):
        for length, batch in ((4, 3), (11, 5)):
            x = inputs(length, batch)
            close(tree_leaves(module(x)), tree_leaves(layer(x)))


@tracing
def test_an_earlier_export_leaves_the_next_one_its_dynamic_batch() -> None:
    time = torch.export.Dim("time", min=2, max=4096)
    torch.export.export(make_layer("lstm").eval(), (inputs(4, 2),), dynamic_shapes=[{0: time}])
    layer = make_layer("janet").eval()
    sizes = {0: time, 1: torch.export.Dim("batch", min=2)}
    exported = torch.export.export(layer, (inputs(4, 3),), dynamic_shapes=[sizes])
    close(exported.module()(inputs(5, 2))[0], layer(inputs(5, 2))[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), FORMS)
@tracing
def test_other_forms_are_exported(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPTIONS, name, OPTIONS.get(name, {}) | options)
    test_export_with_dynamic_time(name)
