import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from attractor.cells import (
    DecayNetCell,
    DecayNetState,
    Recurrent,
    batch_norm,
    layer_norm,
    recurrent_dropout,
    unroll,
    zoneout,
)
from attractor.errors import InputError
from cells.against import BATCH, TIME, Array, agree, array, blocks, check, normal, random_cell
from contracts.cells import perturb, seeded
from reference import decaynet


def weights_of(cell: DecayNetCell) -> dict[str, Array]:
    weights = blocks("W_", "FIOA", cell.weight_ih) | blocks("U_", "FIOA", cell.weight_hh)
    assert cell.bias is not None
    return weights | blocks("b_", "IOA", cell.bias)


def state_at(h: Tensor, c: Tensor, p: Tensor) -> DecayNetState:
    """The reference's state has the angle, the cell's how far it has fallen."""
    return DecayNetState(h, c, math.pi / 2 - p)


@pytest.mark.parametrize("length", [None, 3, 20])
def test_equals_the_reference(length: int | None) -> None:
    cell = random_cell(DecayNetCell, 3, 5, length=length)
    sizes = {"h": 5, "c": 5, "p": 5}
    check(cell, decaynet.run, weights_of(cell), sizes, state_at, D=length)


def test_two_inner_steps_of_an_optimiser_with_the_angle_put_back() -> None:
    """Kuo (2021), 4.1.6.2: twice the same input, D = 2, p from pi/2 again."""
    cell = random_cell(DecayNetCell, 3, 5, length=2)
    x = normal(3)
    h, c = normal(1, 5), normal(1, 5)
    state = DecayNetState(h, c, torch.zeros_like(h))
    twice = x.expand(2, 1, 3)
    output, _, _ = unroll(cell, cell.prepare(twice), state)
    start = {"h": array(h[0]), "c": array(c[0])}
    expected, _, _ = decaynet.run(weights_of(cell), array(twice[:, 0]), D=2, state=start)
    agree(output[:, 0], expected)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), time=st.integers(2, 30), scale=st.floats(0.1, 3))
def test_forget_gate_never_rises_while_its_sum_is_at_least_minus_three(
    seed: int, time: int, scale: float
) -> None:
    g = seeded(seed)
    cell = perturb(DecayNetCell(3, 4, generator=g, dtype=torch.float64), g)
    x = scale * torch.randn(time, 2, 3, generator=g, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh[:4] = 0
        lowest = (x @ cell.weight_ih[:4].T).min().item()
        cell.weight_ih[:4] *= min(1.0, 3 / -lowest) if lowest < 0 else 1.0
    states = unroll(cell, cell.prepare(x), cell.initial_state(2), return_states=True).states
    f = torch.cos(states.fall.clamp(0, math.pi / 2))
    assert (f.diff(dim=0) <= 1e-12).all()
    assert (f >= 0).all()
    assert (states.fall >= -1e-12).all()


def test_forget_gate_rises_again_below_minus_three() -> None:
    cell = DecayNetCell(1, 1, length=2, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.zero_()[0] = 1
        cell.weight_hh.zero_()
    x = torch.tensor([9.0, 9.0, -15.0, -27.0], dtype=torch.float64)[:, None, None]
    states = unroll(cell, cell.prepare(x), cell.initial_state(1), return_states=True).states
    expected = torch.tensor([0, -math.pi / 2, 0, math.pi], dtype=torch.float64)
    torch.testing.assert_close(math.pi / 2 - states.fall[:, 0, 0], expected, atol=1e-12, rtol=0)


@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), both=st.booleans())
def test_packed_is_exact_at_the_length_of_each_row(lengths: list[int], both: bool) -> None:
    g = seeded(0)
    layer = Recurrent("decaynet", 3, 4, bidirectional=both, dtype=torch.float64, generator=g)
    perturb(layer, g)
    sequences = [normal(n, 3, generator=g) for n in lengths]
    output, state = layer(pack_sequence(sequences, enforce_sorted=False))
    for row, (x, y) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        cell = layer.cells[0]
        assert isinstance(cell, DecayNetCell)
        expected, end, _ = decaynet.run(weights_of(cell), array(x))
        agree(y[:, :4], expected)
        for name in "hc":
            agree(getattr(state, name)[0, row], end[name])
        agree(math.pi / 2 - state.fall[0, row], end["p"])


