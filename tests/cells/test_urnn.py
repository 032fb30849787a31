"""The unitary networks against their references, and what makes them unitary."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import FullURNNCell, UnitaryState, URNNCell, unroll
from attractor.cells.unitary import _inverse, cayley, skew
from cells.against import agree, array, normal, random_cell
from reference import full_urnn, urnn
from reference.result import Array


def complex_of(W: Tensor) -> Array:
    n = len(W) // 2
    return array(W[:n, :n]) + 1j * array(W[n:, :n])


def inputs_of(cell: Any) -> dict[str, Array]:
    re, im = cell.weight_ih.chunk(2)
    return {"V": array(re) + 1j * array(im), "b": array(cell.bias)}


def urnn_weights(cell: URNNCell) -> dict[str, Array]:
    v = array(cell.reflections)
    named = {f"w_{k + 1}": array(cell.phases[k]) for k in range(3)}
    named |= {"v_1": v[0] + 1j * v[1], "v_2": v[2] + 1j * v[3]}
    return named | inputs_of(cell) | {"permutation": array(cell.permutation)}


def compare(cell: Any, run: Any, weights: dict[str, Array]) -> None:
    x = normal(9, 2, 3)
    h = UnitaryState(normal(2, cell.hidden_size), 2 * normal(2, cell.hidden_size))
    for start in (cell.initial_state(2), h):
        output, last, _ = unroll(cell, cell.prepare(x), start)
        for row in range(2):
            begin = {"h": array(start.re[row]) + 1j * array(start.im[row])}
            expected = run(weights, array(x[:, row]), state=begin)
            agree(output[:, row], expected.outputs.real)
            agree(last.re[row], expected.state["h"].real)
            agree(last.im[row], expected.state["h"].imag)


@pytest.mark.parametrize("size", [1, 5, 8])
def test_urnn_equals_the_reference(size: int) -> None:
    cell = random_cell(URNNCell, 3, size)
    compare(cell, urnn.run, urnn_weights(cell))
    agree(torch.as_tensor(complex_of(cell.matrix())), urnn.matrix(urnn_weights(cell)))


@pytest.mark.parametrize("size", [1, 5, 8])
def test_full_urnn_equals_the_reference(size: int) -> None:
    cell = random_cell(FullURNNCell, 3, size)
    compare(cell, full_urnn.run, inputs_of(cell) | {"W": complex_of(cell.matrix())})


@pytest.mark.parametrize("make", [URNNCell, FullURNNCell])
def test_the_matrix_is_unitary_whatever_the_weights(make: Any) -> None:
    cell = random_cell(make, 3, 12)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(20)
    W = cell.matrix()
    torch.testing.assert_close(W @ W.mT, torch.eye(24, dtype=torch.float64))
    torch.testing.assert_close(W[:12, :12], W[12:, 12:])
    torch.testing.assert_close(W[:12, 12:], -W[12:, :12])


@pytest.mark.parametrize("make", [URNNCell, FullURNNCell])
def test_the_norm_is_kept_for_a_thousand_steps(make: Any) -> None:
    cell = make(1, 16, dtype=torch.float64)
    start = UnitaryState(normal(3, 16), 2 * normal(3, 16))
    silence = torch.zeros(1000, 3, 1, dtype=torch.float64)
    _, last, _ = unroll(cell, cell.prepare(silence), start)
    before, after = (torch.cat(state, -1).norm(dim=-1) for state in (start, last))
    torch.testing.assert_close(after, before, rtol=1e-11, atol=0)


def test_a_step_and_rebase_are_the_update_of_the_paper() -> None:
    """Twice, with a loss that reads all of W, real and imaginary part."""
    cell = FullURNNCell(1, 4, dtype=torch.float64)
    target, rate, n = normal(8, 8), 0.05, 4
    W = complex_of(cell.matrix())
    for _ in range(2):
        loss = (cell.matrix() * target).sum() + (cell.matrix()[:, :3] ** 3).sum()
        (grad,) = torch.autograd.grad(loss, cell.weight_hh)
        whole = torch.as_tensor(W)
        re, im = whole.real.clone().requires_grad_(), whole.imag.clone().requires_grad_()
        again = torch.cat((torch.cat((re, -im), 1), torch.cat((im, re), 1)))
        same = (again * target).sum() + (again[:, :3] ** 3).sum()
        by_re, by_im = torch.autograd.grad(same, (re, im))
        W = full_urnn.update(W, array(by_re) + 1j * array(by_im), rate)
        with torch.no_grad():
            cell.weight_hh.sub_(rate * grad)
        agree(torch.as_tensor(complex_of(cell.matrix())), W)
        before = cell.matrix()
        cell.rebase()
        assert not cell.weight_hh.any()
        torch.testing.assert_close(cell.matrix(), before)
    assert n * n == sum(p.numel() for name, p in cell.named_parameters() if name == "weight_hh")


def test_any_unitary_matrix_can_be_reached() -> None:
    """A generator by hand that turns the first of two units by i, and leaves the other."""
    cell = FullURNNCell(1, 2, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()[0, 0] = -2 / math.sqrt(2)  # (1 + i) / (1 - i) = i
        cell.base.copy_(torch.stack((torch.eye(2), torch.zeros(2, 2))))
    expected = torch.tensor([[1j, 0], [0, 1]], dtype=torch.complex128)
    agree(torch.as_tensor(complex_of(cell.matrix())), expected.numpy())


def test_the_inverse_by_products_is_the_solver_s() -> None:
    for scale in (0.1, 1.0, 30.0):
        A = scale * skew(normal(9, 9)) / 2
        B = torch.eye(9, dtype=torch.float64) + A
        torch.testing.assert_close(_inverse(B) @ B, torch.eye(9, dtype=torch.float64))
    assert cayley(torch.zeros(2, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_starts_as_the_papers_say() -> None:
    cell = URNNCell(10, 200)
    assert 3.1 < cell.phases.abs().max() <= math.pi
    assert 0.99 < cell.reflections.abs().max() <= 1
    bound = math.sqrt(6 / 410)
    assert 0.99 * bound < cell.weight_ih.abs().max() <= bound
    assert cell.bias is not None
    assert not cell.bias.any()
    assert sorted(cell.permutation.tolist()) == list(range(200))
    assert cell.permutation.tolist() != list(range(200))
    full = FullURNNCell(10, 200)
    assert not full.weight_hh.any()
    assert 0.99 * bound < full.weight_ih.abs().max() <= bound
