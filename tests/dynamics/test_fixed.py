"""Fixed points of systems whose answers are known."""

import math
import time
from collections.abc import Callable
from inspect import signature

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attractor
from attractor.cells import CELLS, GRUCell
from attractor.dynamics import fixed_points, henon, system
from attractor.dynamics.solving import solve
from attractor.errors import InputError


def test_henon() -> None:
    a, b = 1.4, 0.3
    found = fixed_points(henon(a, b), 200, size=2, spread=2.0)
    root = math.sqrt((1 - b) ** 2 + 4 * a)
    expected = sorted((b - 1 + sign * root) / (2 * a) for sign in (-1, 1))
    assert sorted(found.points[:, 0].tolist()) == pytest.approx(expected, abs=1e-8)
    assert found.stability == ["saddle", "saddle"]
    for x, values in zip(found.points[:, 0].tolist(), found.eigenvalues, strict=True):
        exact = np.linalg.eigvals(np.array([[-2 * a * x, 1], [b, 0]]))
        exact = exact[np.argsort(-np.abs(exact))]
        np.testing.assert_allclose(values.numpy(), exact, atol=1e-7)


def test_a_cycle_of_two_of_henon_excludes_the_fixed_points() -> None:
    a, b = 1.4, 0.3
    found = fixed_points(henon(a, b), 300, size=2, period=2)
    # the x of the cycle solve a²x² - a(1 - b)x + (1 - b)² - a = 0
    exact = np.sort(np.roots([a**2, -a * (1 - b), (1 - b) ** 2 - a]))
    np.testing.assert_allclose(np.sort(found.points[:, 0].numpy()), exact, atol=1e-7)
    assert found.period == 2
    J = np.eye(2)
    for x in exact:
        J = np.array([[-2 * a * x, 1], [b, 0]]) @ J
    np.testing.assert_allclose(
        np.sort(found.eigenvalues[0].abs().numpy()),
        np.sort(np.abs(np.linalg.eigvals(J))),
        atol=1e-6,
    )


def pitchfork(state: Tensor) -> Tensor:
    """A pitchfork in x, a contraction in y: (0, 0) is a saddle, (±1/2, 0) are stable."""
    x, y = state.unbind(-1)
    return torch.stack([x + 0.4 * (0.25 * x - x**3), 0.5 * y], -1)


def test_the_normal_form_of_a_pitchfork() -> None:
    found = fixed_points(pitchfork, 100, size=2)
    by_x = dict(
        zip((round(x, 6) + 0 for x in found.points[:, 0].tolist()), found.stability, strict=True)
    )
    assert by_x == {-0.5: "stable", 0.0: "saddle", 0.5: "stable"}
    assert int(found.reached.sum()) == 100


def test_just_past_a_saddle_node_there_is_a_slow_point_and_no_fixed_point() -> None:
    ghost = 0.01
    found = fixed_points(lambda x: x + ghost + x**2, 50, size=1)
    assert len(found) == 0
    assert str(found) == "fixed points: none found from 50 starts; 1 slow point"
    assert float(found.slow) == pytest.approx(0.0, abs=1e-4)
    assert float(found.slow_speed) == pytest.approx(ghost**2 / 2, rel=1e-4)


def test_a_system_without_any() -> None:
    found = fixed_points(lambda x: x + 1, 20, size=3)
    assert len(found) == 0
    assert "none found from 20 starts" in str(found)


def test_hopfield_patterns_are_stable_points() -> None:
    """Orthogonal patterns of h <- tanh(beta W h): each is kept at ±m times it, m = tanh(beta m)."""
    size, beta = 16, 2.0
    rows = torch.tensor([[(-1) ** bin(i & j).count("1") for j in range(size)] for i in (1, 2, 4)])
    patterns = rows.double()
    W = patterns.T @ patterns / size
    starts = torch.cat([patterns, -patterns]) * 0.7
    starts += 0.05 * torch.randn(starts.shape, generator=torch.Generator().manual_seed(3)).double()
    found = fixed_points(lambda h: torch.tanh(beta * W @ h), starts)
    m = 1.0
    for _ in range(200):
        m = math.tanh(beta * m)
    assert len(found) == 6
    assert found.stability == ["stable"] * 6
    overlap = (found.points @ patterns.T / size).abs().max(-1).values
    assert overlap.tolist() == pytest.approx([m] * 6, abs=1e-9)


def test_a_flip_flop_of_three_bits_has_eight_memories_and_a_saddle_between_each_pair() -> None:
    """Three units that each hold a bit: 27 fixed points, 8 stable, the origin unstable."""
    found = fixed_points(lambda h: torch.tanh(2 * h), 3000, size=3)
    assert len(found) == 27
    kinds = found.stability
    assert (kinds.count("stable"), kinds.count("unstable"), kinds.count("saddle")) == (8, 1, 18)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_torchs_layers_have_the_points_of_their_own_iteration(
    kind: Callable[..., nn.RNNBase],
) -> None:
    torch.manual_seed(0)
    model = kind(2, 6, num_layers=2)
    x = torch.tensor([0.3, -0.8])
    before = {name: p.clone() for name, p in model.named_parameters()}
    found = fixed_points(model, 30, input=x)
    with torch.no_grad():
        _, state = model(x.expand(3000, 2))
    flat = torch.cat([part.reshape(2, -1) for part in (state if kind is nn.LSTM else (state,))], -1)
    assert len(found) == 1
    torch.testing.assert_close(found.points[0].float(), flat.reshape(-1), atol=1e-5, rtol=1e-4)
    assert all(torch.equal(p, before[n]) and p.requires_grad for n, p in model.named_parameters())


