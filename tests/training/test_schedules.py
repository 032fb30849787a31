"""Learning rates that fall to zero by the last update."""

import pytest
import torch

from attractor.training.schedules import Schedule, falling, scheduled


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("linear", (1.0, 0.75, 0.5, 0.25, 0.0)),
        ("cosine", (1.0, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0.0)),
    ],
)
def test_what_is_left_is_the_same_whoever_lets_it_fall(
    name: Schedule, shares: tuple[float, ...]
) -> None:
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    scheduler = scheduled(name, sgd, 4)
    assert scheduler is not None
    for done, share in enumerate(shares):
        assert falling(name, done, 4) == pytest.approx(share, abs=1e-12)
        assert sgd.param_groups[0]["lr"] == pytest.approx(0.4 * share, abs=1e-12)
        sgd.step()
        scheduler.step()