def test_the_length_of_the_input_is_taken_unless_given() -> None:
    free = random_cell(DecayNetCell, 3, 5)
    x = normal(TIME, BATCH, 3)
    fixed = random_cell(DecayNetCell, 3, 5, length=TIME)
    for prepared in (free.prepare(x), free.prepare_ragged(x, torch.full((BATCH,), TIME))):
        torch.testing.assert_close(prepared, fixed.prepare(x))
    other = fixed.prepare_ragged(x, torch.tensor([7, 3, 1]))
    torch.testing.assert_close(other, fixed.prepare(x))


def test_long_sequences_in_half_precision() -> None:
    cell = DecayNetCell(3, 4, dtype=torch.float16)
    rate = cell.prepare(torch.zeros(70_000, 1, 3).half(), lambda x, *_: x[:1]).rate
    assert rate[0, 0, 0].item() == pytest.approx(math.pi / 12 / 70_000, rel=2e-2)


def test_wrong_length() -> None:
    with pytest.raises(InputError, match="length to be a whole number of at least 1, but got 0"):
        DecayNetCell(3, 4, length=0)


def test_starts_as_the_paper_says() -> None:
    cell = DecayNetCell(40, 30)
    assert cell.bias is not None
    assert not cell.bias.any()
    assert 0.99 < cell.weight_hh.abs().max() <= 1
    assert 0.99 < cell.weight_ih.abs().max() <= 1
    assert not any(part.any() for part in cell.initial_state(2))


def test_without_biases() -> None:
    cell = DecayNetCell(3, 5, bias=False, length=4)
    output, _ = cell(torch.zeros(2, 3), cell.initial_state(2))
    assert not output.any()


def test_zeros_by_hand_are_the_start() -> None:
    layer = Recurrent("decaynet", 3, 4, num_layers=2, length=7)
    x = torch.randn(7, 2, 3)
    zeros = DecayNetState(*torch.zeros(3, 2, 2, 4))
    torch.testing.assert_close(layer(x, zeros), layer(x), rtol=0, atol=0)


def test_a_gate_that_is_shut_is_exactly_zero() -> None:
    cell = DecayNetCell(1, 1, length=1)
    with torch.no_grad():
        cell.weight_ih.zero_()
        cell.weight_hh.zero_()
    state = DecayNetState(torch.zeros(1, 1), torch.ones(1, 1), torch.full((1, 1), 9.0))
    _, new = cell(torch.zeros(1, 1), state)
    assert new.c.item() == 0


PIECES = "length of a sequence that comes in pieces, by hand or with a state, but length is None"


def test_stepping_by_hand_needs_a_length() -> None:
    cell = DecayNetCell(3, 4)
    with pytest.raises(InputError, match=PIECES):
        cell(torch.zeros(2, 3), cell.initial_state(2))
    with pytest.raises(InputError, match=PIECES):
        cell(torch.zeros(2, 3))


@pytest.mark.parametrize(
    "made",
    [
        "decaynet",
        layer_norm("decaynet"),
        batch_norm("decaynet", 3),
        zoneout(recurrent_dropout("decaynet", 0.1), 0.1, 0.1),
    ],
    ids=["plain", "layer norm", "batch norm", "noise"],
)
def test_a_state_that_is_passed_on_needs_a_length(made: Any) -> None:
    x = torch.randn(7, 2, 3)
    layer = Recurrent(made, 3, 4)
    _, state = layer(x[:4])
    with pytest.raises(InputError, match=PIECES):
        layer(x[4:], state)
    with pytest.raises(InputError, match=PIECES):
        layer(pack_sequence([x[4:, 0], x[4:, 1]]), state)


def test_with_a_length_pieces_are_the_whole() -> None:
    layer = Recurrent("decaynet", 3, 4, length=7)
    x = torch.randn(7, 2, 3)
    whole, _ = layer(x)
    first, state = layer(x[:4])
    second, _ = layer(x[4:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
