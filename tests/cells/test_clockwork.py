from typing import Any

import pytest
import torch

from attractor.cells import ClockworkCell, ClockworkState, Recurrent, unroll, weight_drop
from attractor.errors import InputError
from cells.against import BATCH, Array, agree, array, normal, random_cell
from reference import clockwork


def weights_of(cell: ClockworkCell) -> dict[str, Array]:
    """Each block on its own, cut out of the whole matrix."""
    assert cell.bias is not None
    whole, sizes = cell.matrix(), list(cell.sizes)
    named: dict[str, Array] = {}
    for g, rows in enumerate(torch.split(whole, sizes)):
        named |= {f"U{g}{j}": array(block) for j, block in enumerate(torch.split(rows, sizes, 1))}
    for name, parameter in (("W", cell.weight_ih), ("b", cell.bias)):
        named |= {f"{name}{g}": array(p) for g, p in enumerate(torch.split(parameter, sizes))}
    return named


@pytest.mark.parametrize("reads", ["slower", "itself"])
@pytest.mark.parametrize(
    ("size", "periods", "sizes"),
    [
        (8, (1, 2, 4, 8), [2, 2, 2, 2]),
        (7, (1, 3), [4, 3]),
        (8, (2, 3, 5), [3, 3, 2]),
        (4, (3,), [4]),
    ],
)
def test_equals_the_reference(
    size: int, periods: tuple[int, ...], sizes: list[int], reads: Any
) -> None:
    cell = random_cell(ClockworkCell, 3, size, periods=periods, reads=reads)
    assert cell.sizes == sizes
    x, h = normal(11, BATCH, 3), normal(BATCH, size)
    given = {"sizes": sizes, "periods": periods, "slower": reads == "slower"}
    for start in (cell.initial_state(BATCH), ClockworkState(h, torch.zeros_like(h))):
        output, last, _ = unroll(cell, cell.prepare(x), start)
        for row in range(BATCH):
            begin = {"h": array(start.h[row])}
            expected = clockwork.run(weights_of(cell), array(x[:, row]), state=begin, **given)
            agree(output[:, row], expected.outputs)
            agree(last.h[row], expected.state["h"])


def test_goes_on_counting_in_a_new_piece() -> None:
    cell = random_cell(ClockworkCell, 3, 6, periods=(1, 2, 5))
    x = normal(9, 1, 3)
    _, state, _ = unroll(cell, cell.prepare(x[:4]), cell.initial_state(1))
    output, _, _ = unroll(cell, cell.prepare(x[4:]), state)
    expected = clockwork.run(
        weights_of(cell),
        array(x[4:, 0]),
        sizes=[2, 2, 2],
        periods=(1, 2, 5),
        state={"h": array(state.h[0])},
        first=4,
    )
    agree(output[:, 0], expected.outputs)


def test_a_group_is_still_between_its_steps() -> None:
    cell = random_cell(ClockworkCell, 3, 6, periods=(1, 4))
    x = normal(9, 1, 3)
    h = unroll(cell, cell.prepare(x), cell.initial_state(1), return_states=True).states.h[:, 0]
    moved = (h.diff(dim=0) != 0).all(1), (h[:, 3:].diff(dim=0) != 0).any(1)
    assert moved[1].tolist() == [False, False, False, True, False, False, False, True]
    assert (h[:, :3].diff(dim=0) != 0).all()


def test_no_weight_is_there_that_is_not_used() -> None:
    cell: Any = ClockworkCell(3, 8)
    assert [tuple(weight.shape) for weight in cell.weight_hh] == [(2, 8), (2, 6), (2, 4), (2, 2)]
    alone: Any = ClockworkCell(3, 8, reads="itself")
    assert [tuple(weight.shape) for weight in alone.weight_hh] == [(2, 2)] * 4
    large = ClockworkCell(3, 64)
    assert 0.124 < max(weight.abs().max().item() for weight in large.weight_hh) <= 0.125
    assert 0.12 < large.weight_ih.abs().max() <= 0.125


def test_its_matrices_are_dropped() -> None:
    layer = weight_drop(Recurrent("clockwork", 3, 8), 0.5)
    assert layer.dropped == tuple(f"cells.0.weight_hh.{index}" for index in range(4))
    assert layer(torch.zeros(5, 2, 3))[0].shape == (5, 2, 8)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"periods": ()}, "periods that grow, but got"),
        ({"periods": (1, 4, 2)}, r"periods that grow, but got \[1, 4, 2\]"),
        ({"periods": (1, 1)}, "periods that grow"),
        ({"periods": (0, 1)}, "every period to be a whole number of at least 1, but got 0"),
        (
            {"periods": (1, 2, 4, 8, 16)},
            "one unit for each of its 5 periods, but got hidden_size=4",
        ),
        ({"reads": "faster"}, "reads 'slower' or 'itself', but got 'faster'"),
    ],
)
def test_what_does_not_fit(options: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        ClockworkCell(3, 4, **options)
