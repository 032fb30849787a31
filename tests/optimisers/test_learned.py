"""A learned rule in the place of torch.optim: what it does with bad input, and MTL2L's context."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import (
    DMSGD,
    M2SGD,
    MTL2L,
    DecayNetOptimiser,
    GlobalM2SGD,
    GlobalOptimiser,
    LSTMOptimiser,
    MetaSGD,
    preprocess,
)
from contracts.cells import seeded
from contracts.optimisers import exact, make_rule, values


def with_gradients(*shapes: Any, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    params = [nn.Parameter(torch.ones(shape, dtype=dtype)) for shape in shapes]
    for parameter in params:
        parameter.grad = torch.randn(parameter.shape, generator=seeded(1)).to(dtype)
    return params


@pytest.mark.parametrize("lr", [-1.0, float("nan"), float("inf")])
def test_learning_rates_are_checked(lr: float) -> None:
    match = "lr to be at least 0, but got .* try lr=1"
    with pytest.raises(InputError, match=match):
        LSTMOptimiser()([nn.Parameter(torch.ones(1))], lr=lr)
    params = with_gradients(3)
    optimiser = MetaSGD(size=3)(params)
    with pytest.raises(InputError, match=match):
        optimiser.add_param_group({"params": [nn.Parameter(torch.ones(0))], "lr": lr})
    assert len(optimiser.param_groups) == 1
    optimiser.param_groups[0]["lr"] = lr  # as a scheduler may
    with pytest.raises(InputError, match=match):
        optimiser.step()
    assert torch.equal(params[0], torch.ones(3))


def test_gradients_that_the_type_of_the_rule_cannot_hold() -> None:
    params = with_gradients(3, 2, dtype=torch.float64)
    optimiser = DMSGD()(params)
    assert params[1].grad is not None
    params[1].grad[0] = 1e39
    match = r"fit the rule's type, torch.float32, .* is up to 1e\+39; nothing was changed. Skip"
    with pytest.raises(InputError, match=match):
        optimiser.step()
    assert all(torch.equal(p, torch.ones_like(p)) for p in params)
    DMSGD().double()(params).step()
    assert all(p.isfinite().all() for p in params)


def test_sparse_gradients() -> None:
    (parameter,) = with_gradients((3, 2))
    assert parameter.grad is not None
    parameter.grad = parameter.grad.to_sparse()
    with pytest.raises(InputError, match="dense gradients, but got a sparse one. Try nn.Embedding"):
        LSTMOptimiser()([parameter]).step()


def test_devices() -> None:
    optimiser = LSTMOptimiser()(with_gradients(3))
    elsewhere = nn.Parameter(torch.ones(2, device="meta"))
    match = r"on cpu, where the rule's weights are, but got one on meta. Try rule.to\('meta'\)"
    with pytest.raises(InputError, match=match):
        optimiser.add_param_group({"params": [elsewhere]})
    assert len(optimiser.param_groups) == 1
    with pytest.raises(InputError, match=match):
        LSTMOptimiser()([elsewhere])
    optimiser.step()


def test_numbers_that_are_not_real() -> None:
    with pytest.raises(InputError, match="of real numbers, but got torch.complex64"):
        LSTMOptimiser()([nn.Parameter(torch.ones(2, dtype=torch.complex64))])


def test_state_of_another_rule() -> None:
    params = with_gradients(3, (2, 2))
    optimiser = LSTMOptimiser(hidden_size=4)(params)
    optimiser.step()
    saved = optimiser.state_dict()
    with pytest.raises(InputError, match="with the rule 'dmsgd', but got one of 'lstm'. Load it"):
        DMSGD()(params).load_state_dict(saved)
    adam = torch.optim.Adam(params)
    with pytest.raises(InputError, match="with the rule 'lstm', but got one of None"):
        optimiser.load_state_dict(adam.state_dict())
    for other in (LSTMOptimiser(hidden_size=5), LSTMOptimiser(cell="gru", hidden_size=4)):
        before = other(params)
        with pytest.raises(InputError, match=r"a state of shapes .* for a parameter of shape \(3,"):
            before.load_state_dict(saved)
        assert not before.state
    with pytest.raises(InputError, match="a state of shapes"):
        LSTMOptimiser(hidden_size=4)(with_gradients(4, (2, 2))).load_state_dict(saved)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimiser.rule(with_gradients(3)).load_state_dict(saved)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("lr", [1.0, 0.3])
def test_what_is_pruned_is_exactly_zero(dtype: torch.dtype, lr: float) -> None:
    rule = M2SGD(threshold=0.3, rate=0.3, hidden_size=4, generator=seeded())
    (parameter,) = with_gradients((40,), dtype=dtype)
    parameter.data = torch.rand(40, generator=seeded(2), dtype=torch.float64).to(dtype) + 1
    rule([parameter], lr=lr).step()
    assert 0 < (parameter == 0).sum() < 40
    assert parameter[parameter != 0].abs().min() > 0.1


def test_within_autocast() -> None:
    model, other = MLP([5, 4, 2], generator=seeded()), MLP([5, 4, 2], generator=seeded())
    rule = LSTMOptimiser(generator=seeded(1))
    for net in (model, other):
        net(torch.ones(2, 5)).sum().backward()
    rule(model.parameters()).step()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rule(other.parameters()).step()
    torch.testing.assert_close(values(other), values(model), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LSTMOptimiser(cell="lstmm"), "known cell .* but got 'lstmm'. Did you mean 'lstm'"),
        (lambda: LSTMOptimiser(layers=0), "layers to be a whole number of at least 1, but got 0"),
        (lambda: LSTMOptimiser(hidden_size=0), "hidden_size to be a whole number"),
        (lambda: DecayNetOptimiser(iterations=0), "iterations to be a whole number"),
        (lambda: GlobalOptimiser(size=-1), "size to be a whole number"),
        (lambda: MetaSGD(size=0), "size to be a whole number"),
        (lambda: DMSGD(size=0), "size to be a whole number"),
        (lambda: MTL2L(hyper_size=0), "hyper_size to be a whole number"),
        (lambda: preprocess(torch.ones(1), 0.0), "p to be above 0, but got 0.0. Try p=10"),
        (lambda: LSTMOptimiser(p=0), "p to be a finite number above 0, but got 0. Try p=10"),
        (lambda: MTL2L(p=-1.0), "p to be a finite number above 0"),
        (lambda: LSTMOptimiser(scale="big"), "scale to be a finite number, but got 'big'"),  # type: ignore[arg-type]
        (lambda: M2SGD(threshold=float("nan")), "threshold to be a finite number, but got nan"),
        (lambda: GlobalM2SGD(size=3, threshold=float("inf")), "threshold to be a finite number"),
        (lambda: MetaSGD(size=3, rate=float("nan")), "rate to be a finite number"),
        (lambda: LSTMOptimiser(cell="gru", foo=1), "or its cell gru, but got {'foo': 1}: .*'foo'"),
        (lambda: LSTMOptimiser(dtype=torch.float64), r"but got dtype, .*\.to\(torch.float64\)"),
        (
            lambda: MetaSGD.pretrained("mlp"),
            "comes with weights .*lstm/mlp.*, but meta_sgd does not: .* networks of one size",
        ),
        (lambda: GlobalOptimiser.pretrained(), "comes with weights .*, but global does not"),
        (
            lambda: LSTMOptimiser.pretrained("nothing"),
            "known pretrained lstm .* but got 'nothing'",
        ),
    ],
)
def test_options_are_checked(make: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()


class Shown(nn.Module):
    """A model that is called with its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.net = MLP([6, 3, 2], generator=seeded())

    def forward(self, *, images: Tensor) -> Tensor:
        y: Tensor = self.net(images)
        return y


