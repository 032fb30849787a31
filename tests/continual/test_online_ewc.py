"""Online EWC: one centre, the latest, and Fisher diagonals that fade."""

import pytest
import torch

from attractor import InputError
from attractor.continual import EWC, OnlineEWC
from attractor.continual.flat import Flat
from continual.helpers import batch, digits, mlp, seeded


def moved(strategy: EWC | OnlineEWC) -> list[torch.Tensor]:
    """Two tasks end, at different weights; the weights of each, and those after a third change."""
    model, stream = mlp(), digits()
    strategy.start(model, stream, generator=seeded())
    flat, g = Flat(model), seeded(4)
    places = []
    for task in stream[:2]:
        flat.add(torch.randn(sum(flat.sizes), generator=g))
        places.append(flat.values())
        strategy.end_task(model, task)
    flat.add(torch.randn(sum(flat.sizes), generator=g))
    model.zero_grad()
    model(batch(stream[2]).x).sum().backward()
    plain = flat.gradient()
    strategy.after_backward(model)
    return [*places, flat.values(), flat.gradient() - plain]


def test_the_pull_is_towards_the_latest_weights_by_a_faded_fisher() -> None:
    strategy = OnlineEWC(3.0, decay=0.4, samples=None)
    first, second, now, pull = moved(strategy)
    model = mlp()
    fishers = []
    for place, task in zip((first, second), digits()[:2], strict=True):
        torch.nn.utils.vector_to_parameters(place, model.parameters())
        once = EWC(samples=None)
        once.start(model, digits(), generator=seeded())
        fishers.append(once.fisher(task))
    faded = 0.4 * fishers[0] + fishers[1]
    assert strategy.anchor is not None
    torch.testing.assert_close(strategy.anchor.fisher, faded, rtol=1e-4, atol=1e-7)
    assert torch.equal(strategy.anchor.value, second)
    # float rounding of gradients of the sum of outputs, which are much larger
    torch.testing.assert_close(pull, 3.0 * 0.4 * faded * (now - second), rtol=1e-3, atol=1e-3)


def test_it_is_not_ewc_with_a_decay() -> None:
    *_, one = moved(OnlineEWC(3.0, decay=0.4, samples=50))
    *_, other = moved(EWC(3.0, decay=0.4, samples=50))
    assert float((one - other).abs().max()) > 0.05


def test_the_penalty_can_be_asked_for() -> None:
    strategy = OnlineEWC(3.0, decay=0.5, samples=20)
    strategy.start(mlp(), digits(), generator=seeded())
    assert float(strategy.penalty()) == 0
    _, second, now, _ = moved(strategy)
    assert strategy.anchor is not None
    expected = 3.0 * 0.5 / 2 * (strategy.anchor.fisher * (now - second) ** 2).sum()
    torch.testing.assert_close(strategy.penalty(), expected)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="expected decay to be from 0 to 1, but got 2"):
        OnlineEWC(decay=2)
    with pytest.raises(InputError, match="expected strength to be at least 0, but got -1"):
        OnlineEWC(-1)
    with pytest.raises(InputError, match="expected strength to be a number, but got 'much'"):
        OnlineEWC("much")  # type: ignore[arg-type]


def test_a_state_of_another_model_is_refused() -> None:
    small, saved, other = mlp(), OnlineEWC(samples=10), OnlineEWC(samples=10)
    saved.start(small, digits(), generator=seeded())
    saved.end_task(small, digits()[0])
    other.start(mlp(16, 16), digits(), generator=seeded())
    with pytest.raises(InputError, match="Fisher diagonal of 1482 parameters.*holds 682"):
        other.load_state_dict(saved.state_dict())
