"""Layer and batch normalisation of every cell but the LSTM, against the NumPy references."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from attractor.cells import (
    CELLS,
    DecayNetCell,
    DecayNetState,
    LSTMState,
    batch_norm,
    layer_norm,
    unroll,
)
from attractor.cells.rotations import rotate
from cells.against import Array, agree, array, blocks, normal, random_cell
from cells.test_decaynet import weights_of as decaynet_weights
from cells.test_ihc import weights_of as ihc_weights
from cells.test_irc import weights_of as irc_weights
from reference import normalised_cells as reference

SIZE = 4


class Case(NamedTuple):
    """A cell, its equations, and the places that are normalised, in the order of its sums."""

    key: str
    step: Any
    x: tuple[str, ...] = ("x_gates",)
    h: tuple[str, ...] = ("h_gates",)
    inner: tuple[str, ...] = ()
    options: Any = ()


APART = {"x": ("x_gates", "x_candidate"), "h": ("h_gates", "h_candidate")}
HIGHWAY = {"h": ("h_feedback", "h_highway"), "inner": ("v_gates",)}
CASES = {
    "gru": Case(
        "gru", partial(reference.gru, reset_after=False), APART["x"], inner=("h_candidate",)
    ),
    "gru after": Case(
        "gru", partial(reference.gru, reset_after=True), **APART, options={"reset": "after"}
    ),
    "decaynet": Case("decaynet", partial(reference.decaynet, D=5), options={"length": 5}),
    "goru": Case("goru", reference.goru, **APART),
    "sru": Case("sru", reference.sru),
    "ihc_gru": Case("ihc_gru", partial(reference.ihc, kind="gru"), **HIGHWAY),
    "ihc_lstm": Case("ihc_lstm", partial(reference.ihc, kind="lstm"), **HIGHWAY),
    "ihc_lstm released": Case(
        "ihc_lstm",
        partial(reference.ihc, kind="lstm"),
        (),
        **HIGHWAY,
        options={"gate_reads_input": False, "forget_bias": 1.0},
    ),
    "irc_lstm released": Case(
        "irc_lstm", partial(reference.irc, kind="lstm"), options={"forget_bias": 1.0}
    ),
} | {
    f"irc_{kind}": Case(f"irc_{kind}", partial(reference.irc, kind=kind))
    for kind in reference.GATES
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def weights_of(case: Case, cell: Any) -> dict[str, Array]:
    if case.key == "decaynet":
        return decaynet_weights(cell)
    if case.key == "sru":
        weights = blocks("W_", "FPA", cell.weight_ih) | blocks("b_", "FP", cell.bias)
        return weights | blocks("omega_", "FP", cell.omega)
    if case.key == "gru":
        weights = blocks("W_x", "rzh", cell.weight_ih) | blocks("W_h", "rzh", cell.weight_hh)
        extra = {} if cell.bias_hh is None else {"b_hh": array(cell.bias_hh)}
        return weights | blocks("b_", "rzh", cell.bias) | extra
    if case.key == "goru":
        xr, xz, x = (array(part) for part in cell.weight_ih.chunk(3))
        weights = {"W_xr": xr, "W_xz": xz, "W_x": x, "b": array(cell.modrelu_bias)}
        weights |= blocks("W_h", "rz", cell.weight_hh) | blocks("b_", "rz", cell.bias)
        eye = torch.eye(SIZE, dtype=torch.float64)
        return weights | {"U": array(rotate(eye, cell.layers, cell.theta)).T}
    connection, _, kind = case.key.partition("_")
    gates = reference.GATES[kind]
    weights = (irc_weights if connection == "irc" else ihc_weights)(cell, gates)
    if kind == "fastgrnn":
        weights["u_beta"] = array(cell.beta_raw)
    if cell.bias_forget is not None:
        weights[f"b_{gates[0]}"] = array(cell.bias_forget)
    if not getattr(cell, "gate_reads_input", True):
        weights = {name: w for name, w in weights.items() if not name.endswith("_G")}
    return weights


def whole(cell: Any, shifts: torch.Tensor) -> torch.Tensor:
    """The shifts of the sums that have no bias, with zeros for those that have one."""
    biased = sum(cell.sites().x) - len(shifts)
    first = isinstance(cell, DecayNetCell)
    return torch.nn.functional.pad(shifts, (0, biased) if first else (biased, 0))


def sites(case: Case, cell: Any, attribute: str) -> dict[str, Any]:
    """What the normalisers hold under that name, by the reference's name of the place."""
    found: dict[str, Any] = {}
    widths = cell.cell.sites()
    groups = [(case.x, widths.x), (case.h, widths.h), (case.inner, widths.inner)]
    for norm, (names, sizes) in zip(("norm_x", "norm_h", "norm_inner"), groups, strict=True):
        if names and (values := getattr(getattr(cell, norm), attribute)) is not None:
            if attribute == "bias" and values.numel() < sum(sizes):
                values = whole(cell.cell, values)
            split = torch.split(values.detach(), list(sizes), dim=-1)
            found |= {name: array(part) for name, part in zip(names, split, strict=True)}
    if cell.norm_c is not None:
        found["c"] = array(getattr(cell.norm_c, attribute))
    return found


