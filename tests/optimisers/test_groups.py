"""Options of torch.optim act on a learned optimiser, or are refused in a sentence."""

import copy
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CyclicLR, OneCycleLR

from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import (
    DMSGD,
    M2SGD,
    OPTIMISERS,
    Anytime,
    LSTMOptimiser,
    Pacer,
    Rule,
    shipped,
)
from contracts.cells import seeded
from contracts.optimisers import NAMES, Net, backward, exact, rule_for, train, values

rules = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", [n for n in NAMES if not OPTIMISERS[n].kind.averages])
def test_weight_decay_and_maximize_are_a_change_of_the_gradient(name: str) -> None:
    """Each in a group of its own, and in the order of torch: negate, then decay."""
    model, other = Net(), Net()
    rule = rule_for(name, model)
    own = list(model.parameters())
    groups = [
        {"params": own[:2], "weight_decay": 0.3},
        {"params": own[2:4], "maximize": True},
        {"params": own[4:], "weight_decay": 0.2, "maximize": True},
    ]
    decays, signs = [0.3, 0.3, 0.0, 0.0] + [0.2] * (len(own) - 4), [1, 1] + [-1] * (len(own) - 2)
    optimiser, plain = rule(groups), rule(other.parameters())
    for seed in range(3):
        x = backward(model, seed)
        for one, two in zip(own, other.parameters(), strict=True):
            two.data, two.grad = one.data.clone(), one.grad.clone()  # type: ignore[union-attr]
        for p, decay, sign in zip(other.parameters(), decays, signs, strict=True):
            assert p.grad is not None
            p.grad = (sign * p.grad).add(p.data, alpha=decay)
        optimiser.step(context=x)
        plain.step(context=x)
        exact(values(model), values(other))


def test_the_decay_of_anytime_is_that_of_adamw() -> None:
    """Without its average and fading it is AdamW, in the place of the decay that it has learnt."""
    rule = Anytime(rate=0.01).double()
    for off in (rule.logit_beta, rule.log_p):
        nn.init.constant_(off, -50)
    ours, theirs = (torch.linspace(-3, 2, 7).double().requires_grad_() for _ in range(2))
    pair = (
        (ours, rule([ours], weight_decay=0.4, maximize=True)),
        (theirs, torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.4, maximize=True)),
    )
    for _ in range(10):
        for theta, optimiser in pair:
            theta.grad = torch.cos(3 * theta.detach())
            optimiser.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)


def test_a_positional_rate_is_the_rate() -> None:
    model, other = Net(), Net()
    rule = rule_for("dmsgd", model)
    exact(
        train(model, rule(model.parameters(), 0.3), range(2)),
        train(other, rule(other.parameters(), lr=0.3), range(2)),
    )


@pytest.mark.parametrize(
    "option",
    [{"foreach": True}, {"differentiable": True}, {"momentum": 0.9}, {"betas": (0.9, 0.99)}],
)
def test_what_has_no_meaning_is_refused(option: dict[str, Any]) -> None:
    (name,) = option
    match = rf"\(lr, weight_decay, maximize\), but got {name}=.*Leave it out"
    with pytest.raises(InputError, match=match):
        DMSGD()([nn.Parameter(torch.ones(2))], **option)
    with pytest.raises(InputError, match=match):
        DMSGD()([{"params": [nn.Parameter(torch.ones(2))], **option}])
    optimiser = DMSGD()([nn.Parameter(torch.ones(2))])
    with pytest.raises(InputError, match=match):
        optimiser.add_param_group({"params": [nn.Parameter(torch.ones(2))], **option})
    assert len(optimiser.param_groups) == 1


def test_what_is_not_asked_for_is_accepted() -> None:
    group = {"params": [nn.Parameter(torch.ones(2))], "name": "last", "fused": None}
    DMSGD()([group], foreach=False, differentiable=False)


