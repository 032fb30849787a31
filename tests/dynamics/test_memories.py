"""Memories: Jacobians through reads, graphs, Hopfield networks, the ladder, highways."""

from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import GRUCell, IRCGRUCell, LSTMCell, Recurrent, TARDISCell
from attractor.cells.base import map_steps
from attractor.dynamics import (
    LADDER,
    gates,
    highway_attractors,
    highway_map,
    hopfield_step,
    memory_jacobian,
    read_graph,
    recall,
)
from attractor.errors import InputError
from attractor.models import HCN


def tardis() -> TARDISCell:
    return TARDISCell(2, 5, cells=3, generator=torch.Generator().manual_seed(0))


def test_q_and_r_of_a_real_tardis_add_up() -> None:
    """By differences: move h after t0, and what it wrote, and run on."""
    cell, x = tardis(), torch.randn(9, 2, generator=torch.Generator().manual_seed(1)).double()
    found = memory_jacobian(cell, x, 4, 7)
    exact = cell.double().eval()
    states = []
    prepared = exact.prepare(x[:, None])

    def cut(time: int) -> Any:
        return map_steps(lambda part: part[time], prepared)

    state = exact.initial_state(1)
    for time in range(9):
        _, state = exact.step(cut(time), state)
        states.append(state)
    place = int(states[4].read[0].argmax())  # the memory of 3 is full
    eps = 1e-6
    with torch.no_grad():
        for unit in range(5):
            ends = []
            for sign in (1, -1):
                delta = torch.zeros(5).double()
                delta[unit] = sign * eps
                content = states[4].content.clone()
                content[0, place] += exact.content_hh @ delta
                now = states[4]._replace(h=states[4].h + delta, content=content)
                for time in range(5, 8):
                    _, now = exact.step(cut(time), now)
                ends.append(now.h[0])
            torch.testing.assert_close(
                found.total[:, unit], (ends[0] - ends[1]) / (2 * eps), atol=1e-8, rtol=1e-5
            )
    q, r, both = found.norms
    assert r > 0
    assert abs(q - r) - 1e-12 <= both <= q + r + 1e-12  # (3.27), (3.31)


def test_without_reads_r_is_zero() -> None:
    cell = tardis()
    with torch.no_grad():
        cell.weight_rh.zero_()
    found = memory_jacobian(cell, torch.randn(8, 2), 1, 6)
    assert float(found.r.abs().max()) == 0
    assert float(found.q.abs().max()) > 0
    with pytest.raises(InputError, match="0 <= t0 < t1 < 8"):
        memory_jacobian(cell, torch.randn(8, 2), 6, 6)


