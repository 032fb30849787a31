"""What the two pure functions of every learned optimiser promise."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from attractor.optimisers import OPTIMISERS, Learned, Rule, State, View, load_rule, save_rule
from attractor.references import year
from contracts.cells import seeded
from contracts.optimisers import LENGTH, NAMES, SIZED, exact, make_rule
from contracts.test_cell_forms import DOCUMENTED

close = torch.testing.assert_close
rules = pytest.mark.parametrize("name", NAMES)
N, K = 11, 3
"""Coordinates and learners in these tests."""
SCALES = torch.tensor([[0.02], [0.05], [1.0]], dtype=torch.float64)
"""Learners that start in other places than each other."""


def shown(rule: Rule) -> Tensor | None:
    if not rule.needs_context:
        return None
    return torch.randn(K, 4, LENGTH, generator=seeded(9), dtype=dtype_of(rule))


def dtype_of(rule: Rule) -> torch.dtype:
    return next(rule.parameters()).dtype


def view(rule: Rule, **options: Any) -> View:
    """Three tensors, and what the learners were shown."""
    made = View.of([torch.zeros(2, 3), torch.zeros(()), torch.zeros(4)])
    return made._replace(**{"context": shown(rule)} | options)


def drawn(rule: Rule, seed: int) -> Tensor:
    return torch.randn(K, N, generator=seeded(seed), dtype=dtype_of(rule))


class Descent(nn.Module):
    """Some updates along given gradients, as a function of the rule's weights."""

    def __init__(self, rule: Rule, steps: int = 3) -> None:
        super().__init__()
        self.rule, self.view, self.params = rule, view(rule), drawn(rule, 1)
        self.gradients = [drawn(rule, 10 + step) for step in range(steps)]

    def forward(self) -> tuple[Tensor, State]:
        params, state = self.params, self.rule.init(self.params, self.view)
        for grads in self.gradients:
            added, state = self.rule.update(grads, state, params, self.view)
            params = params + added
        return params, state


