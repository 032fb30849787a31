"""What the start of the released form of M2SGD decides."""

import pytest
import torch

from attractor.optimisers import GlobalM2SGD, View


def test_half_of_the_weights_go_before_anything_is_learnt() -> None:
    """The rows of the last layer are random and symmetric, so half of the rates are not above 0."""
    rule = GlobalM2SGD(size=25_450, generator=torch.Generator().manual_seed(0))
    params = torch.randn(1, 25_450)
    with torch.no_grad():
        view = View.of(params)
        step, _ = rule.update(torch.zeros_like(params), rule.init(params, view), params, view)
    assert float((step == -params).float().mean()) == pytest.approx(0.5, abs=0.02)
