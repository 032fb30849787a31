"""Optimisers as systems: energies, responses, and what the thesis claims of them."""

import pytest
import torch
from torch import Tensor, nn

from attractor.dynamics import (
    energy,
    implied_rates,
    interference,
    no_update,
    rate_shares,
    response,
    signal,
)
from attractor.errors import InputError
from attractor.optimisers import MetaSGD


def quadratic() -> tuple[nn.Parameter, Tensor]:
    return nn.Parameter(torch.tensor([3.0, -1.0]).double()), torch.tensor([1.0, 20.0]).double()


@pytest.mark.parametrize(("share", "rises"), [(0.99, False), (1.6, True)])
def test_the_energy_of_momentum_falls_up_to_the_bound(share: float, rises: bool) -> None:
    w, scale = quadratic()
    rate = share * 2 * (1 - 0.8) / 20
    found = energy(lambda: (scale * w**2).sum() / 2, [w], rate=rate, momentum=0.8, steps=150)
    assert (found.energy_rises > 0) == rises
    assert w.tolist() == [3.0, -1.0]


def test_momentum_and_nag_step_as_torch_does() -> None:
    for method, nesterov in (("momentum", False), ("nag", True)):
        w, scale = quadratic()
        found = energy(
            lambda w=w, scale=scale: (scale * w**4).sum() / 4,  # type: ignore[misc]
            [w],
            method,  # type: ignore[arg-type]
            rate=0.001,
            momentum=0.9,
            steps=30,
        )
        # torch's NAG is of theta + p v: it is compared by its own look-ahead
        place = w.detach().clone()
        v = torch.zeros_like(place)
        losses = []
        for _ in range(31):
            losses.append(float((scale * place**4).sum() / 4))
            at = place + 0.9 * v if nesterov else place
            v = 0.9 * v - 0.001 * scale * at**3
            place = place + v
        assert found.losses.tolist() == pytest.approx(losses)


def test_plain_descent_has_the_loss_as_its_energy() -> None:
    w, scale = quadratic()
    found = energy(lambda: (scale * w**2).sum() / 2, [w], "sgd", rate=0.09, steps=50)
    assert torch.equal(found.losses, found.energies)
    assert found.energy_rises == 0
    with pytest.raises(InputError, match="above zero"):
        energy(lambda: (w**2).sum(), [w], rate=0.0)


def test_rates_that_are_not_negative_are_not_enough() -> None:
    """(5.13) promises convergence from non-negative rates alone; a rate above 2 / 20 diverges."""
    w, scale = quadratic()
    found = energy(lambda: (scale * w**2).sum() / 2, [w], "sgd", rate=0.11, steps=50)
    g = scale * w.detach()
    assert bool((implied_rates(-0.11 * g, g) > 0).all())
    assert float(found.losses[-1]) > float(found.losses[0])


def test_the_implied_rates_of_a_rule() -> None:
    rates = torch.tensor([0.1, 0.0, 0.3])
    g = torch.tensor([2.0, -1.0, -4.0])
    torch.testing.assert_close(implied_rates(-rates * g, g), rates)


@pytest.mark.parametrize(("lr", "p"), [(0.1, 0.9), (0.03, 0.0), (0.5, 0.5)])
def test_the_rate_and_momentum_of_sgd_are_found(lr: float, p: float) -> None:
    found = response(lambda q: torch.optim.SGD(q, lr, momentum=p), signal("noise", 200, size=2.0))
    assert [found.rate, found.momentum] == pytest.approx([lr, p], abs=1e-4)


def test_adam_answers_a_constant_with_its_rate_whatever_its_size() -> None:
    for size in (0.01, 5.0):
        found = response(lambda q: torch.optim.Adam(q, 0.02), signal("constant", 50, size=size))
        torch.testing.assert_close(found.steps, torch.full((50,), -0.02), rtol=1e-3, atol=1e-6)
        assert found.settled < 1e-3


def test_what_a_rate_and_a_momentum_do_not_explain() -> None:
    gradients = signal("noise", 120, size=3.0)
    found = response(lambda q: torch.optim.Adam(q, 0.1), gradients)
    told = found.momentum * found.steps[:-1] - found.rate * gradients[1:]
    left = (found.steps[1:] - told).square().sum() / found.steps[1:].square().sum()
    assert found.unexplained == pytest.approx(float(left), rel=1e-3)
    assert 0.01 < found.unexplained < 1


def test_a_learned_rule_has_a_response() -> None:
    found = response(MetaSGD(size=1, rate=0.07), signal("sine", 60))
    assert found.rate == pytest.approx(0.07, abs=1e-5)


def test_signals() -> None:
    assert signal("sine", 21)[5].item() == pytest.approx(1.0)
    assert signal("constant", 3, size=2.0).tolist() == [2.0, 2.0, 2.0]
    assert signal("step", 5, size=0.5).tolist() == [0.0, 0.0, 0.0, 0.5, 0.5]
    with pytest.raises(InputError, match="known signal"):
        signal("square", 5)  # type: ignore[arg-type]


def test_the_condition_of_dmsgd_needs_its_sign() -> None:
    static = torch.tensor([0.2, 0.2, -0.1, 0.3])
    dynamic = torch.tensor([0.15, -0.15, 0.04, -0.1])
    told = no_update(static, dynamic, gamma=2.0)
    assert (told.printed, told.actual) == (0.5, 0.5)
    assert no_update(static[:1], dynamic[:1], 2.0).printed == 1.0
    assert no_update(static[:1], dynamic[:1], 2.0).actual == 0.0


def test_interference_is_the_cosine_of_gradients() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    tasks = [
        lambda: model(x).mean(),
        lambda: -2 * model(x).mean(),
        lambda: model(x).square().mean(),
    ]
    found = interference(tasks, model)
    assert found[0, 1].item() == pytest.approx(-1.0)
    torch.testing.assert_close(found, found.T)
    assert found.diagonal().tolist() == pytest.approx([1, 1, 1])


def test_rates_by_task() -> None:
    told = rate_shares(torch.tensor([[0.01, 0.03, 0.06, 0.07], [0.01, 0.01, 0.04, 0.06]]))
    assert told.small.tolist() == [0.25, 0.5]
    assert told.large.tolist() == [0.5, 0.25]
    assert told.mean.tolist() == pytest.approx([0.0425, 0.03])
