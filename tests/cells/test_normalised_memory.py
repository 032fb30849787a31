"""Layer norm and recurrent dropout on the cells with an external memory, against NumPy."""

from typing import Any

import pytest
import torch
from torch import Generator

from attractor.cells import (
    DNTMCell,
    NTMCell,
    Recurrent,
    TARDISCell,
    batch_norm,
    compose,
    layer_norm,
    recurrent_dropout,
    unroll,
    weight_drop,
)
from attractor.cells.wrap.noise import MaskedInput
from cells import test_dntm as of_dntm
from cells import test_ntm as of_ntm
from cells import test_tardis as of_tardis
from cells.against import agree, array
from cells.memory_weights import scatter
from reference import dntm, ntm, tardis
from reference.normalised_controllers import normalised_step
from reference.result import Array

T, B = 9, 2
CONTROLLERS = ["lstm", "gru", "rnn", "ff"]


def normalised(make: Any, **options: Any) -> Any:
    """A cell in training, with layer norm and recurrent dropout, with large random weights."""
    both = recurrent_dropout(layer_norm(make), 0.4)
    return scatter(both(3, 7, dtype=torch.float64, **options), seed=3)


def norms_of(cell: Any) -> dict[str, tuple[Array, Array]]:
    names = {"x": "norm_x", "h": "norm_h", "r": "norm_r", "inner": "norm_inner", "c": "norm_c"}
    found = {key: getattr(cell.cell, name) for key, name in names.items()}
    return {k: (array(v.weight), array(v.bias)) for k, v in found.items() if v is not None}


def ran(cell: Any) -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    x = torch.randn(T, B, 3, generator=Generator().manual_seed(1), dtype=torch.float64)
    prepared = cell.prepare(x)
    assert isinstance(prepared, MaskedInput)
    output, last, _ = unroll(cell, prepared, cell.initial_state(B))
    return x, prepared, output, last


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_dntm(controller: str) -> None:
    cell = normalised(DNTMCell, cells=6, address_size=3, content_size=4, controller=controller)
    x, prepared, output, last = ran(cell)
    for row in range(B):
        theirs = dntm.run(
            of_dntm.reference_weights(cell.cell.cell),
            array(x[:, row]),
            state=dntm.initial_state(7, cells=6, content_size=4),
            controller=controller,
            step=normalised_step(norms_of(cell), array(prepared.masks[0][:, row])),
        )
        agree(output[:, row], theirs.outputs)
        agree(last.content[row], theirs.state["C"])


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_ntm(controller: str) -> None:
    sizes: dict[str, Any] = {"cells": 5, "cell_size": 4}
    cell = normalised(NTMCell, controller=controller, **sizes)
    x, prepared, output, last = ran(cell)
    inside = cell.cell.cell
    for row in range(B):
        theirs = ntm.run(
            of_ntm.reference_weights(inside),
            array(x[:, row]),
            state=ntm.initial_state(7, **sizes),
            controller=controller,
            step=normalised_step(norms_of(cell), array(prepared.masks[0][:, row])),
        )
        agree(output[:, row], theirs.outputs)
        agree(last.memory[row], theirs.state["M"])


@pytest.mark.parametrize("reset_gates", [False, True])
def test_tardis(reset_gates: bool) -> None:
    cell = normalised(TARDISCell, reset_gates=reset_gates, **of_tardis.SIZES)
    x, prepared, output, last = ran(cell)
    weights = of_tardis.reference_weights(cell.cell.cell)
    for row in range(B):
        noise = prepared.cell
        theirs = tardis.run(
            weights,
            array(x[:, row]),
            state=tardis.initial_state(7, cells=5, content_size=4),
            reset_gates=reset_gates,
            xi=array(noise.gumbel[:, row]),
            gate_noise=array(noise.logistic[:, row]) if reset_gates else None,
            norms=norms_of(cell),
            masks=array(prepared.masks[0][:, row]),
        )
        agree(last.h[row], theirs.state["h"])
        agree(last.content[row], theirs.state["C"])
        expected = tardis.fuse(weights, theirs.steps["h"][-1], theirs.steps["r"][-1])
        agree(output[-1, row], expected)


@pytest.mark.parametrize("key", ["ntm", "dntm", "tardis"])
def test_batch_norm_and_weight_drop(key: str) -> None:
    x = torch.randn(5, 3, 3)
    layer = Recurrent(batch_norm(key, 4), 3, 8, num_layers=2)
    layer(x)[0].sum().backward()
    means = [b for name, b in layer.named_buffers() if name.endswith("mean")]
    assert means
    assert all(mean.any() for mean in means)
    dropped = weight_drop(Recurrent(key, 3, 8), 0.5)
    assert dropped.dropped[0].endswith("weight_hh")
    assert not torch.equal(dropped(x)[0], dropped.eval()(x)[0])


@pytest.mark.parametrize("key", ["ntm", "dntm", "tardis"])
def test_a_wrapped_cell_is_not_taken_for_the_cell_itself(key: str) -> None:
    """A kernel would not know of the normaliser."""
    g = torch.Generator().manual_seed(0)
    made = compose(key, layer_norm=True)
    layer = Recurrent(made, 3, 8, generator=g).eval()
    plain = Recurrent(key, 3, 8, generator=torch.Generator().manual_seed(0)).eval()
    x = torch.randn(5, 2, 3)
    assert not torch.allclose(layer(x)[0], plain(x)[0], atol=1e-3)