@pytest.mark.parametrize("decay", [-0.1, float("nan"), float("inf")])
def test_decays_are_checked(decay: float) -> None:
    match = "weight_decay to be a finite number of at least 0, but got .*Try weight_decay=0"
    with pytest.raises(InputError, match=match):
        DMSGD()([nn.Parameter(torch.ones(2))], weight_decay=decay)
    with pytest.raises(InputError, match=match):
        DMSGD()([{"params": [nn.Parameter(torch.ones(2))], "weight_decay": decay}])


@pytest.mark.parametrize("wrong", [None, "a", "0.1", True, torch.ones(2)])
def test_what_is_no_number_is_refused_in_a_sentence(wrong: Any) -> None:
    weights = [nn.Parameter(torch.ones(2))]
    for name, text in (("lr", "lr to be at least 0"), ("weight_decay", "weight_decay to be a fin")):
        optimiser = DMSGD()(weights)
        if (name, wrong) != ("weight_decay", None):
            for group in ({"params": weights, name: wrong}, {"params": weights}):
                with pytest.raises(InputError, match=f"expected {text}.* but got {wrong!r:.5}"):
                    DMSGD()([group], **({} if name in group else {name: wrong}))
        optimiser.param_groups[0][name] = wrong
        weights[0].grad = torch.ones(2)
        with pytest.raises(InputError, match=f"expected {text}.*[Tt]ry {name}="):
            optimiser.step()


@pytest.mark.parametrize("rule", [DMSGD(), Anytime.pretrained()])
def test_a_group_may_leave_the_decay_to_the_rule(rule: Any) -> None:
    groups = [{"params": [nn.Parameter(torch.ones(2))], "weight_decay": None}]
    optimiser = rule(groups, weight_decay=0.3)
    optimiser.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    assert [group["weight_decay"] for group in optimiser.param_groups] == [rule.decay, 0.3]
    assert groups[0]["weight_decay"] is None
    assert (rule.decay > 0) == rule.averages


@pytest.mark.parametrize("value", [None, False, 0.1])
def test_misspelt_options_are_named(value: Any) -> None:
    match = "known option of a learned optimiser .* Did you mean 'weight_decay'"
    with pytest.raises(InputError, match=match):
        DMSGD()([nn.Parameter(torch.ones(2))], weigth_decay=value)
    with pytest.raises(InputError, match=match):
        DMSGD()([{"params": [nn.Parameter(torch.ones(2))], "weigth_decay": value}])
    with pytest.raises(InputError, match="known option of a learned optimiser .* got 'tables'"):
        DMSGD()([nn.Parameter(torch.ones(2))], tables=value)  # of groups alone


@pytest.mark.parametrize("schedule", [OneCycleLR, CyclicLR])
def test_schedulers_that_cycle_a_momentum_work_with_their_defaults(schedule: Any) -> None:
    model, other = Net(), Net()
    rule = rule_for("lstm", model)
    optimiser, plain = rule(model.parameters()), rule(other.parameters())
    own = {"max_lr": 1.0} | ({"total_steps": 5} if schedule is OneCycleLR else {"base_lr": 0.1})
    scheduler = schedule(optimiser, **own)
    for seed in range(4):
        plain.param_groups[0]["lr"] = optimiser.param_groups[0]["lr"]
        for one, net in ((optimiser, model), (plain, other)):
            one.step(context=backward(net, seed))
        scheduler.step()
    exact(values(model), values(other))
    again = rule(model.parameters())
    again.load_state_dict(optimiser.state_dict())
    assert again.param_groups[0]["lr"] == optimiser.param_groups[0]["lr"]


@pytest.mark.parametrize("name", shipped())
def test_shipped_rules_go_on_bit_for_bit_when_copied_and_pickled(name: str) -> None:
    kind, which = name.split("/")
    rule = OPTIMISERS[kind].kind.pretrained(which)
    shown = getattr(rule, "context_size", 784)
    model = MLP([shown, 9, 10], generator=seeded())
    optimiser = rule(model.parameters())

    def go_on(net: nn.Module, one: Any, seeds: range) -> None:
        for seed in seeds:
            x = torch.randn(4, shown, generator=seeded(seed))
            one.zero_grad()
            net(x).square().mean().backward()
            one.step(context=x)

    go_on(model, optimiser, range(2))
    others = [copy.deepcopy((model, optimiser)), pickle.loads(pickle.dumps((model, optimiser)))]
    go_on(model, optimiser, range(2, 8))
    for net, one in others:
        go_on(net, one, range(2, 8))
        exact(values(net), values(model))
    assert all(p.data_ptr() % 64 == 0 for p in rule.parameters())


