"""Computed claims about networks that grow and about memories, beside ones that come out wrong."""

from typing import Any

import pytest
import torch

from attractor.cells import CELLS
from attractor.continual import grow
from attractor.models import MLP
from attractor.reproduction.computed import cellstates, growing, vanishing

CHANGE = "largest change of the outputs"


def values(found: Any) -> dict[tuple[str, str], float]:
    return {(one.row, one.column): one.value for one in found}


def test_a_wider_network_says_the_same_and_noise_alone_gives_it_full_rank() -> None:
    found = values(growing.preserved())
    for kind in ("feed-forward", "recurrent"):
        for how in ("with noise", "without noise"):
            assert found[f"{kind}, {how}", CHANGE] < 1e-12
    assert found["feed-forward, noise as printed", CHANGE] > 0.1
    assert found["recurrent, without noise", growing.CONDITION] == pytest.approx(16)
    assert found["recurrent, with noise", growing.CONDITION] < 2


def test_the_worst_network_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def counted(*_: Any) -> float:
        seen.append(len(seen))
        return seen[-1]

    monkeypatch.setattr(growing, "conditioned", counted)
    found = values(growing.preserved())
    assert found["recurrent, with noise", growing.CONDITION] == max(seen[::2])
    assert found["recurrent, without noise", growing.CONDITION] == min(seen[1::2])


def test_noise_into_copies_is_zero_in_sum() -> None:
    model = MLP([3, 2, 4]).double()
    wide = grow(model, hidden_size=5, noise=0.0)
    before = next(wide.parameters()).detach().clone()
    after = next(growing.into_copies(wide, torch.Generator().manual_seed(0)).parameters())
    for unit in torch.unique(before, dim=0):
        copies = (before == unit).all(1)
        assert torch.allclose(after[copies].mean(0), unit)
        assert copies.sum() == 1 or not torch.allclose(after[copies][0], unit)


def test_gradients_come_back_through_a_memory_that_is_added_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vanishing, "SEEDS", range(1))
    found = values(vanishing.memories())
    assert found["LSTM, c", "log10 of the norm"] < -3 < 0 < found["NRU, m", "log10 of the norm"]

    def idle(inputs: int, units: int, **options: Any) -> Any:
        cell = CELLS["nru"](inputs, units, **options)
        for parameter in cell.parameters():
            torch.nn.init.zeros_(parameter)
        return cell

    monkeypatch.setattr(vanishing, "CELLS", {"nru": idle, "lstm": CELLS["lstm"]})
    found = values(vanishing.memories())  # of heads that write nothing, m is kept as it is
    assert found["NRU, m", "log10 of the norm"] == pytest.approx(0, abs=1e-12)


def test_an_lstm_is_the_same_without_its_hidden_state(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(values(cellstates.substituted()).values()) < 1e-12
    whole = cellstates.started

    def with_peepholes(*given: Any) -> Any:
        return whole(*given, peepholes=True)

    monkeypatch.setattr(cellstates, "started", with_peepholes)
    assert max(values(cellstates.substituted()).values()) > 1e-3
