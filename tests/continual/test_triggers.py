"""When to grow: signals by hand, and networks that grow before they fail."""

from typing import Any

import numpy as np
import pytest
import torch

from attractor import InputError
from attractor.continual import ER, GEM, Learner
from attractor.continual.lifelong import (
    TRIGGERS,
    Conflict,
    Curriculum,
    Level,
    Levels,
    Plateau,
    Rank,
    Rules,
)
from attractor.continual.lifelong.triggers import effective_rank, states
from attractor.models import SequenceTagger
from attractor.state import pack, unpack
from attractor.tasks import CopyMemory
from continual.helpers import digits, mlp, parameters

SMALL = Rules(steps=20, window=5, after=8, grow_to=12, held_out=5)


def lags(*lag: int) -> Levels:
    return Levels("lags", [Level(CopyMemory(n), f"lag {n}", i) for i, n in enumerate(lag)])


def learner(trigger: Any, rules: Rules = SMALL, strategy: Any = None, **more: Any) -> Curriculum:
    model = SequenceTagger("lstm", 10, 6, 9, generator=torch.Generator().manual_seed(0))
    return Curriculum(model, lags(1, 2), strategy, rules=rules, trigger=trigger, **more)


def grows_at(one: Curriculum) -> list[int]:
    found = []
    while not one.done:
        before = len(one.growths)
        one.advance()
        if len(one.growths) > before:
            found.append(one.step)
    return found


def test_a_plateau_is_a_second_half_that_is_hardly_below_the_first() -> None:
    trigger = Plateau(window=4, threshold=0.1)
    falls, stays = [4.0, 3.0, 3.2, 3.0], [4.0, 3.0, 3.2, 3.2]  # means 3.5 to 3.1, and to 3.2
    one = learner(None)
    batch = one.levels[0].samples(torch.arange(2))
    assert [trigger.look(one, batch, loss) for loss in falls] == [False] * 4
    assert [trigger.look(one, batch, loss) for loss in stays] == [False] * 3 + [True]


def test_at_the_threshold_itself_a_network_is_not_full() -> None:
    trigger, one = Plateau(window=2, threshold=0.5), learner(None)
    batch = one.levels[0].samples(torch.arange(2))
    assert [trigger.look(one, batch, loss) for loss in (4.0, 2.0)] == [False, False]
    rank = Rank(window=2, threshold=0.75)
    rank.values = [0.0, 0.75]
    assert not rank.full()
    rank.values = [0.0, 0.7501]
    assert rank.full()


def test_states_that_never_change_have_one_direction() -> None:
    assert effective_rank(torch.ones(6, 4)) == 0.25


def test_conflict_is_the_mean_share_of_levels_that_are_hurt() -> None:
    trigger, one = Conflict(window=2, threshold=0.5), learner(None, strategy=GEM(10))
    batch = one.levels[0].samples(torch.arange(2))
    found = []
    for share in (0.5, 0.5, 1.0, 0.25):
        one.strategy.conflict = share  # type: ignore[attr-defined]
        found.append(trigger.look(one, batch, 0.0))
    assert found == [False, False, False, True]


def test_gem_tells_the_share_of_tasks_that_it_protects() -> None:
    strategy = GEM(10, memory="ring")
    one = learner(None, Rules(steps=10, window=5, threshold=0.0, held_out=5), strategy)
    for _ in range(10):
        one.advance()
        assert strategy.conflict == 0.0
    shares = set()
    while not one.done:
        one.advance()
        shares.add(strategy.conflict)
    assert shares <= {0.0, 1.0}  # of one earlier level
    assert strategy.conflict in shares


def test_effective_rank_against_numpy() -> None:
    h = torch.randn(30, 7, generator=torch.Generator().manual_seed(0)) * torch.arange(1.0, 8)
    centred = h.numpy() - h.numpy().mean(0)
    s = np.linalg.svd(centred, compute_uv=False)
    p = s / s.sum()
    assert effective_rank(h) == pytest.approx(np.exp(-(p * np.log(p)).sum()) / 7, rel=1e-5)


def test_states_are_those_of_all_steps() -> None:
    one = learner(None)
    batch = one.levels[0].samples(torch.arange(3))
    h = states(one.model, one.levels[0], batch)
    direct, _ = one.model.recurrent(batch.x)  # type: ignore[operator]
    assert torch.allclose(h, direct.flatten(0, 1))
    with pytest.raises(InputError, match="recurrent network to measure the rank"):
        states(torch.nn.Linear(2, 2), one.levels[0], batch)


@pytest.mark.parametrize(
    ("trigger", "at"),
    [
        (Plateau(window=6, threshold=1.0), [6]),  # any loss counts as a plateau
        (Plateau(window=6, threshold=0.0), None),
        (Rank(window=4, threshold=0.0), [4]),
        (Rank(window=4, threshold=1.0), [20]),  # never: it grows after the failure
        (None, [20]),
    ],
)
def test_it_grows_when_the_signal_says_so(trigger: Any, at: list[int] | None) -> None:
    found = grows_at(learner(trigger, Rules(20, 5, 1.0, grow_to=12, after=8, held_out=5)))
    assert len(found) == 1
    assert at is None or found == at


def test_a_level_that_is_passed_does_not_make_it_grow() -> None:
    trigger = Plateau(window=6, threshold=1.0)
    assert grows_at(learner(trigger, Rules(20, 5, 0.0, grow_to=12, after=8, held_out=5))) == []


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_a_learner_with_a_trigger_goes_on_bit_by_bit(name: str) -> None:
    def made() -> Curriculum:
        rules = Rules(20, 5, 0.99, grow_to=12, after=14, held_out=5)
        trigger = TRIGGERS[name](window=7, threshold=0.3)
        return learner(trigger, rules, GEM(10, memory="ring", every=3))

    one, other = made(), made()
    for _ in range(11):
        one.advance()
    other.load_state_dict(unpack(*pack(one.state_dict())))
    while not one.done:
        assert one.advance() == other.advance()
    assert one.growths == other.growths


def test_memories_are_asked_every_so_often_alone() -> None:
    def counted(every: int) -> tuple[list[int], torch.Tensor]:
        strategy = GEM(20, every=every)
        one = Learner(mlp(), digits(2), strategy, iterations=12)
        calls: list[int] = []
        inner = strategy.gradients.of_groups

        def of_groups(*arguments: Any) -> Any:
            calls.append(one.update)
            return inner(*arguments)

        strategy.gradients.of_groups = of_groups  # type: ignore[method-assign, assignment]
        while not one.done:
            one.advance()
        return calls, parameters(one.model)

    (always, exact), (seldom, near) = counted(1), counted(5)
    assert always == list(range(12))
    assert seldom == [0, 5, 10]
    assert not torch.equal(exact, near)  # but between, old gradients are held against new ones
    plain = Learner(mlp(), digits(2), iterations=12)
    while not plain.done:
        plain.advance()
    assert not torch.equal(near, parameters(plain.model))


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(InputError, match="size to grow to beside the trigger"):
        learner(Plateau(), Rules())
    one = learner(Conflict(window=2), strategy=ER("ring", 20))
    with pytest.raises(InputError, match="strategy that projects gradients"):
        one.advance()
