"""Reference checks: numbers of parameters."""

import pytest

from reference import counts, irc_fastgrnn
from reference.drawn import GATES, LSTM, batch_norm_weights, draw, ihc_weights, irc_weights


@pytest.mark.parametrize("n", [1, 3, 5])
def test_counts_are_the_sizes_of_the_weights(n: int) -> None:
    for cell in GATES:
        weights = irc_weights(cell, n, n)
        extra = {"beta_per_unit": True} if cell is irc_fastgrnn else {}
        count = getattr(counts, cell.__name__.rpartition(".")[2])
        assert sum(v.size for v in weights.values()) == count(n, n, **extra)
    for name, gates in (("ihc_lstm", "FIOA"), ("ihc_gru", "IRA")):
        weights = ihc_weights(gates, n, 4)
        assert sum(v.size for v in weights.values()) == getattr(counts, name)(n, 4)
    assert sum(v.size for v in draw(LSTM, n, 4).values()) == counts.lstm(n, 4)
    assert sum(v.size for v in batch_norm_weights(n, 4).values()) == counts.lstm_batch_norm(n, 4)


@pytest.mark.parametrize("row", counts.PUBLISHED, ids=lambda row: row.name)
def test_counts_say_which_published_numbers_the_equations_give(row: counts.Published) -> None:
    found = row.parameters(counts.by_equations)
    given = round(counts.reduction(*found), row.decimals) == row.percent
    if row.totals is not None:
        for total, count in zip(row.totals, found, strict=True):
            unit = 100_000 if total >= 1_000_000 else 10_000 if total >= 100_000 else 10
            given = given and round(count / unit) * unit == total
    assert given is row.given


def test_counts_of_the_published_numbers_that_the_equations_miss() -> None:
    assert counts.ihc_lstm(100, 800) == 490_100
    assert counts.reduction(counts.lstm(100, 800), 490_100) == pytest.approx(83.0, abs=0.05)
    gate_on_feedback = counts.ihc_lstm(100, 800) - 100 * 800 + 100 * 100
    assert gate_on_feedback == 420_100
    assert counts.reduction(counts.lstm(100, 800), gate_on_feedback) == pytest.approx(
        85.4, abs=0.05
    )
    assert counts.ihc_lstm(20, 20) == 2_820
    trained = [counts.network(f, counts.STACKED) for f in (counts.lstm, counts.ihc_lstm)]
    assert trained == [20_200_800, 16_262_700]
    as_run = counts.lstm(28, 48, biases=2) + 480, counts.lstm(28, 64, biases=2) + 640
    assert round(counts.reduction(as_run[1], as_run[0]), 2) == 37.44
    assert counts.fastgrnn(650, 650, shared=True) == 846_302 < counts.irc_fastgrnn(650, 650)
