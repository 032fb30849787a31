"""Gradients by step and by depth, against autograd asked one at a time."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

import attractor
from attractor.dynamics import gradient_by_depth, gradient_norms, layer_jacobians
from attractor.errors import InputError


def test_norms_of_every_step_of_torchs_lstm() -> None:
    """By hand: keep every (h, c) of torch's own cell, and ask autograd for all of them."""
    torch.manual_seed(0)
    cell, x = nn.LSTMCell(2, 3), torch.randn(4, 2, 2)

    def loss(y: Sequence[Tensor] | Tensor) -> Tensor:
        return (y[-1] ** 2).sum() + 3 * y[1].sum()

    found = gradient_norms(cell, x, loss)
    state = (torch.zeros(2, 3), torch.zeros(2, 3))
    kept = []
    for now in x:
        state = cell(now, state)
        kept.append(state)
    flat = [part for pair in kept for part in pair]
    grads = torch.autograd.grad(loss([h for h, _ in kept]), flat)
    for place, name in enumerate("hc"):
        expected = torch.stack([grad.norm(dim=-1) for grad in grads[place::2]])
        torch.testing.assert_close(found.norms[name].float(), expected, atol=1e-5, rtol=1e-4)


def stepper(cell: nn.Module, now: Tensor) -> Callable[[Tensor], Tensor]:
    def step(state: Tensor) -> Tensor:
        after: Tensor = cell(now, state[None])[1][0]
        return after

    return step


def test_a_gru_has_the_gradient_of_a_chain() -> None:
    """h has one path: dL/dh_t is the product of the Jacobians after t."""
    torch.manual_seed(0)
    cell = attractor.cells.GRUCell(1, 3, dtype=torch.float64)
    x = torch.randn(5, 1, 1, dtype=torch.float64)
    found = gradient_norms(cell, x, lambda y: y[-1].sum()).norms["h"]
    h, jacobians = torch.zeros(3, dtype=torch.float64), []
    for now in x:
        step = stepper(cell, now)
        jacobians.append(torch.autograd.functional.jacobian(step, h))  # type: ignore[no-untyped-call]
        h = step(h).detach()
    v = torch.ones(3, dtype=torch.float64)
    for time in reversed(range(5)):
        assert found[time, 0].item() == pytest.approx(v.norm().item())
        v = jacobians[time].T @ v


def test_by_depth() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Linear(2, 1))
    x = torch.randn(6, 3)
    found = gradient_by_depth(model, x, lambda y: (y**2).sum())
    assert found.names == ("0", "2", "3")
    (model(x) ** 2).sum().backward()
    norms = [
        torch.cat([p.grad.reshape(-1) for p in model[i].parameters() if p.grad is not None]).norm()
        for i in (0, 2, 3)
    ]
    torch.testing.assert_close(found.parameters, torch.stack(norms))
    y = model(x).detach()
    torch.testing.assert_close(found.outputs[2], (2 * y).abs().mean())
    assert not any(m._forward_hooks for m in model.modules())


def test_a_name_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match="there is no 'body'"):
        gradient_by_depth(nn.Linear(1, 1), torch.ones(1, 1), lambda y: y.sum(), ["body"])


def test_the_jacobians_of_table_2_1() -> None:
    g = torch.Generator().manual_seed(0)
    W = torch.randn(4, 4, generator=g, dtype=torch.float64)
    x = torch.randn(3, 4, generator=g, dtype=torch.float64)

    def H(n: Tensor) -> Tensor:  # noqa: N802
        return torch.tanh(n @ W.T)

    def highway(gate: float) -> Callable[[Tensor], Tensor]:
        return lambda k: (1 - gate) * k + gate * H(k)

    D, eye = torch.diag_embed(1 - H(x) ** 2), torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(layer_jacobians([lambda n: n + H(n)], x)[0], eye + D @ W)
    torch.testing.assert_close(layer_jacobians([highway(0.0)], x)[0], eye.expand(3, 4, 4))
    torch.testing.assert_close(layer_jacobians([highway(1.0)], x)[0], D @ W)
    second = layer_jacobians([lambda n: n + H(n), lambda n: 2 * H(n)], x)[1]
    at = x + H(x)
    torch.testing.assert_close(second, 2 * torch.diag_embed(1 - H(at) ** 2) @ W)
