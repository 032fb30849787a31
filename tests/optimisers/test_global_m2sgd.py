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


def test_what_it_reads_of_a_static_rate_below_nought_is_nought() -> None:
    rule = GlobalM2SGD(size=6, generator=torch.Generator().manual_seed(0))
    params, grads = torch.randn(2, 2, 6, generator=torch.Generator().manual_seed(1))
    view = View.of(params[:1])

    def read(static: float) -> torch.Tensor:
        torch.nn.init.constant_(rule.static, static)
        _, state = rule.update(grads, rule.init(params, view), params, view)
        (memory,) = state.shared
        found: torch.Tensor = memory.h.detach()
        return found

    assert torch.equal(read(-0.3), read(0.0))
    assert not torch.allclose(read(0.3), read(0.0))
