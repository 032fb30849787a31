"""Every cell as torch.compile sees it."""

import copy
from typing import Any

import pytest
import torch

from attractor.cells import Recurrent, compile_steps
from contracts.cells import HIDDEN_SIZE, INPUT_SIZE, NAMES, inputs, make_layer, seeded

close = torch.testing.assert_close
cells = pytest.mark.parametrize("name", NAMES)
tracing = pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves


@cells
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