def test_the_equations_of_a_plain_controller_with_and_without_the_factor_of_t1() -> None:
    """(3.22): with the product up to t1 inclusive the sum is the Jacobian; as printed it is not."""
    g = torch.Generator().manual_seed(0)
    n, t1 = 4, 6
    W, V, A = (torch.randn(n, n, generator=g).double() * 0.5 for _ in range(3))
    x = torch.randn(t1 + 1, n, generator=g).double()
    reads = [-1, 0, 0, 1, 2, 0, 3]  # the step whose state is read

    def run(h0: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        states, slopes = [h0], [torch.zeros(n)]
        for time in range(1, t1 + 1):
            z = W @ states[-1] + V @ A @ states[reads[time]] + x[time]
            states.append(torch.tanh(z))
            slopes.append(1 - states[-1] ** 2)
        return states, slopes

    h0 = torch.randn(n, generator=g).double()
    exact = torch.func.jacrev(lambda h: run(h)[0][-1])(h0)
    states, slopes = run(h0)
    J = [torch.diag(s.double()) @ W for s in slopes]
    to = [torch.func.jacrev(lambda h, time=time: run(h)[0][time])(h0) for time in range(t1 + 1)]

    def product(first: int, last: int) -> Tensor:
        P = torch.eye(n).double()
        for time in range(first, last + 1):
            P = J[time] @ P
        return P

    def whole(last: int) -> Tensor:
        total = product(1, t1)
        for k in range(1, t1):
            total = total + product(k + 1, last) @ torch.diag(slopes[k]) @ V @ A @ to[reads[k]]
        last_read: Tensor = torch.diag(slopes[t1]) @ V @ A @ to[reads[t1]]
        return total + last_read

    torch.testing.assert_close(whole(t1), exact)
    assert float((whole(t1 - 1) - exact).abs().max()) > 0.1
    assert len(states) == t1 + 1


def test_theorem_1_a_perfect_read_does_not_shrink_with_the_distance() -> None:
    g = torch.Generator().manual_seed(0)
    W, V, A = (torch.randn(4, 4, generator=g).double() * 0.3 for _ in range(3))
    norms = []
    for far in (5, 40):

        def end(h0: Tensor, far: int = far) -> Tensor:
            h = h0
            for _ in range(far):
                h = torch.tanh(W @ h)
            return torch.tanh(W @ h + V @ A @ h0)

        J = torch.func.jacrev(end)(torch.zeros(4).double())
        norms.append(float(torch.linalg.matrix_norm(J, 2)))
    direct = float(torch.linalg.matrix_norm(V @ A, 2))
    assert norms[1] == pytest.approx(direct, rel=1e-6)


def test_the_graph_of_reads_has_degree_four_at_most() -> None:
    graph = read_graph(tardis(), torch.randn(60, 2, generator=torch.Generator().manual_seed(2)))
    assert int(graph.degrees.max()) <= 4
    assert bool((graph.sources < torch.arange(60)).all())
    assert int(graph.lengths[-1]) < 59
    assert graph.sources[0] == -1


def test_hopfield_recalls_what_it_stored_and_forgets_nothing_at_zeta_zero() -> None:
    g = torch.Generator().manual_seed(0)
    patterns = torch.randn(3, 64, generator=g).sign()
    noisy = patterns * torch.where(torch.rand(3, 64, generator=g) < 0.15, -1.0, 1.0) * 0.5
    found = recall(patterns, noisy)
    assert found.recalled.tolist() == [0, 1, 2]
    assert bool((found.overlaps[-1].diagonal() > 0.95).all())
    assert torch.equal(hopfield_step(patterns, 0.0)(noisy), noisy)


def test_the_gate_of_a_gru_is_the_step_size_of_the_hopfield_update() -> None:
    cell = GRUCell(2, 6, generator=torch.Generator().manual_seed(0))
    found = gates(cell, torch.randn(9, 3, 2))
    h, z, a = found.before["h"], found.gate("z"), found.gate("a")
    torch.testing.assert_close(found.states["h"], h + z * (-h + a))


def test_the_output_gate_of_an_lstm_is_a_reset_gate() -> None:
    """h is o times tanh(c): what the next step reads is reset by the last o (table 3.2)."""
    cell = LSTMCell(2, 4, generator=torch.Generator().manual_seed(0))
    found = gates(cell, torch.randn(9, 3, 2))
    reset = found.gate("o")[:-1] * torch.tanh(found.states["c"][:-1])
    torch.testing.assert_close(found.before["h"][1:], reset)


@pytest.mark.parametrize("rung", sorted(LADDER))
def test_every_rung_of_the_ladder_runs(rung: str) -> None:
    layer = Recurrent(LADDER[rung], 3, 5)
    output, _ = layer(torch.randn(7, 2, 3))
    assert output.shape == (7, 2, 5)


def test_the_rungs_are_what_they_leave_out() -> None:
    g = torch.Generator().manual_seed(0)
    linear = LADDER["linear"](3, 4, generator=g).double()  # type: ignore[call-arg]
    x, h = torch.randn(2, 3).double(), torch.randn(2, 4).double()
    own = {name: value.detach() for name, value in linear.named_parameters()}
    sums = x @ own["weight_ih"].T + own["bias"]
    i, r = torch.sigmoid(sums[:, :8] + h @ own["weight_hh"][:8].T).chunk(2, -1)
    a = sums[:, 8:] + (r * h) @ own["weight_hh"][8:].T
    torch.testing.assert_close(linear(x, h)[0], (1 - i) * h + i * a)
    alone = LADDER["input"](3, 4, generator=g).double()  # type: ignore[call-arg]
    i, r, a = (x @ alone.weight_ih.T).chunk(3, -1)  # type: ignore[operator]
    i, r = i.sigmoid(), r.sigmoid()
    torch.testing.assert_close(alone(x, h)[0], (1 - i) * h + i * r * a)
    assert LADDER["irc"] is IRCGRUCell


def test_highways_have_the_fixed_points_of_the_plain_layer_whatever_the_input() -> None:
    model = HCN([3, 6, 6, 2], generator=torch.Generator().manual_seed(0))
    x = torch.randn(3, 3)
    found = highway_attractors(model, x, starts=40)
    own = dict(model.layers[0].named_parameters())
    W, b = own["weight"].detach().double(), own["bias"].detach().double()
    for points in found:
        for k in points.points:
            torch.testing.assert_close(torch.relu(W @ k + b), k, atol=1e-7, rtol=0)
    assert len({len(points) for points in found}) == 1
    with pytest.raises(InputError, match="from 0 to 0"):
        highway_map(model, x[0], 1)


def test_the_map_is_the_models_own_layer_and_its_gradient_is_scaled_by_the_gate() -> None:
    """k <- (1 - T) k + T ReLU(W k + b), and dk/dW = T dH/dW (000:3533)."""
    model = HCN([3, 4, 4, 2], generator=torch.Generator().manual_seed(0)).double()
    x = torch.randn(1, 3).double()
    k = torch.relu(model.first(x))
    torch.testing.assert_close(model.last(highway_map(model, x[0])(k[0])), model(x)[0])
    T = torch.sigmoid(model.gates[0](x))[0].detach()
    layer = model.layers[0]
    plain = torch.relu(layer(k))[0]
    mixed = (1 - T) * k[0] + T * plain
    for unit in range(4):
        (a,) = torch.autograd.grad(plain[unit], layer.weight, retain_graph=True)  # type: ignore[arg-type]
        (b,) = torch.autograd.grad(mixed[unit], layer.weight, retain_graph=True)  # type: ignore[arg-type]
        torch.testing.assert_close(b, T[unit] * a)
