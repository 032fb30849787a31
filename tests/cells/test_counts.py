"""Parameters of the cells, against the equations and against what was published."""

from functools import partial
from typing import Any

import pytest

from attractor.cells import CELLS, Recurrent, batch_norm, layer_norm
from reference import counts

SIZES = [(3, 5), (5, 3), (4, 4)]
CASES: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("lstm", "lstm", {}, {}),
    ("gru", "gru", {}, {}),
    ("sru", "sru", {}, {}),
    ("tlstm", "tlstm", {}, {}),
    ("fastgrnn", "fastgrnn", {}, {}),
    ("fastgrnn", "fastgrnn", {"shared": True}, {"shared": True}),
    ("decaynet", "decaynet", {}, {}),
    ("irc_gru", "irc_gru", {}, {}),
    ("irc_lstm", "irc_lstm", {}, {}),
    ("irc_fastgrnn", "irc_fastgrnn", {}, {}),
    ("irc_fastgrnn", "irc_fastgrnn", {"beta_per_unit": True}, {"beta_per_unit": True}),
    ("ihc_lstm", "ihc_lstm", {}, {}),
    ("ihc_gru", "ihc_gru", {}, {}),
    ("lstm_layer_norm", layer_norm("lstm"), {}, {}),
    ("lstm_batch_norm", batch_norm("lstm", 5), {}, {}),
]


def count(cell: Any, n: int, m: int, **options: Any) -> int:
    made: Any = CELLS[cell] if isinstance(cell, str) else cell
    # the meta device: large cells are counted without being filled
    return sum(p.numel() for p in made(n, m, device="meta", **options).parameters())


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize(("formula", "cell", "options", "given"), CASES)
def test_parameters_are_those_of_the_equations(
    formula: str, cell: Any, options: Any, given: Any, n: int, m: int
) -> None:
    assert count(cell, n, m, **options) == getattr(counts, formula)(n, m, **given)


@pytest.mark.parametrize("key", ["irc_sru", "irc_tlstm"])
def test_parameters_of_square_cells(key: str) -> None:
    assert count(key, 4, 4) == getattr(counts, key)(4, 4)
    # the matrix that makes another size possible is the only addition
    assert count(key, 3, 4) == getattr(counts, key)(4, 4) + 4 * 3


@pytest.mark.parametrize("row", counts.PUBLISHED, ids=lambda row: row.name)
def test_published_networks_have_the_parameters_of_the_equations(row: counts.Published) -> None:
    """Which of these are the published numbers, the rows say, and the reference's tests check."""
    assert row.parameters(count) == row.parameters(counts.by_equations)


def test_released_language_model() -> None:
    """Without W_G and b_G, which the equations have."""
    count_released = partial(count, "ihc_lstm", gate_reads_input=False)
    assert counts.network(count_released, counts.STACKED) == 13_455_000


def test_layers_have_the_parameters_of_their_cells() -> None:
    layer = Recurrent("irc_gru", 20, 30, num_layers=2)
    expected = counts.irc_gru(20, 30) + counts.irc_gru(30, 30)
    assert sum(p.numel() for p in layer.parameters()) == expected
