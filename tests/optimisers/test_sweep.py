"""Rules that go over all parameters in one compiled pass: the numbers of the plain way."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from attractor.cells.kernels import STATUS
from attractor.errors import InputError
from attractor.optimisers import Anytime, MetaSGD, Pacer, learned
from attractor.optimisers import sweep as sweeping
from attractor.optimisers.rule import Rule
from attractor.optimisers.view import count
from contracts.cells import perturb, seeded

needs_kernels = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
SHAPES = ((3, 70), (5,), (), (2, 3, 4, 4), (20, 90), (0, 2), (33,))
"""Of tensors whose sizes are not whole vectors; of the second last there is nothing. The table of
the second group has rows so long that a matrix of its shape would take smaller steps."""
TYPES = ((torch.float32, 1e-5), (torch.float64, 1e-10))


def made(kind: str, dtype: torch.dtype) -> Rule:
    if kind == "anytime":
        return perturb(Anytime(rate=0.02), seeded(3)).to(dtype)
    if kind == "pacer":
        return perturb(Pacer(), seeded(3)).to(dtype)
    total = sum(torch.zeros(s).numel() for s in SHAPES)
    rule = MetaSGD(size=total)
    rule.rates.data = torch.linspace(-0.5, 1, total)
    return rule.to(dtype)


def groups(dtype: torch.dtype) -> list[dict[str, Any]]:
    """Tensors of two groups, with all that a group can say."""
    g = seeded(4)
    own = [nn.Parameter(torch.randn(s, generator=g).to(dtype)) for s in SHAPES]
    return [
        {"params": own[:3]},
        {"params": own[3:], "lr": 0.3, "weight_decay": 0.2, "maximize": True, "tables": [1]},
    ]


def trained(
    rule: Rule, dtype: torch.dtype, steps: int, monkeypatch: Any, *, plain: bool
) -> list[torch.Tensor]:
    said = groups(dtype)
    optimiser = rule(said)
    with monkeypatch.context() as patch:
        if plain:
            patch.setattr(learned, "sweep", lambda _: False)
        for step in range(steps):
            g = seeded(10 + step)
            for group in said:
                for parameter in group["params"]:
                    drawn = 10.0 ** (step - 2) * torch.randn(parameter.shape, generator=g)
                    parameter.grad = drawn.to(dtype)
            said[0]["params"][1].grad = None
            optimiser.step()
    own = [p for group in said for p in group["params"]]
    kept = [leaf for p in own if p.numel() for leaf in optimiser.state[p].values()]
    return [p.detach() for p in own] + kept


@pytest.mark.parametrize("kind", [Anytime, Pacer])
def test_a_parameter_that_has_grown_is_refused(kind: type[Rule]) -> None:
    """A kernel would read beyond what was kept of it."""
    parameter = nn.Parameter(torch.ones(3))
    optimiser = kind()([parameter])
    parameter.grad = torch.ones(3)
    optimiser.step()
    parameter.grad, parameter.data = None, torch.ones(70, 90)
    parameter.grad = torch.ones(70, 90)
    with pytest.raises(InputError, match=r"expected a state of shapes .*\(70, 90\), but got"):
        optimiser.step()
    assert torch.equal(parameter.detach(), torch.ones(70, 90))


@needs_kernels
@pytest.mark.parametrize("kind", ["anytime", "meta_sgd", "pacer"])
@pytest.mark.parametrize(("dtype", "within"), TYPES, ids=["float", "double"])
def test_one_pass_gives_the_numbers_of_the_plain_way(
    kind: str, dtype: torch.dtype, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = made(kind, dtype)
    found = trained(rule, dtype, 5, monkeypatch, plain=False)
    wanted = trained(rule, dtype, 5, monkeypatch, plain=True)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=within, atol=within)


@needs_kernels
@pytest.mark.parametrize("kind", ["anytime", "meta_sgd", "pacer"])
def test_the_pass_is_in_use(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "advance", lambda *_: pytest.fail("the plain way is in use"))
    trained(made(kind, torch.float32), torch.float32, 1, monkeypatch, plain=False)


@needs_kernels
@pytest.mark.parametrize(("kind", "within"), [("anytime", 1e-6), ("pacer", 1e-5)])
@pytest.mark.parametrize("size", [1e18, 1e20, 1e37])
def test_a_gradient_whose_square_overflows_stops_its_coordinate_alone(
    kind: str, within: float, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(plain: bool) -> torch.Tensor:
        with monkeypatch.context() as patch:
            if plain:
                patch.setattr(learned, "sweep", lambda _: False)
            theta = nn.Parameter(torch.linspace(-1, 1, 11))
            optimiser = made(kind, torch.float32)([theta])
            for factor in (size, 1e-3, -1e-3):
                theta.grad = torch.where(torch.arange(11) == 3, factor, 1e-3)
                optimiser.step()
        return theta.detach()

    found = moved(plain=False)
    assert found.isfinite().all()
    torch.testing.assert_close(found, moved(plain=True), rtol=within, atol=within / 10)


@needs_kernels
@pytest.mark.parametrize(("dtype", "within"), TYPES, ids=["float", "double"])
def test_a_power_that_is_nearly_nothing_stays_so(
    dtype: torch.dtype, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients have ended, and what is left of n is large beside them: 2^-226 of it is taken."""

    def moved(plain: bool) -> torch.Tensor:
        rule = made("anytime", dtype)
        rule.get_parameter("strength").data.fill_(-4.0)
        theta = nn.Parameter(torch.linspace(-1, 1, 11, dtype=dtype))
        with monkeypatch.context() as patch:
            if plain:
                patch.setattr(learned, "sweep", lambda _: False)
            optimiser = rule([theta])
            optimiser.started(theta)["n"].fill_(1e10)
            theta.grad = torch.zeros_like(theta)
            optimiser.step()
        return theta.detach()

    torch.testing.assert_close(moved(False), moved(True), rtol=within, atol=within)


