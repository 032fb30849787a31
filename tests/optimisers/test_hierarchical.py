"""How the hierarchical optimiser starts, what its levels tell each other, and its bounds."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.cells import GRUCell
from attractor.errors import InputError
from attractor.optimisers import HierarchicalOptimiser, View
from contracts.cells import seeded

VIEW = View.of([torch.zeros(2, 3), torch.zeros(4)])


def made(**options: Any) -> HierarchicalOptimiser:
    return HierarchicalOptimiser(generator=seeded(1), **options).double()


def descend(rule: HierarchicalOptimiser, grads: Tensor) -> tuple[Tensor, Any]:
    """The steps of a sequence of gradients, and the state after them."""
    params = torch.zeros(1, 10, dtype=torch.float64)
    state, steps = rule.init(params, VIEW), []
    for one in grads:
        step, state = rule.update(one[None], state, params, VIEW)
        steps.append(step[0])
    return torch.stack(steps), state


def drawn(steps: int = 3) -> Tensor:
    return torch.randn(steps, 10, generator=seeded(2), dtype=torch.float64)


def test_without_its_network_it_starts_by_following_signs() -> None:
    rule = made(rate=0.2)
    for silenced in (rule.direction, rule.memory, rule.scale):
        nn.init.zeros_(silenced.weight)
    grads = drawn() * torch.logspace(-3, 3, 10)
    steps, state = descend(rule, grads)
    torch.testing.assert_close(steps[0], -0.2 / math.e * grads[0].sign(), rtol=1e-6, atol=0)
    for kept, at in ((state.each.memory, 2.2), (state.each.scale, 3.2)):
        torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 + math.exp(-at))))
    for cell in rule.cells:
        assert isinstance(cell, GRUCell)
        assert cell.bias is not None
        units = cell.hidden_size
        assert cell.bias.tolist() == pytest.approx([2.2] * units + [-2.2] * units + [0.0] * units)


def test_every_tensor_hears_of_every_other_one_update_later() -> None:
    rule = made()
    grads = drawn()
    steps, _ = descend(rule, grads)
    for changed, others in ((slice(0, 6), slice(6, 10)), (slice(6, 10), slice(0, 6))):
        other = grads.clone()
        other[0, changed] *= -1
        found, _ = descend(rule, other)
        assert torch.equal(found[0, others], steps[0, others])
        assert not torch.allclose(found[1, others], steps[1, others], rtol=1e-6, atol=0)


def test_a_rate_stops_at_its_bound_and_its_gradient_does_not() -> None:
    rule = made(rate=1e14)
    nn.init.constant_(rule.change.bias, 5.0)
    steps, _ = descend(rule, drawn(1))
    assert steps.square().mean().sqrt().item() == pytest.approx(math.exp(32), rel=0.3)
    assert math.log(1e14) + 5 > 33
    (found,) = torch.autograd.grad(steps.abs().sum(), rule.change.bias)
    assert float(found) == pytest.approx(steps.abs().sum().item())


def test_parameters_that_come_later_leave_the_state_of_the_others() -> None:
    first, late = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(4))
    optimiser = made()([first])
    first.grad = torch.ones(2, 3)
    optimiser.step()
    before = {name: one.clone() for name, one in optimiser.state[first].items()}
    optimiser.add_param_group({"params": [late]})
    late.grad, rate = torch.ones(4), torch.tensor(0.01, dtype=torch.float64).log()
    state = optimiser._state(first, torch.ones(1, 10, dtype=torch.float64), VIEW)
    for name, one in state.named().items():
        assert torch.equal(one[:, : before[name].shape[1]], before[name]), name
    assert state.shared.tensors.shape[1] == 2
    torch.testing.assert_close(state.each.rate[0, 6:], rate.expand(4))
    optimiser.step()
    assert not torch.equal(late, torch.ones(4))


def test_sizes_that_make_no_sense() -> None:
    for given in ({"scales": 1}, {"rate": 0.0}, {"rate": -1.0}):
        with pytest.raises(InputError, match="scales of at least 2 and a rate above 0"):
            HierarchicalOptimiser(**given)