@pytest.mark.parametrize("kind", sorted({name.split("/")[0] for name in shipped()}))
def test_the_first_set_of_weights_needs_no_name(kind: str) -> None:
    rule = OPTIMISERS[kind].kind
    found, named = rule.pretrained(), rule.pretrained("default" if rule.averages else "mlp")
    exact(list(found.state_dict().values()), list(named.state_dict().values()))


def test_a_state_goes_with_the_weights_of_its_rule() -> None:
    model = Net()
    optimiser = LSTMOptimiser.pretrained()(model.parameters())
    train(model, optimiser, range(2))
    saved = optimiser.state_dict()
    fresh = LSTMOptimiser()(model.parameters())
    match = "'lstm' has the weights of this one, but got one of other weights; nothing was changed"
    with pytest.raises(InputError, match=match):
        fresh.load_state_dict(saved)
    assert not fresh.state
    again = LSTMOptimiser.pretrained()(model.parameters())
    again.load_state_dict(saved)
    assert "fingerprint" not in again.param_groups[0]


@rules
def test_states_of_older_releases_load(name: str) -> None:
    """Their tensors had numbers for names, and their groups no fingerprint and fewer options."""
    model = Net()
    rule = rule_for(name, model)
    optimiser = rule(model.parameters())
    train(model, optimiser, range(2))
    saved = copy.deepcopy(optimiser.state_dict())
    for index, kept in saved["state"].items():
        saved["state"][index] = {str(i): leaf for i, leaf in enumerate(kept.values())}
    for group in saved["param_groups"]:
        for key in ("fingerprint", "weight_decay", "maximize", "momentum"):
            del group[key]
    copied = copy.deepcopy(model)
    fresh = rule(copied.parameters())
    fresh.load_state_dict(saved)
    exact(train(copied, fresh, range(2, 4)), train(model, optimiser, range(2, 4)))


def test_a_state_of_other_options_is_refused() -> None:
    """A threshold is no weight, and decides all the same what is pruned."""
    model = nn.Linear(3, 2)
    first, second = (
        M2SGD(threshold=t, generator=torch.Generator().manual_seed(0)) for t in (0.1, 0.2)
    )
    state = first(model.parameters()).state_dict()
    with pytest.raises(InputError, match=r'has the options .*"threshold": 0.2.* one of .* 0.1'):
        second(model.parameters()).load_state_dict(state)
    again = first(model.parameters())
    again.load_state_dict(state)
    assert "options" not in again.param_groups[0]


@pytest.mark.parametrize("value", ["no", 1, None])
def test_what_is_no_truth_value_does_not_maximise(value: Any) -> None:
    with pytest.raises(InputError, match=f"maximize to be true or false, but got {value!r}"):
        Anytime()(nn.Linear(2, 1).parameters(), maximize=value)


@pytest.mark.parametrize("kind", [Anytime, Pacer])
def test_a_step_within_a_compiled_function_is_the_same(kind: type[Rule]) -> None:
    """Traced, its kernels would write into memory that the tracer believes to be its own."""
    graphs: list[Any] = []

    def traced(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def trained(compiled: bool) -> Tensor:
        g = torch.Generator().manual_seed(0)
        weight = nn.Parameter(torch.randn(4, 3, generator=g))
        optimiser = kind.pretrained()([weight])
        step = optimiser.step
        if compiled:
            step = torch.compile(partial(optimiser.step), backend=traced)
        for _ in range(4):
            weight.grad = weight.detach() + 0.1 * torch.randn(4, 3, generator=g)
            step()
        return weight.detach()

    assert torch.equal(trained(compiled=True), trained(compiled=False))
    assert not graphs
