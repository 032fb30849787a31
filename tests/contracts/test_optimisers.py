"""What every learned optimiser of the table promises."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attractor.errors import InputError
from attractor.optimisers import OPTIMISERS
from attractor.optimisers import blocks as by_blocks
from attractor.optimisers.view import count
from attractor.runs import checkpoint
from contracts.optimisers import (
    FREE,
    LENGTH,
    NAMES,
    SIZED,
    Net,
    backward,
    batch,
    exact,
    make_rule,
    rule_for,
    train,
    values,
)

close = torch.testing.assert_close
rules = pytest.mark.parametrize("name", NAMES)


@rules
def test_trains_a_nested_model(name: str) -> None:
    model = Net()
    before = values(model)
    after = train(model, rule_for(name, model)(model.parameters()), range(3))
    assert all(p.isfinite().all() for p in after)
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@rules
def test_groups_have_learning_rates_of_their_own(name: str) -> None:
    """Half the rate is half the step; a rate of zero is none, but for what is pruned."""
    full, model = Net(), Net()
    before = values(model)
    rule = rule_for(name, model)
    named = list(model.parameters())
    groups = [
        {"params": named[:2]},
        {"params": named[2:4], "lr": 0.5},
        {"params": named[4:], "lr": 0.0},
    ]
    whole = train(full, rule(full.parameters()), range(1))
    parts = train(model, rule(groups), range(1))
    rates = [1.0, 1.0, 0.5, 0.5] + [0.0] * (len(named) - 4)
    for rate, old, one, other in zip(rates, before, whole, parts, strict=True):
        expected = old + rate * (one - old)
        if rule.prunes:
            expected = torch.where(one == 0, one, expected)
        close(other, expected)


@rules
def test_closure(name: str) -> None:
    model, other = Net(), Net()
    rule = rule_for(name, model)
    x, y = batch(0)
    optimiser = rule(other.parameters())

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(other(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    loss = optimiser.step(closure, context=x)
    assert loss.item() > 0
    exact(values(other), train(model, rule(model.parameters()), range(1)))
    optimiser.zero_grad()
    assert all(p.grad is None for p in other.parameters())


def through_torch(optimiser: Any, fresh: Any, tmp_path: Path) -> None:
    torch.save(optimiser.state_dict(), tmp_path / "state.pt")
    fresh.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))


def through_checkpoint(optimiser: Any, fresh: Any, tmp_path: Path) -> None:
    checkpoint.write(tmp_path, optimiser.state_dict())
    fresh.load_state_dict(next(checkpoint.candidates(tmp_path)))


@rules
@pytest.mark.parametrize("through", [through_torch, through_checkpoint])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_goes_on_bit_for_bit(name: str, through: Any, dtype: torch.dtype, tmp_path: Path) -> None:
    model = Net().to(dtype)
    rule = rule_for(name, model)
    optimiser = rule(model.parameters())
    train(model, optimiser, range(3))
    copied = copy.deepcopy(model)
    fresh = rule(copied.parameters(), lr=0.3)
    through(optimiser, fresh, tmp_path)
    expected = train(model, optimiser, range(3, 6))
    exact(train(copied, fresh, range(3, 6)), expected)


@rules
def test_parameters_without_a_gradient_are_left_alone(name: str) -> None:
    model = Net()
    model.head.requires_grad_(False)
    rule = rule_for(name, model)
    optimiser = rule(model.parameters())
    before = values(model)
    optimiser.step(context=batch(0)[0])  # nobody has one
    exact(values(model), before)
    backward(model, 0)
    model.features[0].weight.grad = None
    optimiser.step(context=batch(0)[0])
    for (key, parameter), old in zip(model.named_parameters(), before, strict=True):
        if key.startswith("head") or key == "features.0.weight":
            assert torch.equal(parameter, old), key
        elif rule.size is None and not rule.whole:  # a whole one keeps all with the first
            assert optimiser.state[parameter]


@rules
def test_schedulers_and_clipping(name: str) -> None:
    model, other = Net(), Net()
    rule = rule_for(name, model)
    optimiser, plain = rule(model.parameters()), rule(other.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=0.5)
    for seed in range(3):
        for one, net in ((optimiser, model), (plain, other)):
            x = backward(net, seed)
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            one.step(context=x)
        schedule.step()
        plain.param_groups[0]["lr"] *= 0.5
    exact(values(model), values(other))
    assert optimiser.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize("name", FREE)
def test_goes_on_networks_of_any_size(name: str) -> None:
    rule = make_rule(name)
    for width in (1, 9):
        model = Net(width=width)
        assert all(p.isfinite().all() for p in train(model, rule(model.parameters()), range(2)))


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("width", [3, 5])
def test_a_rule_for_one_network_says_so(name: str, width: int) -> None:
    rule = rule_for(name, Net())
    model = Net(width=width)
    n = count(model.parameters())
    with pytest.raises(InputError, match=f"of {rule.size} parameters .* but got {n}. Make one"):
        rule(model.parameters())


@pytest.mark.parametrize("name", ["dmsgd", "m2sgd"])
def test_static_rates_of_their_own_follow_their_parameters(name: str) -> None:
    """Also when one before them has no gradient."""
    model, other = Net(), Net()
    n = count(model.parameters())
    rule = make_rule(name, size=None)
    own = OPTIMISERS[name].kind(size=n, hidden_size=4)
    weights = rule.state_dict()
    key = next(k for k in weights if k.endswith("static"))
    own.load_state_dict(weights | {key: torch.linspace(0, 1, n)})
    for net in (model, other):
        backward(net, 0)
    own(model.parameters()).step()
    other.embedding.weight.grad = None
    own(other.parameters()).step()
    for (key, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two) == (key != "embedding.weight"), key


@rules
def test_zero_sized_parameters(name: str) -> None:
    model = nn.ParameterList([torch.zeros(0, 3), torch.ones(4)])
    rule = rule_for(name, model)
    optimiser = rule(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step(context=torch.ones(2, LENGTH))
    assert not torch.equal(model[1], torch.ones(4))
    optimiser.load_state_dict(optimiser.state_dict())
    optimiser.step(context=torch.ones(2, LENGTH))


@rules
def test_parameters_of_other_types_than_the_rule(name: str) -> None:
    """Each is updated as one of the rule's own type, and rounded at the end."""
    start = torch.tensor([0.5, -2.0, 1.5])  # exact in every type
    types = [torch.bfloat16, torch.float64, torch.float16, torch.float32]
    params = [nn.Parameter(start.to(dtype)) for dtype in types]
    rule = make_rule(name, 12)
    for parameter in params:
        parameter.grad = torch.tensor([0.25, 1.0, -4.0]).to(parameter.dtype)
    rule(params).step(context=torch.ones(2, LENGTH))
    if name not in SIZED:
        for parameter in params[:3]:
            close(parameter.float(), params[3], rtol=1e-2, atol=1e-2)
    assert [p.dtype for p in params] == types
    assert all(p.isfinite().all() for p in params)


