"""What levels draw from torch's generator, and the prices that cells have."""

import json
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from attractor.cells.base import penalty
from attractor.continual import GEM
from attractor.continual.draws import Draws
from attractor.continual.lifelong import Curriculum, Rank, Rules, levels
from attractor.models import SequenceTagger
from attractor.state import pack, unpack
from continual.helpers import parameters, seeded

RULES = Rules(steps=6, window=3, threshold=1.0, after=6, grow_to=9, held_out=10)
DRAWING: dict[str, dict[str, Any]] = {
    "lstm": {"num_layers": 2, "dropout": 0.4},
    "tardis": {"cells": 4, "content_size": 3},
}


def learner(cell: str, **options: Any) -> Curriculum:
    model = SequenceTagger(cell, 8, 6, 7, **DRAWING.get(cell, {}), generator=seeded())
    one = levels("copy", first=2, step=2, count=2)
    adam = {"name": "adam", "lr": 0.01}
    given: dict[str, Any] = {"rules": RULES, "seed": 3, "log_every": 1, **options}
    return Curriculum(model, one, GEM(20, memory="ring"), optimiser=adam, **given)


def finished(one: Curriculum) -> list[dict[str, Any]]:
    rows = []
    while not one.done:
        rows += one.advance()
        torch.rand(3)  # somebody else draws too
    return rows


@pytest.mark.parametrize("cell", sorted(DRAWING))
@pytest.mark.parametrize("after", [2, 8])
def test_a_run_that_draws_goes_on_bit_by_bit(cell: str, after: int) -> None:
    torch.manual_seed(1)
    one = learner(cell)
    for _ in range(after):
        one.advance()
    tensors, rest = pack(one.state_dict())
    stored = save({name: t.contiguous() for name, t in tensors.items()})
    torch.manual_seed(2)
    other = learner(cell)
    other.load_state_dict(unpack(load(stored), json.loads(json.dumps(rest))))
    assert finished(one) == finished(other)
    assert torch.equal(parameters(one.model), parameters(other.model))


def test_a_seed_decides_all_that_is_drawn_and_nothing_outside_moves() -> None:
    ends = []
    for outside, seed in ((1, 3), (2, 3), (1, 4)):
        torch.manual_seed(outside)
        one = learner("lstm", seed=seed, trigger=Rank(4, 2.0))
        before = torch.get_rng_state()
        for _ in range(8):
            one.advance()
        assert torch.equal(torch.get_rng_state(), before)
        ends.append(parameters(one.model))
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_a_state_from_before_is_taken() -> None:
    one = learner("gru")
    for _ in range(2):
        one.advance()
    state = one.state_dict()
    del state["random"], state["given"]
    other = learner("gru")
    other.load_state_dict(state)
    assert finished(one) == finished(other)


def test_the_price_of_a_cell_counts() -> None:
    found = []
    for price in (0.0, 7.0):
        model = SequenceTagger("rnn", 8, 6, 7, orthogonality=price, generator=seeded())
        extra = penalty(model)
        two = levels("copy", first=2, step=2, count=2)
        one = Curriculum(model, two, rules=RULES, log_every=1, optimiser="sgd")
        found.append((one.advance()[0]["loss"], 0.0 if extra is None else extra.item()))
    assert found[1][1] > 0.1
    assert found[1][0] == pytest.approx(found[0][0] + found[1][1])


def test_draws_go_on_where_they_were_and_follow_the_seed() -> None:
    own, found = Draws(3), []
    for _ in range(2):
        with own():
            found.append(torch.rand(2))
    assert torch.equal(torch.cat(found), torch.rand(4, generator=seeded(3)))
    states = [learner("gru", seed=seed).state_dict()["random"] for seed in (3, 3, 4)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
