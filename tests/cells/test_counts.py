"""Parameters of the cells, against the equations and against what was published."""

from itertools import pairwise
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


def stack(cell: str, *sizes: int) -> int:
    return sum(count(cell, n, m) for n, m in pairwise(sizes))


PUBLISHED: list[tuple[str, int, int, float, float]] = [
    # what, parameters of the baseline and of ours, published reduction in %, reduction we have
    ("IRC-GRU", stack("gru", 650, 650, 650), stack("irc_gru", 650, 650, 650), 33.4, 33.4),
    ("IRC-T-LSTM", stack("tlstm", 650, 650, 650), stack("irc_tlstm", 650, 650, 650), 50.0, 50.0),
    ("IRC-FastGRNN", stack("fastgrnn", 650, 650), stack("irc_fastgrnn", 650, 650), 25.0, 25.0),
    ("IRC-SRU", stack("sru", 1150, 1150), stack("irc_sru", 1150, 1150), 0.06, 0.06),
    ("IHC-LSTM, L2L", count("lstm", 20, 20), count("ihc_lstm", 20, 20), 14.0, 14.0),
    (  # with the sizes of the third layer swapped, which is how the published number comes about
        "IHC-LSTM, PTB as printed",
        2 * count("lstm", 400, 1150) + count("lstm", 1150, 1150),
        2 * count("ihc_lstm", 400, 1150) + count("ihc_lstm", 1150, 1150),
        39.2,
        39.2,
    ),
    (  # with layers that can be stacked
        "IHC-LSTM, PTB as trained",
        stack("lstm", 400, 1150, 1150, 400),
        stack("ihc_lstm", 400, 1150, 1150, 400),
        39.2,
        19.5,
    ),
    ("IHC-LSTM, DRAW", count("lstm", 100, 800), count("ihc_lstm", 100, 800), 85.4, 83.0),
    ("DecayNet", count("lstm", 28, 64), count("decaynet", 28, 48), 37.44, 38.1),
]
DIFFERENT = {"IHC-LSTM, PTB as trained", "IHC-LSTM, DRAW", "DecayNet"}
"""Where the equations do not give the published number."""


@pytest.mark.parametrize("row", PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_reductions_beside_ours(row: tuple[str, int, int, float, float]) -> None:
    name, baseline, simplified, published, ours = row
    decimals = 2 if ours < 1 else 1
    assert round(counts.reduction(baseline, simplified), decimals) == ours
    assert (published != ours) == (name in DIFFERENT)


def test_published_totals_of_learning_to_learn() -> None:
    assert count("lstm", 20, 20) == 3_280
    assert count("ihc_lstm", 20, 20) == 2_820


def test_published_totals_of_language_models() -> None:
    """In millions, as printed; SRU is printed as 12.0."""
    millions = [
        stack("gru", 650, 650, 650),
        stack("irc_gru", 650, 650, 650),
        stack("irc_tlstm", 650, 650, 650),
        stack("fastgrnn", 650, 650),
        stack("irc_fastgrnn", 650, 650),
        stack("sru", 1150, 1150, 1150, 1150),
    ]
    assert [round(n / 1e6, 1) for n in millions] == [5.1, 3.4, 2.5, 1.7, 1.3, 11.9]
    assert count("ihc_lstm", 100, 800) == 490_100  # printed as 0.42 million


def test_layers_have_the_parameters_of_their_cells() -> None:
    layer = Recurrent("irc_gru", 20, 30, num_layers=2)
    assert sum(p.numel() for p in layer.parameters()) == stack("irc_gru", 20, 30, 30)