@rules
def test_a_parameter_added_later(name: str) -> None:
    model, late = Net(), nn.Parameter(torch.ones(3))
    rule = rule_for(name, model)
    optimiser = rule(model.parameters())
    train(model, optimiser, range(1))
    if name in SIZED:
        with pytest.raises(InputError, match="that it was made for, but got"):
            optimiser.add_param_group({"params": [late]})
        assert len(optimiser.param_groups) == 1
    else:
        optimiser.add_param_group({"params": [late], "lr": 0.5})
        late.grad = torch.ones(3)
        optimiser.step(context=batch(0)[0])
        assert not torch.equal(late, torch.ones(3))
    train(model, optimiser, range(1, 2))


@rules
def test_copies_and_pickles(name: str) -> None:
    model = Net()
    optimiser = rule_for(name, model)(model.parameters())
    train(model, optimiser, range(2))
    other, copied = copy.deepcopy((model, optimiser))
    third, pickled = pickle.loads(pickle.dumps((model, optimiser)))
    expected = train(model, optimiser, range(2, 4))
    exact(train(other, copied, range(2, 4)), expected)
    exact(train(third, pickled, range(2, 4)), expected)


@rules
def test_blocks_give_what_the_whole_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = Net().double(), Net().double()
    rule = rule_for(name, model).double()
    expected = train(model, rule(model.parameters()), range(3))
    monkeypatch.setattr(by_blocks, "NUMBERS", 20)
    close(train(other, rule(other.parameters()), range(3)), expected, atol=1e-12, rtol=0)


@rules
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bad_gradients_change_nothing(name: str, bad: float) -> None:
    model = Net()
    optimiser = rule_for(name, model)(model.parameters())
    train(model, optimiser, range(2))
    before, state = values(model), copy.deepcopy(optimiser.state_dict()["state"])
    x = backward(model, 2)
    gradient = list(model.parameters())[-1].grad
    assert gradient is not None
    gradient.view(-1)[0] = bad
    with pytest.raises(InputError, match="finite gradients, .* nothing was changed. Skip"):
        optimiser.step(context=x)
    exact(values(model), before)
    exact(tree_leaves(optimiser.state_dict()["state"]), tree_leaves(state))