def compare(case: Case, cell: Any, normaliser: Any) -> None:
    """One batch through both, from a random state."""
    x, batch = normal(7, 6, SIZE), 6
    start = {n: normal(batch, SIZE) / 2 for n in ("h", "c", "p")}
    inner = cell.cell.initial_state(batch)
    if isinstance(inner, LSTMState):
        state: Any = LSTMState(start["h"], start["c"])
    elif isinstance(inner, DecayNetState):
        state = DecayNetState(start["h"], start["c"], math.pi / 2 - start["p"])
    else:
        state = start["c" if case.key == "sru" else "h"]
    if isinstance(normaliser, reference.BatchNorm):
        state = cell.initial_state(batch)._replace(cell=state)
    output, last, _ = unroll(cell, cell.prepare(x), state)
    given = {name: array(value) for name, value in start.items()}
    weights = weights_of(case, cell.cell)
    expected, end = reference.run(case.step, weights, array(x), given, normaliser)
    agree(output, expected)
    if isinstance(normaliser, reference.BatchNorm):
        assert last.steps.tolist() == [7.0] * batch
        last = last.cell
    if "p" in end:
        agree(math.pi / 2 - last.fall, end.pop("p"))
    for name, value in end.items():
        agree(last if isinstance(last, torch.Tensor) else getattr(last, name), value)


@cases
def test_layer_norm_equals_the_reference(case: Case) -> None:
    cell = random_cell(layer_norm(CELLS[case.key]), SIZE, SIZE, **dict(case.options))
    gains, shifts = sites(case, cell, "weight"), sites(case, cell, "bias")
    compare(case, cell, reference.layer_norm(gains, shifts))


@cases
def test_batch_norm_equals_the_reference_in_training_and_after(case: Case) -> None:
    made = batch_norm(CELLS[case.key], max_steps=5, momentum=0.25)
    cell = random_cell(made, SIZE, SIZE, **dict(case.options))
    for training in (True, False):
        cell.train(training)
        means, variances = sites(case, cell, "mean"), sites(case, cell, "var")
        normaliser = reference.BatchNorm(
            sites(case, cell, "weight"),
            sites(case, cell, "bias"),
            {site: (means[site], variances[site]) for site in means},
            training=training,
            momentum=0.25,
        )
        compare(case, cell, normaliser)
        for site, (mean, variance) in normaliser.stored.items():
            agree(torch.as_tensor(sites(case, cell, "mean")[site]), mean)
            agree(torch.as_tensor(sites(case, cell, "var")[site]), variance)
            assert training or np.array_equal(mean, means[site])


SHIFTS: dict[str, tuple[dict[str, Any], int]] = {
    "lstm": ({}, 0),
    "lstm without biases": ({"bias": False}, 16),
    "decaynet": ({"length": 3}, 4),
    "decaynet without biases": ({"length": 3, "bias": False}, 16),
    "fastgrnn": ({"shared": True}, 0),
    "fastgrnn without biases": ({"shared": True, "bias": False}, 4),
    "goru": ({}, 4),
    "irc_lstm": ({}, 12),
    "irc_lstm released": ({"forget_bias": 1.0}, 8),
    "irc_sru released": ({"forget_bias": 1.0, "highway_bias": -1.0}, 0),
    "irc_sru highway": ({"highway_bias": -1.0}, 4),
    "sru without biases": ({"bias": False}, 8),
    "ihc_lstm": ({}, 0),
    "ihc_lstm without biases": ({"bias": False}, 4),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_batch_norm_shifts_each_sum_that_has_no_bias(name: str) -> None:
    options, missing = SHIFTS[name]
    cell: Any = batch_norm(name.split()[0], 3)(SIZE, SIZE, **options)
    shifts = cell.norm_x.bias
    assert (0 if shifts is None else len(shifts)) == missing
    output, _, _ = unroll(cell, cell.prepare(torch.randn(2, 3, SIZE)), cell.initial_state(3))
    loss: torch.Tensor = output.square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert shifts is None or shifts.grad.all()


def test_batch_norm_can_learn_how_fast_decaynet_forgets() -> None:
    """The batch mean of the last angle is not the same for every unit, whatever the weights."""
    cell: Any = random_cell(batch_norm(CELLS["decaynet"], 6), SIZE, SIZE)
    with torch.no_grad():
        cell.norm_x.bias.copy_(torch.tensor([-3.0, -1.0, 1.0, 3.0]))
    _, last, _ = unroll(cell, cell.prepare(normal(6, 8, SIZE)), cell.initial_state(8))
    mean = last.cell.fall.mean(0)
    expected = math.pi / 12 * (cell.norm_x.bias + 3)
    torch.testing.assert_close(mean, expected)
