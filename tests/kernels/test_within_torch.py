"""Kernels beside the rest of torch: second gradients, transforms, compilation, other types."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import attractor.cells.layer.recurrent as layer
from attractor.cells import (
    DNTMCell,
    LSTMCell,
    NTMCell,
    Recurrent,
    compile_steps,
    layer_norm,
    recurrent_dropout,
    weight_drop,
    zoneout,
)
from attractor.cells.gated import PLAIN
from attractor.cells.kernels import STATUS, memory
from attractor.cells.kernels.fused import fused
from contracts.cells import perturb, seeded

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a kernel was used, of each pass over a sequence."""
    found: list[bool] = []

    def watched(*args: Any) -> Any:
        made = fused(*args)
        found.append(made is not None)
        return made

    monkeypatch.setattr(layer, "fused", watched)
    return found


def make(name: str = "lstm", dtype: torch.dtype = torch.float64, **options: Any) -> Recurrent:
    return perturb(Recurrent(name, 3, 5, dtype=dtype, generator=seeded(), **options), seeded(1))


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=seeded(2), dtype=torch.float64).to(dtype)


def test_an_option_that_a_kernel_does_not_know_takes_the_loop(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {NTMCell: memory.OTHERS[NTMCell] | {"read_heads": 1}}
    monkeypatch.setattr(memory, "OTHERS", memory.OTHERS | more)
    for heads in (1, 2):  # the default goes on as it was
        make("ntm", read_heads=heads)(draw(4, 2, 3))
    assert taken == [True, False]


@pytest.mark.parametrize("name", ["lstm", "irc_gru", "nru"])
def test_gradients_and_second_gradients_are_right(name: str, taken: list[bool]) -> None:
    module, x = make(name), draw(3, 2, 3).requires_grad_()
    weight = next(module.parameters())

    def run(x: Tensor, weight: Tensor) -> Tensor:
        named = {next(iter(dict(module.named_parameters()))): weight}
        output: Tensor = functional_call(module, named, (x,))[0]
        return output

    assert torch.autograd.gradcheck(run, (x, weight), atol=1e-6)
    assert torch.autograd.gradgradcheck(run, (x, weight), atol=1e-6)
    assert all(taken)


NOISY: dict[str, Any] = {
    "zoneout": zoneout("lstm", 0.5, 0.3),
    "dropout": recurrent_dropout("lstm", 0.4),
    "both": zoneout(recurrent_dropout(layer_norm("lstm"), 0.4), 0.5, 0.3),
    "tardis": "tardis",
    "dntm": partial(DNTMCell, discrete=True, cells=6),
}


@pytest.mark.parametrize("name", NOISY)
def test_second_gradients_have_the_noise_of_the_first(name: str) -> None:
    module = Recurrent(NOISY[name], 3, 5, dtype=torch.float64, generator=seeded())
    x = draw(6, 4, 3).requires_grad_()
    torch.manual_seed(0)
    loss = module(x)[0].square().sum()
    (plain,) = torch.autograd.grad(loss, x, retain_graph=True)
    (again,) = torch.autograd.grad(loss, x, create_graph=True)
    torch.testing.assert_close(plain, again)


def test_a_graph_that_is_kept_gives_the_same_gradients_again() -> None:
    module, x = make(), draw(4, 2, 3).requires_grad_()
    loss = module(x)[0].square().sum()
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, second)


def test_only_what_asks_for_gradients_gets_them(taken: list[bool]) -> None:
    module, x = make(), draw(4, 2, 3)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name.endswith("weight_hh"))
    module(x)[0].sum().backward()
    assert taken == [True]
    got = {name for name, p in module.named_parameters() if p.grad is not None}
    assert got == {"cells.0.weight_hh"}


def test_weights_changed_before_the_way_back_are_an_error() -> None:
    module, x = make(), draw(4, 2, 3)
    loss = module(x)[0].sum()
    with torch.no_grad():
        module.get_parameter("cells.0.weight_hh").add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_dropped_weights_are_what_the_kernel_reads(taken: list[bool]) -> None:
    dropped = weight_drop(make(), 0.5)
    x = draw(4, 2, 3)
    torch.manual_seed(0)
    with_drop = dropped(x)[0]
    assert taken == [True]
    assert not torch.allclose(with_drop, dropped.layer(x)[0])
    torch.manual_seed(0)
    weights = dropped.drop()
    expected = functional_call(dropped.layer, weights, (x,))[0]
    assert torch.equal(with_drop, expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # torch's own, on its first jvp
def test_transforms_take_the_loop(taken: list[bool]) -> None:
    module, x = make(), draw(3, 4, 2, 3)
    expected = torch.stack([module(one)[0] for one in x])
    taken.clear()
    torch.testing.assert_close(torch.func.vmap(lambda one: module(one)[0])(x), expected)
    made = torch.func.jvp(lambda one: module(one)[0], (x[0],), (x[1],))
    torch.testing.assert_close(made[0], expected[0])
    assert not any(taken)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_other_types_take_the_loop(dtype: torch.dtype, taken: list[bool]) -> None:
    output, _ = make(dtype=dtype)(draw(4, 2, 3, dtype=dtype))
    assert output.dtype == dtype
    assert taken == [False]


@pytest.mark.parametrize(
    ("cell", "dtype"),
    [
        (recurrent_dropout("tardis", 0.3), torch.float64),
        (recurrent_dropout(NOISY["dntm"], 0.3), torch.float64),
        ("tardis", torch.bfloat16),
        (zoneout("tardis", 0.5, 0.3), torch.bfloat16),
    ],
)
def test_a_kernel_that_is_not_taken_draws_nothing(
    cell: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Recurrent(cell, 3, 5, dtype=dtype, generator=seeded())
    torch.manual_seed(0)
    found, _ = module(draw(4, 2, 3, dtype=dtype))
    monkeypatch.setattr(layer, "fused", lambda *_: None)
    torch.manual_seed(0)
    assert torch.equal(found, module(draw(4, 2, 3, dtype=dtype))[0])


def test_autocast_takes_the_loop(taken: list[bool]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        make(dtype=torch.float32)(draw(4, 2, 3, dtype=torch.float32))
    assert taken == [False]


def test_a_cell_of_somebody_elses_takes_the_loop(taken: list[bool]) -> None:
    class Halved(LSTMCell):
        def step(self, prepared: Any, state: Any, tap: Any = PLAIN) -> Any:
            output, state = super().step(prepared, state, tap)
            return output / 2, state

    module = Recurrent(Halved, 3, 5)
    module(torch.zeros(4, 2, 3))
    patched = make()
    cell: Any = patched.cells[0]
    cell.step = cell.step  # as somebody who watches each step would
    patched(draw(4, 2, 3))
    assert taken == [False, False]


def test_compile_steps_is_heeded(taken: list[bool]) -> None:
    module = compile_steps(make())
    module.eval()
    module(draw(4, 2, 3))
    assert taken == [False]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "irc_gru", "nru"])
def test_compiled_whole_with_gradients(name: str) -> None:
    module, x = make(name), draw(4, 2, 3).requires_grad_()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    results = []
    for run in (module, compiled):
        output, _ = run(x)
        grads = torch.autograd.grad(output.square().sum(), [x, *module.parameters()])
        results.append([output, *grads])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
