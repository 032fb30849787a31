import math

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from attractor.cells import DecayNetGRUCell, DecayNetGRUState, Recurrent
from attractor.errors import InputError
from cells.against import Array, agree, array, blocks, check, normal, random_cell
from contracts.cells import perturb, seeded
from reference import decaynet_gru


def weights_of(cell: DecayNetGRUCell) -> dict[str, Array]:
    weights = blocks("W_", "FRA", cell.weight_ih) | blocks("U_", "FRA", cell.weight_hh)
    assert cell.bias is not None
    return weights | blocks("b_", "RA", cell.bias)


def state_at(h: Tensor, p: Tensor) -> DecayNetGRUState:
    return DecayNetGRUState(h, math.pi / 2 - p)


@pytest.mark.parametrize("length", [None, 3, 20])
def test_equals_the_reference(length: int | None) -> None:
    cell = random_cell(DecayNetGRUCell, 3, 5, length=length)
    check(cell, decaynet_gru.run, weights_of(cell), {"h": 5, "p": 5}, state_at, D=length)


def test_packed_is_exact_at_the_length_of_each_row() -> None:
    g = seeded()
    layer = perturb(Recurrent("decaynet_gru", 3, 4, dtype=torch.float64, generator=g), g)
    sequences = [normal(n, 3, generator=g) for n in (2, 7, 4)]
    output, state = layer(pack_sequence(sequences, enforce_sorted=False))
    cell = layer.cells[0]
    assert isinstance(cell, DecayNetGRUCell)
    for row, (x, y) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        expected, end, _ = decaynet_gru.run(weights_of(cell), array(x))
        agree(y, expected)
        agree(math.pi / 2 - state.fall[0, row], end["p"])


def test_a_sequence_in_pieces_needs_its_length() -> None:
    cell = DecayNetGRUCell(3, 4)
    with pytest.raises(InputError, match="DecayNetGRUCell expects to know the length"):
        cell(torch.zeros(2, 3))


def test_starts_as_a_decaynet_does() -> None:
    cell = DecayNetGRUCell(40, 30)
    assert cell.bias is not None
    assert not cell.bias.any()
    assert 0.99 < cell.weight_hh.abs().max() <= 1
    assert 0.99 < cell.weight_ih.abs().max() <= 1
    assert not any(part.any() for part in cell.initial_state(2))
