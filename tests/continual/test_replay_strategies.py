"""ER, A-GEM and joint training against their equations."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F

from attractor import InputError
from attractor.continual import AGEM, ER, Joint, Learner
from attractor.continual.flat import Flat
from attractor.continual.replay.episodes import MemoryKind
from attractor.continual.strategies.agem import project
from attractor.tasks import Batch, cross_entropy
from attractor.tasks.streams import own_heads
from continual.helpers import batch, digits, mlp, parameters, seeded


def filled(strategy: ER) -> ER:
    """After two tasks of which it saw 30 samples each."""
    stream = digits()
    strategy.start(mlp(), stream, generator=seeded())
    for task in stream[:2]:
        for seed in range(3):
            strategy.observe(batch(task, 10, seed))
    return strategy


def one_each(samples: Batch) -> torch.Tensor:
    """A loss of one for each sample, which heeds weights."""
    return torch.ones(()) if samples.weight is None else samples.weight.sum()


def seen(strategy: ER, new: Batch) -> Batch:
    """What the strategy shows to the loss."""
    shown: list[Batch] = []

    def note(_: object, samples: Batch) -> torch.Tensor:
        shown.append(samples)
        return one_each(samples)

    strategy.loss(mlp(), new, note)
    strategy.observe(new, note)
    return shown[-1]


def test_er_replays_so_many_of_each_earlier_task_with_the_batch() -> None:
    strategy = filled(ER(size=25, replay=4))
    new = batch(digits()[2], 10)
    shown = seen(strategy, new)
    assert shown.places.tolist() == [2] * 10 + [0] * 4 + [1] * 4
    assert torch.equal(shown.x[:10], new.x)
    first = torch.cat([batch(digits()[0], 10, seed).x for seed in range(3)])[:25]
    for row in shown.x[10:14]:
        assert (row == first).all(1).any()  # among the first 25 of task 0


def test_er_averages_over_the_whole_batch() -> None:
    strategy = filled(ER(size=25, replay=4))
    model, new = mlp(), batch(digits()[2], 10)
    state = strategy.state_dict()
    shown = seen(strategy, new)
    strategy.load_state_dict(state)
    loss = strategy.loss(model, new)
    each = F.cross_entropy(model(shown.x), shown.y, reduction="none")
    torch.testing.assert_close(loss, each.sum() / 18)  # equation 6.3


def test_balanced_er_averages_each_task_on_its_own() -> None:
    strategy = filled(ER(size=25, replay=4, balanced=True))
    model, new = mlp(), batch(digits()[2], 10)
    state = strategy.state_dict()
    shown = seen(strategy, new)
    strategy.load_state_dict(state)
    loss = strategy.loss(model, new)
    each = F.cross_entropy(model(shown.x), shown.y, reduction="none")
    expected = each[:10].mean() + (each[10:14].mean() + each[14:].mean()) / 2
    torch.testing.assert_close(loss, expected)


def test_er_can_replay_so_many_in_all() -> None:
    strategy = filled(ER(size=25, replay=12, each=False, balanced=True))
    counts = torch.zeros(3)
    for seed in range(30):
        shown = seen(strategy, batch(digits()[2], 10, seed))
        assert len(shown) == 22
        assert shown.weight is not None
        torch.testing.assert_close(shown.weight[10:], torch.full((12,), 1 / 12).double())
        counts += torch.bincount(shown.places[10:], minlength=3)
    assert counts[2] == 0
    assert abs(float(counts[0] - counts[1])) < 80  # of 360, each equally likely


@pytest.mark.parametrize("memory", ["reservoir", "classes"])
def test_er_from_a_reservoir_replays_so_many_in_all(memory: str) -> None:
    strategy = filled(ER(memory, 40, replay=12))  # type: ignore[arg-type]
    shown = seen(strategy, batch(digits()[2], 10))
    assert len(shown) == 22
    assert set(shown.places[10:].tolist()) <= {0, 1}


def test_er_does_not_slow_down_with_the_memory() -> None:
    strategy = filled(ER("ring", 30, replay=4))
    memory = strategy.episodes.memory
    taken = memory.nbytes
    for seed in range(20):
        strategy.observe(batch(digits()[2], 10, seed))
    assert memory.nbytes == taken


@pytest.mark.parametrize("memory", ["ring", "reservoir", "classes"])
def test_a_memory_smaller_than_the_stream_is_refused_before_anything_is_lost(
    memory: MemoryKind,
) -> None:
    model = mlp()
    before = parameters(model)
    with pytest.raises(InputError, match="each of the 3 tasks, but got 2"):
        Learner(model, digits(), ER(memory, 2))
    assert torch.equal(parameters(model), before)


def test_agem_has_places_for_the_classes_of_each_task_only() -> None:
    stream = own_heads(digits())
    strategy = AGEM(2)
    strategy.start(mlp(), stream, generator=seeded())
    assert stream.outputs == 30
    assert strategy.memory.store.capacity == 3 * 10 * 2


def test_unknown_memories_are_refused() -> None:
    with pytest.raises(InputError, match="'reservoir'"):
        Learner(mlp(), digits(), ER("reservoire", 10))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="replay to be at least 1"):
        ER(replay=0)


def test_agem_projects_onto_the_half_space() -> None:
    g = seeded()
    for _ in range(20):
        gradient, reference = torch.randn(2, 30, generator=g)
        parts = [gradient[:12].clone(), gradient[12:].clone()]
        project(parts, [reference[:12], reference[12:]])
        new = torch.cat([part.flatten() for part in parts])
        if gradient @ reference >= 0:
            assert torch.equal(new, gradient)
        else:
            assert abs(float(new @ reference)) < 1e-4
            # the nearest such point: the change is along the reference
            change = new - gradient
            cosine = F.cosine_similarity(change, reference, dim=0)
            assert float(cosine) == pytest.approx(1, abs=1e-5)


def test_agem_has_a_zero_reference_for_nothing() -> None:
    gradient = torch.tensor([1.0, -2.0])
    project([gradient], [torch.zeros(2)])
    assert gradient.tolist() == [1, -2]


def test_agem_keeps_the_newest_of_each_class_and_leaves_the_present_task_out() -> None:
    strategy, stream = AGEM(per_class=2, reference_batch=500), digits(2)
    strategy.start(mlp(), stream, generator=seeded())
    last: dict[int, list[torch.Tensor]] = {}
    for seed in range(6):
        some = batch(stream[0], 10, seed)
        strategy.observe(some)
        for x, y in zip(some.x, some.y.tolist(), strict=True):
            last.setdefault(y, []).append(x)
    strategy.end_task(mlp(), stream[0])
    strategy.observe(batch(stream[1], 10))
    drawn = strategy._draw()
    assert (drawn.places == 0).all()
    assert Counter(drawn.y.tolist()) == {y: min(2, len(rows)) for y, rows in last.items()}
    assert len(drawn.x.unique(dim=0)) == len(drawn)
    for x, y in zip(drawn.x, drawn.y.tolist(), strict=True):
        assert any(torch.equal(x, row) for row in last[y][-2:])


def test_agem_gives_the_projected_gradient_and_the_loss_on_the_batch() -> None:
    strategy, stream, model = AGEM(per_class=5, reference_batch=30), digits(2), mlp()
    strategy.start(model, stream, generator=seeded())
    for seed in range(6):
        strategy.observe(batch(stream[0], 10, seed))
    strategy.end_task(model, stream[0])
    projected = 0
    for seed in range(12):
        new = batch(stream[1], 10, seed)
        state = strategy.state_dict()
        model.zero_grad()
        loss = strategy.loss(model, new)
        loss.backward()  # type: ignore[no-untyped-call]
        strategy.observe(new)
        strategy.after_backward(model)
        found = Flat(model).gradient()
        strategy.load_state_dict(state)
        old = strategy._draw()
        gradients = [Flat(model).gradient_of(cross_entropy(model, some)) for some in (new, old)]
        g, reference = gradients
        torch.testing.assert_close(loss.detach(), cross_entropy(model, new).detach())
        if g @ reference < 0:
            projected += 1
            g = g - (g @ reference) / (reference @ reference) * reference
        torch.testing.assert_close(found, g, atol=1e-6, rtol=1e-4)
    assert 0 < projected < 12


def test_joint_learns_from_all_data_of_all_tasks_so_far() -> None:
    strategy, stream = Joint(), digits()
    strategy.start(mlp(), stream, generator=seeded())
    shown: list[Batch] = []

    def note(_: object, samples: Batch) -> torch.Tensor:
        shown.append(samples)
        return one_each(samples)

    rows = set()
    for seed in range(40):
        strategy.loss(mlp(), batch(stream[2], 10, seed), note)
        strategy.observe(batch(stream[2], 10, seed), note)
        assert shown[-1].places.tolist() == [2] * 10 + [0] * 10 + [1] * 10
        rows |= {x.numpy().tobytes() for x in shown[-1].x[10:20]}
    assert len(rows) > 300  # no memory limits it


@pytest.mark.parametrize("balanced", [False, True])
def test_joint_averages_each_task_on_its_own_or_all_together(balanced: bool) -> None:
    strategy, stream, model = Joint(balanced=balanced), digits(), mlp()
    strategy.start(model, stream, generator=seeded())
    shown: list[Batch] = []

    def note(model: torch.nn.Module, samples: Batch) -> torch.Tensor:
        shown.append(samples)
        return cross_entropy(model, samples)

    loss = strategy.loss(model, batch(stream[2]), note)
    plain = Batch(shown[-1].x, shown[-1].y, task=shown[-1].task)
    new, *old = (cross_entropy(model, plain[10 * i : 10 * i + 10]) for i in range(3))
    expected = new + sum(old) / 2 if balanced else (new + sum(old)) / 3
    torch.testing.assert_close(loss, expected)


def test_agem_goes_on_in_a_task_without_the_memories_of_it() -> None:
    strategy, resumed, stream = AGEM(per_class=2, reference_batch=500), AGEM(per_class=2), digits(2)
    for one in (strategy, resumed):
        one.start(mlp(), stream, generator=seeded())
    strategy.observe(batch(stream[0], 10))
    strategy.end_task(mlp(), stream[0])
    assert strategy.tasks == 1
    strategy.observe(batch(stream[1], 10))
    resumed.load_state_dict(strategy.state_dict())
    assert set(resumed._draw().places.tolist()) == {0}
    strategy.end_task(mlp(), stream[1])
    assert set(strategy._draw().places.tolist()) == {0, 1}