@pytest.mark.parametrize("stable", [True, False])
def test_context_by_hand_and_by_watching(stable: bool) -> None:
    rule = make_rule("mtl2l", context_size=6, stable=stable)
    one, two = Shown(), Shown()
    by_hand, watching = rule(one.parameters()), rule(two.parameters())
    handle = watching.watch(two)
    for seed in range(3):
        x = torch.randn(4, 2, 3, generator=seeded(seed))
        for net, optimiser in ((one, by_hand), (two, watching)):
            optimiser.zero_grad()
            net(images=x).square().sum().backward()
            net.eval()(images=torch.zeros(1, 6))  # evaluation does not count
            net.train()
        by_hand.step(context=x)
        watching.step()
    exact(values(one), values(two))
    handle.remove()


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (None, r"but got no context. Try attach\(rule, model\), .* or optimiser.step\(context=x\)"),
        (torch.ones(4, 5), "context of 6 features, but got 5. Make the rule with context_size=5"),
        (torch.ones(4), r"at least one row, but got the shape \(4,\)"),
        (torch.ones(0, 6), r"at least one row, but got the shape \(0, 6\)"),
        (torch.full((4, 6), float("nan")), "context of finite numbers, .* nothing was changed"),
        (torch.ones(4, 6).numpy(), "context to be a tensor .*, but got ndarray.*torch.as_tensor"),
        (torch.tensor(1.0), "context to be a tensor"),
    ],
)
def test_bad_context(context: Any, text: str) -> None:
    params = with_gradients((3, 2), 3)
    before = [p.detach().clone() for p in params]
    with pytest.raises(InputError, match=text):
        make_rule("mtl2l", context_size=6)(params).step(context=context)
    exact([p.detach() for p in params], before)


def test_context_of_whole_numbers() -> None:
    params = with_gradients((3, 2))
    make_rule("mtl2l", context_size=6)(params).step(context=torch.ones(4, 6, dtype=torch.int64))
    assert params[0].isfinite().all()