@rules
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saved_and_loaded(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    rule = make_rule(name, N).to(dtype)
    save_rule(rule, tmp_path / "rule.safetensors")
    loaded = load_rule(tmp_path / "rule.safetensors")
    assert type(loaded) is type(rule)
    assert loaded.options == rule.options
    exact(list(loaded.state_dict().values()), list(rule.state_dict().values()))
    exact([Descent(loaded)()[0]], [Descent(rule)()[0]])


@rules
def test_learners_at_once_are_learners_one_by_one(name: str) -> None:
    rule = make_rule(name, N).double()
    params, grads, seen = SCALES * drawn(rule, 1), drawn(rule, 2), view(rule)
    state = rule.init(params, seen)
    together, alone = params, list(params)
    states = [rule.init(params[k : k + 1], seen) for k in range(K)]
    for _ in range(3):
        steps, state = rule.update(grads, state, together, seen)
        together = together + steps
        for k in range(K):
            at = slice(k, k + 1)
            mine = view(rule, context=None if seen.context is None else seen.context[at])
            own, states[k] = rule.update(grads[at], states[k], alone[k][None], mine)
            alone[k] = alone[k] + own[0]
    close(together, torch.stack(alone), atol=1e-12, rtol=0)


@rules
def test_gradient_of_a_descent_by_the_weights(name: str) -> None:
    rule = make_rule(name, N).double()
    run = Descent(rule, steps=2)
    names, weights = zip(*rule.named_parameters(), strict=True)

    def after(*given: Tensor) -> Tensor:
        named = dict(zip(names, given, strict=True))
        params: Tensor = functional_call(run, {f"rule.{k}": v for k, v in named.items()})[0]
        return params

    assert torch.autograd.gradcheck(after, weights, fast_mode=True)


@rules
def test_second_derivatives_at_zero_gradients_are_finite(name: str) -> None:
    rule = make_rule(name, N)
    params = drawn(rule, 1).requires_grad_()
    grads = (0 * params).requires_grad_()
    state = rule.init(params, view(rule))
    point = params
    for _ in range(2):
        steps, state = rule.update(grads, state, point, view(rule))
        point = point + steps
    inputs = [params, grads, *rule.parameters()]
    first = torch.autograd.grad(point.sin().sum(), inputs, create_graph=True, allow_unused=True)
    total = torch.stack([g.square().sum() for g in first if g is not None]).sum()
    second = torch.autograd.grad(total, inputs, allow_unused=True)
    for found in (*first, *second):
        assert found is None or found.isfinite().all()


@rules
def test_update_is_pure(name: str) -> None:
    rule = make_rule(name, N)
    params, grads, seen = drawn(rule, 1), drawn(rule, 2), view(rule)
    _, state = Descent(rule, steps=1)()
    given = [params, grads, *tree_leaves(state)]
    before = [t.detach().clone() for t in given]
    weights = copy.deepcopy(rule.state_dict())
    attributes = {m: set(vars(m)) for m in rule.modules()}
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            first = rule.update(grads, state, params, seen)
            second = rule.update(grads, state, params, seen)
        exact(tree_leaves(first), tree_leaves(second))
        exact(given, before)
        exact(list(rule.state_dict().values()), list(weights.values()))
    assert {m: set(vars(m)) for m in rule.modules()} == attributes


@rules
def test_without_a_graph_it_is_the_same(name: str) -> None:
    rule = make_rule(name, N).double()
    expected, state = Descent(rule)()
    with torch.no_grad():
        found, quick = Descent(rule)()
    close(found, expected, atol=1e-12, rtol=0)
    close(tree_leaves(quick), tree_leaves(state), atol=1e-12, rtol=0)


@rules
@pytest.mark.parametrize("grad", [True, False])
def test_many_rules_of_one_kind_at_once(name: str, grad: bool) -> None:
    """`vmap` over weights and states, as evolution strategies do."""
    several = [make_rule(name, N, seed=seed).double() for seed in range(3)]
    buffers = dict(several[0].named_buffers())
    for rule in several:
        rule.load_state_dict(buffers, strict=False)
    weights = {
        key: torch.stack([dict(rule.named_parameters())[key].detach() for rule in several])
        for key, _ in several[0].named_parameters()
    }
    run = Descent(several[0])

    def after(named: dict[str, Tensor]) -> Any:
        return functional_call(run, {f"rule.{k}": v for k, v in named.items()})[0]

    with torch.set_grad_enabled(grad):
        found = vmap(after)(weights)
    close(found, torch.stack([Descent(rule)()[0] for rule in several]), atol=1e-12, rtol=0)


@rules
def test_state_has_coordinates_where_the_contract_says(name: str) -> None:
    rule = make_rule(name, N)
    for state in (rule.init(drawn(rule, 1), view(rule)), Descent(rule)()[1]):
        assert all(leaf.shape[:2] == (K, N) for leaf in tree_leaves(state.each))
        assert all(leaf.shape[0] == K for leaf in tree_leaves(state.shared))
    leaves, spec = tree_flatten(Descent(rule)()[1])
    assert isinstance(tree_unflatten(leaves, spec), State)


@rules
def test_a_fresh_rule_does_what_the_docs_say(name: str) -> None:
    """Moves nothing, is gradient descent at 0.01, or something of its own."""
    context = {"context_size": LENGTH} if name == "mtl2l" else {}
    rule = OPTIMISERS[name].kind(**({"size": N} if name in SIZED else {}), **context)
    params, grads = drawn(rule, 1), drawn(rule, 2)
    seen = view(rule)
    steps, _ = rule.update(grads, rule.init(params, seen), params, seen)
    if name in ("lstm", "ihc_lstm", "mtl2l", "rnnprop", "global"):
        assert not steps.any()
    else:
        assert torch.equal(steps, -0.01 * grads) == (name in ("meta_sgd", "decaynet"))
        assert steps.any()


@rules
def test_names_of_saved_weights_are_frozen(name: str) -> None:
    """Saved rules must keep loading: a change here needs another `version`."""
    path = Path(__file__).with_name("rules.json")
    rule = make_rule(name, N)
    found = {key: list(value.shape) for key, value in rule.state_dict().items()}
    found["version"] = [rule.version]
    state = Learned([torch.zeros(N)], rule)._example.named()
    found |= {f"state {key}": list(leaf.shape) for key, leaf in state.items()}
    assert found == json.loads(path.read_text()).get(name), (
        f"expected the names and shapes in {path.name}; if {name} is new, add\n"
        f'"{name}": {json.dumps(found)}'
    )


@rules
def test_documented(name: str) -> None:
    kind = OPTIMISERS[name].kind
    assert kind.key == name
    assert 2016 <= year(kind.reference) <= 2026
    for part in DOCUMENTED:
        assert part in (kind.__doc__ or ""), f"{kind.__name__} lacks {part!r} in its docstring"