@needs_kernels
@pytest.mark.parametrize("kind", ["anytime", "pacer"])
def test_weights_that_change_are_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind autograd's back, too."""

    def moved(plain: bool) -> list[torch.Tensor]:
        rule = made(kind, torch.float32)
        theta = nn.Parameter(torch.linspace(-1, 1, 11))
        found = []
        with monkeypatch.context() as patch:
            if plain:
                patch.setattr(learned, "sweep", lambda _: False)
            optimiser = rule([theta])
            for name, change in (("strength", 1.0), ("logit_memory", -1.0), ("log_tau", -3.0)):
                theta.grad = theta.detach().sin()
                optimiser.step()
                rule.get_parameter(name).data.add_(change)
                found.append(theta.detach().clone())
        return found

    for one, other in zip(moved(False), moved(True), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize("kind", ["anytime", "pacer"])
def test_numbers_do_not_depend_on_the_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tensor in many pieces, the last of which is no whole one."""

    def moved(threads: int) -> torch.Tensor:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            theta = nn.Parameter(torch.linspace(-1, 1, 200_001))
            optimiser = made(kind, torch.float32)([theta])
            for _ in range(6):
                theta.grad = theta.detach().sin()
                optimiser.step()
        finally:
            torch.set_num_threads(before)
        return theta.detach()

    found = moved(1)
    assert torch.equal(found, moved(3))
    monkeypatch.setattr(learned, "sweep", lambda _: False)
    torch.testing.assert_close(found, moved(1), rtol=1e-5, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("at", [0, 7, 8, 20])
def test_a_gradient_that_is_not_finite_changes_nothing(bad: float, at: int) -> None:
    theta = nn.Parameter(torch.ones(21))
    theta.grad = torch.zeros(21)
    theta.grad[at] = bad
    with pytest.raises(ValueError, match="expected finite gradients"):
        Anytime()([theta]).step()
    assert theta.eq(1).all()


def test_large_finite_gradients_are_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose squares are not."""
    theta = nn.Parameter(torch.ones(9))
    theta.grad = torch.full((9,), 1e30)
    Anytime()([theta]).step()
    assert theta.isfinite().all()


@needs_kernels
@pytest.mark.parametrize(
    "change",
    [
        lambda p: setattr(p, "data", p.data.double()),
        lambda p: setattr(p, "data", torch.zeros(4, 6).T),
        lambda p: setattr(p, "data", p.data.bfloat16()),
    ],
)
def test_other_types_and_layouts_go_the_plain_way(
    change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_run", lambda: pytest.fail("the kernel is in use"))
    theta = nn.Parameter(torch.zeros(6, 4))
    change(theta)
    theta.grad = torch.ones_like(theta)
    Anytime()([theta]).step()
    assert theta.ne(0).all()


def test_a_copy_goes_on_bit_for_bit() -> None:
    model = nn.Linear(40, 3)
    optimiser = Anytime.pretrained()(model.parameters())
    for step in range(3):
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=seeded(step))
        optimiser.step()
    other, copied = copy.deepcopy((model, optimiser))
    for net, one in ((model, optimiser), (other, copied)):
        for p in net.parameters():
            p.grad = torch.randn(p.shape, generator=seeded(9))
        one.step()
    assert count(model.parameters()) == 123
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)
