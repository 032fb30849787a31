"""An optimiser that averages: where the network is trained, and where it is judged."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attractor.errors import InputError
from attractor.optimisers import Anytime, LSTMOptimiser, View, attach
from attractor.optimisers.view import tensor_size
from contracts.cells import perturb, seeded
from optimisers import weights
from reference import rules

SHAPES = ((2, 60), (3,), (2, 4, 3, 3), (50, 2))
"""A matrix of 60 inputs, a vector, filters of 36 and a table."""
TENSORS = ((120, 60), (3, None), (72, 36), (100, None))


def made() -> Any:
    return perturb(Anytime(rate=0.02), seeded(3)).double()


def groups() -> list[dict[str, Any]]:
    g = seeded(4)
    own = [nn.Parameter(torch.randn(s, generator=g).double()) for s in SHAPES]
    return [{"params": own[:3]}, {"params": own[3:], "tables": True}]


def descend(optimiser: Any, steps: range) -> list[np.ndarray]:
    """Along drawn gradients, which are returned as rows."""
    drawn = []
    for step in steps:
        own = [p for group in optimiser.param_groups for p in group["params"]]
        for p in own:
            p.grad = torch.randn(p.shape, generator=seeded(100 + step), dtype=torch.float64)
        drawn.append(flat(p.grad for p in own))
        optimiser.step()
    return drawn


def flat(tensors: Any) -> np.ndarray:
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


def values(optimiser: Any) -> np.ndarray:
    return flat(p for group in optimiser.param_groups for p in group["params"])


@pytest.mark.parametrize("lr", [1.0, 0.3])
def test_sizes_by_fan_in_and_the_average_as_the_reference_has_them(lr: float) -> None:
    rule = made()
    rule.size_power.data.fill_(0.7)
    optimiser = rule(groups(), lr=lr)
    theta, state = values(optimiser), None
    for grads in descend(optimiser, range(5)):
        theta, state = rules.anytime(
            weights.anytime(rule), theta, grads, state, tensors=TENSORS, lr=lr
        )
    np.testing.assert_allclose(values(optimiser), theta, rtol=0, atol=1e-10)
    optimiser.eval()
    assert state is not None
    np.testing.assert_allclose(values(optimiser), state[2], rtol=0, atol=1e-10)


def test_a_size_is_what_it_is_written_to_be() -> None:
    assert tensor_size(None) == 1
    assert tensor_size(10) == 1
    assert tensor_size(100) == pytest.approx(10 / 300**0.5)
    assert tensor_size(10_000) == 0.1


def test_back_from_the_average_bit_for_bit() -> None:
    optimiser, other = made()(groups()), made()(groups())
    descend(optimiser, range(3))
    descend(other, range(3))
    before = values(optimiser)
    assert optimiser.training
    optimiser.eval()
    optimiser.eval()
    assert not optimiser.training
    assert np.abs(values(optimiser) - before).max() > 1e-4
    optimiser.train()
    optimiser.train()
    assert np.array_equal(values(optimiser), before)
    descend(optimiser, range(3, 5))
    descend(other, range(3, 5))
    assert np.array_equal(values(optimiser), values(other))


def test_no_step_at_the_average() -> None:
    optimiser = made()(groups())
    descend(optimiser, range(2))
    optimiser.eval()
    with pytest.raises(InputError, match="put it at its average; nothing was changed. Call train"):
        descend(optimiser, range(2, 3))


@pytest.mark.parametrize("through", ["state_dict", "pickle", "copy"])
def test_a_copy_at_the_average_knows_the_way_back(through: str, tmp_path: Path) -> None:
    optimiser = made()(groups())
    descend(optimiser, range(3))
    wanted = values(optimiser)
    optimiser.eval()
    if through == "state_dict":
        fresh = optimiser.rule(copy.deepcopy(groups()))
        for one, two in zip(fresh.param_groups, optimiser.param_groups, strict=True):
            for p, q in zip(one["params"], two["params"], strict=True):
                p.data.copy_(q.data)
        torch.save(optimiser.state_dict(), tmp_path / "state.pt")
        fresh.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    else:
        fresh = (
            copy.deepcopy(optimiser) if through == "copy" else pickle.loads(pickle.dumps(optimiser))
        )
    assert not fresh.training
    fresh.train()
    assert np.array_equal(values(fresh), wanted)


def test_other_rules_have_one_place() -> None:
    model = nn.Linear(3, 1)
    optimiser = LSTMOptimiser.pretrained("mlp")(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimiser.step()
    before = model.weight.clone()
    optimiser.eval()
    assert torch.equal(model.weight, before)
    optimiser.step()
    optimiser.train()


def test_as_it_is_written_in_the_docs() -> None:
    model = nn.Linear(3, 1)
    opt = Anytime.pretrained()(model.parameters(), weight_decay=0.01)
    model(torch.ones(2, 3)).sum().backward()
    opt.step()
    opt.eval()
    opt.train()


def test_weight_decay_takes_the_place_of_the_learnt_one() -> None:
    """None of it in a group of its own; without a word it is the rule's."""
    rule = made()
    own = [nn.Parameter(torch.full((4,), 5.0).double()) for _ in range(3)]
    optimiser = rule(
        [{"params": own[:1]}, {"params": own[1:2], "weight_decay": 0.0}, {"params": own[2:]}],
        weight_decay=0.5,
    )
    for p in own:
        p.grad = torch.zeros(4).double()
    optimiser.step()
    assert own[1].eq(5).all()
    assert own[0].lt(5).all()
    assert torch.equal(own[0], own[2])
    plain = rule([own[1]])
    assert plain.param_groups[0]["weight_decay"] == pytest.approx(rule.log_delta.exp().item())
    plain.step()
    assert own[1].lt(5).all()


def test_attach_tells_of_embeddings() -> None:
    model = nn.Sequential(nn.Linear(4, 90), nn.Embedding(90, 70), nn.EmbeddingBag(5, 2))
    optimiser: Any = attach(Anytime(), model)
    assert optimiser.param_groups[0]["tables"] == [2, 3]
    same = attach(Anytime(), model, [{"params": list(model[1].parameters())}])
    assert same.param_groups[0]["tables"] == [0]
    view = View.of(model.parameters(), [2, 3])
    assert [view.fan_in(i) for i in range(4)] == [4, None, None, None]


def test_tables_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="places of a group's 1 parameters, but got"):
        Anytime()([{"params": [nn.Parameter(torch.ones(2))], "tables": [3]}])
