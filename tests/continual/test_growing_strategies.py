"""Strategies that give another network at the start of a task, and checkpoints of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from attractor import InputError
from attractor.continual import ER, EWC, Learner, LwF, Naive, Strategy, combine, deepen, grow
from attractor.continual.growing import as_saved, more_answers
from attractor.continual.lifelong import Curriculum, Rules, levels
from attractor.models import MLP, SequenceTagger
from attractor.tasks import StoredTask
from continual.helpers import digits, mlp, parameters, seeded


class Wider(Naive):
    """Twice as many units at the second task, and one layer more where that can be."""

    def __init__(self, change: Callable[[nn.Module], nn.Module]) -> None:
        self.change = change

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> nn.Module | None:
        return self.change(model) if task.place == 1 else None


def wider(model: nn.Module) -> nn.Module:
    return grow(model, 12, generator=seeded(7))


def larger(model: nn.Module) -> nn.Module:
    return deepen(wider(model))


def other(model: nn.Module) -> nn.Module:
    return MLP([64, 5, 10], generator=seeded())


ADAM = {"name": "adam", "lr": 0.003}


def learner(change: Any = larger, *others: Strategy) -> Learner:
    strategy = combine(*others, Wider(change))
    return Learner(mlp(8, 6), digits(), strategy, iterations=4, optimiser=ADAM, log_every=1)


@pytest.mark.parametrize("after", [3, 6, 10])
@pytest.mark.parametrize("beside", [ER, LwF])
def test_a_learner_that_grew_goes_on_after_a_checkpoint(after: int, beside: Any) -> None:
    one, again = (learner(larger, beside()) for _ in range(2))
    for _ in range(after):
        one.advance()
    sizes = [tuple(p.shape) for p in one.model.parameters()][::2]
    grew = [(12, 64), (12, 12), (12, 12), (10, 12)]
    assert sizes == (grew if after > 4 else [(8, 64), (6, 8), (10, 6)])
    again.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == again.advance()
    assert torch.equal(parameters(one.model), parameters(again.model))
    assert torch.equal(one.matrix, again.matrix)


def test_the_optimiser_begins_anew_with_another_network() -> None:
    one = learner(wider)
    for _ in range(5):
        one.advance()
    found: Any = [float(state["step"]) for state in one.optimiser.state.values()]
    assert found == [1.0] * 6


def test_a_network_that_cannot_be_grown_to_is_refused_and_nothing_changes() -> None:
    one, again = learner(other), learner(other)
    for _ in range(6):
        one.advance()
    before = again.model
    with pytest.raises(
        InputError, match=r"saved one has layers.0.weight of shape \(5, 64\), and this one .*8, 64"
    ):
        again.load_state_dict(one.state_dict())
    assert again.model is before
    again.advance()


def test_a_state_of_a_larger_network_that_did_not_grow_is_still_refused() -> None:
    small, large = (Learner(mlp(size), digits()[:2], iterations=2) for size in (8, 12))
    with pytest.raises(InputError, match="same model, but: size mismatch"):
        small.load_state_dict(large.state_dict())


def test_a_strategy_of_weights_refuses_another_network_and_keeps_the_one_it_had() -> None:
    one = learner(wider, EWC(1.0, samples=20))
    for _ in range(4):
        one.advance()
    before = one.model
    with pytest.raises(InputError, match="gets 'wider': it keeps numbers for each of its weights"):
        one.advance()
    assert one.model is before
    with pytest.raises(InputError, match="EWC keeps numbers for each of its weights. Try gem"):
        one.strategy.adopt(wider(one.model))


def test_levels_go_on_with_the_network_that_a_strategy_gives() -> None:
    rules = Rules(steps=4, window=2, threshold=0.0, after=4, grow_to=20, held_out=10)

    def made() -> Curriculum:
        model = SequenceTagger("gru", 8, 6, 7, generator=seeded())
        four = levels("copy", first=2, step=2, count=3)
        strategy = combine(ER("ring", 30), Wider(wider))
        return Curriculum(model, four, strategy, rules=rules, optimiser=ADAM, log_every=1)

    one, again = made(), made()
    for _ in range(6):
        one.advance()
    assert one.model.get_submodule("recurrent").hidden_size == 12
    again.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == again.advance()
    assert torch.equal(parameters(one.model), parameters(again.model))
    assert one.result().parameters[0] < one.result().parameters[1]


@pytest.mark.parametrize("cell", ["lstm", "gru", "nru", "stat_ru"])
def test_a_network_grows_to_the_sizes_of_a_saved_one(cell: str) -> None:
    small = SequenceTagger(cell, 5, 7, 3, num_layers=2, generator=seeded())
    wide = grow(grow(small, 9), 13)
    found = as_saved(small, wide.state_dict())
    found.load_state_dict(wide.state_dict())
    x = torch.randn(2, 4, 5, generator=seeded())
    assert torch.equal(found(x), wide(x))
    assert as_saved(small, small.state_dict()) is small


def test_a_network_gets_the_answers_of_a_saved_one() -> None:
    small = MLP([5, 7, 3], generator=seeded())
    wide = more_answers(deepen(grow(small, 9)), 6).model
    found = as_saved(small, wide.state_dict())
    found.load_state_dict(wide.state_dict())
    x = torch.randn(2, 5, generator=seeded())
    assert torch.equal(found(x), wide(x))
    before = torch.get_rng_state()
    as_saved(small, wide.state_dict())
    assert torch.equal(torch.get_rng_state(), before)
