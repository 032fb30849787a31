"""Computed claims about deep stacks, beside gradients taken by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.models import MLP
from attractor.reproduction.computed import depth

RATIO = "log10 of the first layer's gradient over the last's"


def values(found: Any) -> dict[tuple[str, str], float]:
    return {(one.row, one.column): one.value for one in found}


@pytest.fixture(autouse=True)
def _one_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "SEEDS", range(1))
    monkeypatch.setattr(depth, "LAYERS", 12)
    monkeypatch.setattr(depth, "UPDATES", 2)


def test_less_gradient_reaches_the_first_layer_without_shortcuts() -> None:
    found = values(depth.reached())
    assert found["plain", RATIO] < -1 < found["residual", RATIO]
    assert found["plain", RATIO] < found["highway", RATIO]


def test_a_stack_that_keeps_its_gradient_is_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear layers of orthogonal weights: all of the gradient of the last reaches the first."""

    def orthogonal(sizes: list[int], **options: Any) -> nn.Module:
        model = MLP(sizes, **options)
        layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
        for layer in layers:
            nn.init.orthogonal_(layer.weight)
        return nn.Sequential(*layers)

    monkeypatch.setattr(depth, "STACKS", {"plain": orthogonal})
    assert values(depth.reached())["plain", RATIO] == pytest.approx(0, abs=1e-6)


def test_the_derivative_of_a_highway_is_scaled_by_its_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert max(values(depth.slopes()).values()) < 1e-12

    def wrong(k: Tensor, W: Tensor, T: Tensor) -> Tensor:
        return (1 - T) * k + T.square() * torch.relu(W @ k)

    monkeypatch.setattr(depth, "gated", wrong)
    assert values(depth.slopes())["highway", "largest error"] > 0.01


def test_ends_of_samples_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = values(depth.basins())
    assert found["highway", "attractors that two tasks use"] >= 1
    lost = torch.full((1, 32), torch.nan)

    def ends(model: nn.Module, samples: Tensor, steps: int) -> Tensor:
        return torch.cat([torch.eye(10, 32)[:9], lost])

    monkeypatch.setattr(depth, "highway_ends", ends)
    found = values(depth.basins())
    assert found["highway", "attractors that two tasks use"] == 9
    assert found["highway", "share of samples that come to rest"] == 0.9


def test_a_highway_is_between_its_state_and_what_a_layer_makes_of_it() -> None:
    k, W = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]])
    between = depth.gated(k, W, torch.tensor([0.25, 0.75]))  # the layer alone: 3 and 0
    assert between.tolist() == [0.75 * 1 + 0.25 * 3, 0.25 * 2]