def test_torchs_cells_step_as_they_do() -> None:
    torch.manual_seed(1)
    h, c, x = torch.rand(4), torch.rand(4), torch.rand(3)
    lstm = nn.LSTMCell(3, 4)
    stepped = system(lstm, input=x).step(torch.cat([h, c]).double())
    torch.testing.assert_close(stepped.float(), torch.cat(lstm(x, (h, c))), atol=1e-6, rtol=1e-5)
    for cell in (nn.GRUCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu")):
        torch.testing.assert_close(
            system(cell, input=x).step(h.double()).float(), cell(x, h), atol=1e-6, rtol=1e-5
        )


@pytest.mark.parametrize("name", sorted(CELLS))
def test_every_cell_is_a_system(name: str) -> None:
    make: Callable[..., nn.Module] = CELLS[name]
    options = {"length": 9} if "length" in signature(make).parameters else {}
    cell = make(3, 4, generator=torch.Generator().manual_seed(0), **options).eval()
    made = system(cell, input=torch.tensor([0.5, -1.0, 2.0]))
    assert made.size == sum(size for _, size in made.parts)
    after = made.many(made.start.expand(3, -1))
    assert after.shape == (3, made.size)
    torch.testing.assert_close(after[0], after[2], atol=1e-6, rtol=1e-6)  # rows of a product


def test_any_module_that_maps_a_state() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(3, 3)
    with torch.no_grad():
        linear.weight.mul_(0.5)
    found = fixed_points(linear, 10, size=3)
    exact = torch.linalg.solve(torch.eye(3) - linear.weight, linear.bias)
    torch.testing.assert_close(found.points[0].float(), exact.detach())


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(
        InputError, match=r"keeps the shapes of its state, \[\(2,\)\], but .*\[\(1,\)\]"
    ):
        fixed_points(lambda x: x[:1], 3, size=2)
    with pytest.raises(InputError, match="model.eval"):
        fixed_points(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), 3, size=4)
    with pytest.raises(InputError, match="keeps states finite"):
        fixed_points(lambda x: x / 0, 3, size=2)
    with pytest.raises(InputError, match="expected x0 or size"):
        fixed_points(lambda x: x / 2, 3)
    with pytest.raises(InputError, match="reads forwards"):
        fixed_points(nn.GRU(1, 2, bidirectional=True), 3)
    with pytest.raises(InputError, match=r"starts of shape \(n, 2\)"):
        fixed_points(nn.GRU(1, 2), torch.zeros(4, 3))


def test_a_layer_with_dropout_between_is_not_deterministic() -> None:
    layer = attractor.GRU(2, 3, num_layers=2, dropout=0.5)
    torch.nn.init.normal_(layer.cells[0].bias)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the same state each time"):
        fixed_points(layer, 3)
    assert fixed_points(layer.eval(), 3).starts == 3


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = GRUCell(1, 5, generator=torch.Generator().manual_seed(0))
    made = system(cell)
    starts = torch.rand(40, 5, dtype=torch.float64)
    whole = solve(made.step, starts, tolerance=1e-18, iterations=50)
    monkeypatch.setattr("attractor.dynamics.solving.BYTES", 7 * 8 * 25)
    parts = solve(made.step, starts, tolerance=1e-18, iterations=50)
    torch.testing.assert_close(whole.points, parts.points, atol=1e-8, rtol=0)


@pytest.mark.slow
def test_a_thousand_starts_of_a_large_gru_are_found_together_faster_than_one_by_one() -> None:
    torch.manual_seed(0)
    model = nn.GRU(1, 128)
    began = time.process_time()
    found = fixed_points(model, starts=1000, input=torch.zeros(1))
    together = (time.process_time() - began) / 1000
    assert int(found.reached.sum()) == 1000
    made = system(model, input=torch.zeros(1))
    alone = _one_by_one(made.step, torch.rand(8, 128, dtype=torch.float64) * 2 - 1) / 8
    assert alone > 5 * together


def _one_by_one(step: Callable[[Tensor], Tensor], starts: Tensor) -> float:
    """Seconds of Newton's method, one start and one row of the Jacobian at a time."""
    began = time.process_time()
    for h in starts:
        for _ in range(50):
            J = torch.autograd.functional.jacobian(step, h)  # type: ignore[no-untyped-call]
            r = step(h) - h
            if 0.5 * float(r @ r) <= 1e-18:
                break
            h = h - torch.linalg.solve(J - torch.eye(len(h), dtype=h.dtype), r)
    return time.process_time() - began


def test_starts_are_spread_as_asked() -> None:
    found = fixed_points(lambda h: h.clone(), 40, size=2, spread=3.0)  # each start is one
    assert 2 < float(found.points.abs().max()) <= 3
