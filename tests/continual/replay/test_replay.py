"""Memories of samples keep what they promise, in the room that they have."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attractor import InputError
from attractor.continual.replay import Columns, Reservoir, Slots, Store, hard_storage, ring_buffer
from attractor.continual.replay.store import distinct


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(*numbers: float) -> Columns:
    x = torch.tensor(numbers, dtype=torch.float32)
    return x[:, None, None].expand(-1, 2, 3), x.long()


def numbers(some: Columns) -> list[int]:
    assert torch.equal(some[0][:, 0, 0].long(), some[1])  # columns stay together
    return some[1].tolist()


def test_hard_storage_keeps_the_first_samples() -> None:
    memory = hard_storage(3, tasks=2)
    memory.add(rows(1, 2), 0)
    memory.add(rows(3, 4), 0)
    memory.add(rows(5), 1)
    memory.add(rows(6), 0)
    assert numbers(memory.rows([0])) == [1, 2, 3]
    assert numbers(memory.rows([1])) == [5]
    assert numbers(memory.rows([0, 1])) == [1, 2, 3, 5]
    assert memory.sizes([0, 1]) == [3, 1]


def test_a_ring_keeps_the_newest_samples_of_each_task_in_equal_parts() -> None:
    memory = ring_buffer(7, tasks=2)
    assert memory.per_group == 3
    for number in range(8):
        memory.add(rows(number), 0)
    memory.add(rows(*range(10, 21)), 1)  # more at once than there is room for
    assert sorted(numbers(memory.rows([0]))) == [5, 6, 7]
    assert sorted(numbers(memory.rows([1]))) == [18, 19, 20]


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), max_size=8),
    st.integers(1, 4),
    st.booleans(),
)
def test_mixed_groups_are_kept_as_if_they_came_one_by_one(
    batches: list[list[int]], per_group: int, newest: bool
) -> None:
    at_once, singly = (Slots(per_group, 3, newest=newest) for _ in range(2))
    number = 0
    for groups in batches:
        batch = rows(*range(number, number + len(groups)))
        at_once.add(batch, torch.tensor(groups))
        for place, group in enumerate(groups):
            singly.add(tuple(column[place : place + 1] for column in batch), group)
        number += len(groups)
    assert at_once.seen == singly.seen
    for group in range(3):
        if at_once.seen[group]:
            assert numbers(at_once.rows([group])) == numbers(singly.rows([group]))


def test_draws_are_without_replacement_and_from_each_group() -> None:
    memory = hard_storage(20, tasks=3)
    for task in range(3):
        memory.add(rows(*range(100 * task, 100 * task + 20)), task)
    drawn = numbers(memory.draw(10, [0, 2], generator=seeded()))
    assert len(set(drawn)) == 20
    assert all(number < 20 for number in drawn[:10])
    assert all(200 <= number < 220 for number in drawn[10:])
    assert numbers(memory.draw(10, [0, 2], generator=seeded())) == drawn
    assert numbers(memory.draw(10, [0, 2], generator=seeded(1))) != drawn


def test_every_sample_is_drawn_equally_often() -> None:
    memory = hard_storage(20, tasks=2)
    memory.add(rows(*range(20)), 0)
    g = seeded()
    counts = torch.zeros(20)
    for _ in range(2000):
        counts += torch.bincount(memory.draw(5, [0], generator=g)[1], minlength=20)
    # a binomial of 2000 draws with chance 1/4
    assert (counts - 500).abs().max() < 5 * (2000 / 4 * 3 / 4) ** 0.5


def test_a_group_that_is_not_full_gives_what_it_has() -> None:
    memory = hard_storage(20, tasks=2)
    memory.add(rows(*range(20)), 0)
    memory.add(rows(100, 101), 1)
    drawn = numbers(memory.draw(5, [0, 1], generator=seeded()))
    assert sorted(drawn[5:]) == [100, 101]
    assert memory.drawn(5, [0, 1]) == [5, 2]
    assert len(drawn) == 7


def test_a_reservoir_is_a_fair_sample() -> None:
    counts = torch.zeros(40)
    for seed in range(400):
        memory = Reservoir(10, generator=seeded(seed))
        for start in range(0, 40, 5):
            memory.add(rows(*range(start, start + 5)), torch.zeros(5))
        held = numbers(memory.rows())
        assert len(set(held)) == 10
        counts += torch.bincount(torch.tensor(held), minlength=40)
    # each of the 40 is among the 10 with chance 1/4
    assert (counts - 100).abs().max() < 5 * (400 / 4 * 3 / 4) ** 0.5


def test_a_balanced_reservoir_shares_its_room_and_is_fair_in_each_class() -> None:
    counts = torch.zeros(62)
    for seed in range(200):
        memory = Reservoir(12, balanced=True, generator=seeded(seed))
        for start in range(0, 60, 6):  # classes 0 and 1, and class 2 late and rare
            memory.add(rows(*range(start, start + 6)), torch.tensor([0, 0, 0, 0, 1, 1]))
        memory.add(rows(60, 61), torch.tensor([2, 2]))
        held = torch.tensor(numbers(memory.rows()))
        assert {60, 61} <= set(held.tolist())
        one = int(((held < 60) & (held % 6 > 3)).sum())
        assert one == 5
        counts += torch.bincount(held, minlength=62)
    of_zero = counts[:60].reshape(10, 6)[:, :4].flatten()
    assert (of_zero - 200 * 5 / 40).abs().max() < 5 * (200 / 8 * 7 / 8) ** 0.5


def by_ranks(chances: Tensor, classes: Tensor, capacity: int) -> list[int]:
    """Who stays: sort each class, and leave out the last ranks, of these the smallest first."""
    rank = ((classes[:, None] == classes) & (chances > chances[:, None])).sum(1)
    order = sorted(range(len(chances)), key=lambda i: float(rank[i] - chances[i]))
    return sorted(order[:capacity])


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=8),
    st.integers(1, 12),
    st.booleans(),
)
def test_who_is_kept_is_balanced_and_the_largest(
    batches: list[list[int]], capacity: int, balanced: bool
) -> None:
    memory = Reservoir(capacity, balanced=balanced, generator=seeded(3))
    g, chances, shown = seeded(3), [], 0
    for classes in batches:
        chances.append(torch.rand(len(classes), generator=g, dtype=torch.float64))
        memory.add(rows(*range(shown, shown + len(classes))), torch.tensor(classes))
        shown += len(classes)
    if shown == 0:
        return
    labels = torch.tensor([c for classes in batches for c in classes])
    groups = labels if balanced else torch.zeros_like(labels)
    held = numbers(memory.rows())
    assert sorted(held) == by_ranks(torch.cat(chances), groups, capacity)
    state = memory.state_dict()
    assert torch.equal(state["numbers"], torch.cat(chances)[held])
    if balanced:
        assert torch.equal(state["labels"], labels[held])


def test_the_memory_takes_its_bytes_at_once_and_no_more() -> None:
    memory = hard_storage(5, tasks=4)
    assert memory.nbytes == 0
    memory.add(rows(1), 0)
    taken = memory.nbytes
    assert taken == 20 * (2 * 3 * 4 + 8)
    for task in range(4):
        memory.add(rows(*range(50)), task)
    assert memory.nbytes == taken


def test_what_is_kept_is_a_copy() -> None:
    memory = hard_storage(2, tasks=1)
    x = torch.ones(1, requires_grad=True)
    memory.add((x * 2,), 0)
    with torch.no_grad():
        x.fill_(9)
    (held,) = memory.rows([0])
    assert held.tolist() == [2]
    assert not held.requires_grad


def test_sequences_of_different_lengths_fit() -> None:
    memory = hard_storage(2, tasks=2)
    memory.add((torch.ones(2, 3, 1), torch.tensor([3, 2])), 0)
    memory.add((torch.ones(2, 5, 1), torch.tensor([5, 4])), 1)
    memory.add((torch.ones(2, 1, 1), torch.tensor([1, 1])), 1)
    x, lengths = memory.rows([0, 1])
    assert x.shape == (4, 5, 1)
    assert x[0].flatten().tolist() == [1, 1, 1, 0, 0]
    assert lengths.tolist() == [3, 2, 5, 4]


@pytest.mark.parametrize("kind", ["hard", "ring", "reservoir", "balanced"])
def test_a_memory_goes_on_bit_by_bit(kind: str) -> None:
    def made(seed: int) -> Slots | Reservoir:
        if kind in ("reservoir", "balanced"):
            return Reservoir(6, balanced=kind == "balanced", generator=seeded(seed))
        return hard_storage(3, tasks=2) if kind == "hard" else ring_buffer(6, tasks=2)

    def show(memory: Slots | Reservoir, start: int) -> list[int]:
        for number in range(start, start + 20):
            groups = torch.tensor([number % 2])
            memory.add(rows(number), groups)
        held = memory.rows([0, 1]) if isinstance(memory, Slots) else memory.rows()
        return numbers(held)

    one, other = made(0), made(1)
    show(one, 0)
    state: dict[str, Tensor] = one.state_dict()
    expected = show(one, 20)
    show(other, 50)
    other.load_state_dict(state)
    assert show(other, 20) == expected


def test_a_memory_of_another_size_is_refused() -> None:
    saved = hard_storage(3, tasks=2)
    saved.add(rows(1), 0)
    with pytest.raises(InputError, match="memory of 3 groups, but the state holds 2"):
        hard_storage(3, tasks=3).load_state_dict(saved.state_dict())
    with pytest.raises(InputError, match="memory of 8 samples, but the state holds 6"):
        hard_storage(4, tasks=2).load_state_dict(saved.state_dict())
    full = Reservoir(9, generator=seeded())
    full.add(rows(*range(9)), torch.zeros(9))
    with pytest.raises(InputError, match="memory of 5 samples, but the state holds 9"):
        Reservoir(5, generator=seeded()).load_state_dict(full.state_dict())


def test_bad_memories_are_refused() -> None:
    with pytest.raises(InputError, match="each of the 10 tasks, but got 9. Try 100"):
        ring_buffer(9, tasks=10)
    with pytest.raises(InputError, match="at least 1 sample for each"):
        hard_storage(0, tasks=10)
    with pytest.raises(InputError, match="at least 1 sample, but got 0"):
        Store(0)
    memory = hard_storage(3, tasks=2)
    memory.add((torch.ones(1, 4, 2),), 0)
    with pytest.raises(InputError, match=r"shape \(4, 2\).*got \(4, 3\)"):
        memory.add((torch.ones(1, 4, 3),), 0)
    with pytest.raises(InputError, match="rows of 1 columns.*got 2"):
        memory.add(rows(1), 0)


def test_few_of_many_are_drawn_without_replacement_and_equally_often() -> None:
    g, counts = seeded(), torch.zeros(600)
    for _ in range(3000):
        drawn = distinct(10, 600, g)
        assert len(set(drawn.tolist())) == 10
        counts += torch.bincount(drawn, minlength=600)
    assert (counts - 50).abs().max() < 5 * (3000 / 60 * 59 / 60) ** 0.5
    assert sorted(distinct(9, 4, g).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("newest", [False, True])
def test_other_room_keeps_the_same_samples_in_their_order(newest: bool) -> None:
    memory = Slots(4, 2, newest=newest)
    memory.add(rows(*range(6)), 0)
    memory.add(rows(10, 11), 1)
    less, more = memory.resized(3, 3), memory.resized(7, 2)
    kept = [2, 3, 4, 5] if newest else [0, 1, 2, 3]
    assert sorted(numbers(less.rows([0]))) == (kept[1:] if newest else kept[:3])
    assert numbers(more.rows([0, 1])) == [*kept, 10, 11]
    assert less.sizes([0, 1, 2]) == [3, 2, 0]
    less.add(rows(7), 0)  # in a ring, the oldest goes
    assert sorted(numbers(less.rows([0]))) == ([4, 5, 7] if newest else [0, 1, 2])
