"""The screened projection against the whole one, and what it costs."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attractor import InputError
from attractor.continual import GEM
from attractor.continual.gradients import GroupGradients
from attractor.continual.identity import identity
from attractor.continual.lifelong import Curriculum, Rules, levels
from attractor.continual.rows import GroupMatrix
from attractor.continual.screening import Screen
from attractor.continual.strategies.gem import project
from attractor.models import MLP, SequenceTagger
from attractor.tasks import Batch, cross_entropy


def groups(sizes: list[int]) -> Batch:
    g = torch.Generator().manual_seed(2)
    count = sum(sizes)
    x = torch.randn(count, 6, dtype=torch.float64, generator=g)
    y = torch.randint(3, (count,), generator=g)
    place = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return Batch(x, y, task=place)


def network(dropout: float = 0.0) -> nn.Module:
    made = MLP([6, 7, 3], generator=torch.Generator().manual_seed(0)).double()
    return nn.Sequential(made, nn.Dropout(dropout)) if dropout else made


def unweighted(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(model(batch.x), batch.y)


@pytest.mark.parametrize("base", [cross_entropy, unweighted])
@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_overlaps_are_inner_products_with_gradients(
    base: Callable[[nn.Module, Batch], Tensor], scale: float
) -> None:
    sizes, model = [4, 1, 7], network()
    batch = groups(sizes)
    before = [p.clone() for p in model.parameters()]
    screen = Screen(model)
    screen.look(batch, sizes, base)
    G = GroupGradients(model).of_groups(batch, sizes, cross_entropy)
    count = sum(p.numel() for p in model.parameters())
    d = scale * torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(screen.overlaps(d), G.dot(d), rtol=5e-3, atol=1e-3 * scale)
    assert not screen.overlaps(torch.zeros(count, dtype=torch.float64)).any()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_dropout_does_not_make_differences_and_the_mode_stays() -> None:
    model = network(dropout=0.5).train()
    screen = Screen(model)
    screen.look(groups([5, 5]), [5, 5], cross_entropy)
    d = torch.ones(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    state = torch.get_rng_state()
    assert torch.equal(screen.overlaps(d), screen.overlaps(d))
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training


def learner(strategy: GEM, steps: int = 12) -> Curriculum:
    """Four levels of copying, each of them passed."""
    stream = levels("copy", first=1, step=1, count=4, bits=3)
    g = torch.Generator().manual_seed(0)
    model = SequenceTagger("lstm", stream[0].input_size, 9, 3, generator=g)
    rules = Rules(steps=steps, window=2, threshold=0.0, after=4, held_out=10, batch_size=4)
    return Curriculum(model, stream, strategy, rules=rules, optimiser={"name": "sgd", "lr": 0.5})


@pytest.mark.parametrize("margin", [0.0, 0.5, 2.0])
def test_the_screened_projection_is_the_whole_one(margin: float) -> None:
    plain = GEM(16, memory="ring", margin=margin)
    quick = GEM(16, memory="ring", margin=margin, screened=True)
    whole, screened = learner(plain), learner(quick)
    hurt, alone = [], 0
    while not whole.done:
        for one, other in zip(whole.model.parameters(), screened.model.parameters(), strict=True):
            other.data.copy_(one.data)  # so that each update is compared by itself
        whole.advance()
        screened.advance()
        assert plain.conflict == pytest.approx(quick.conflict, abs=0.34)
        hurt.append(plain.conflict)
        pairs = list(zip(whole.model.parameters(), screened.model.parameters(), strict=True))
        change = torch.cat([(a - b).flatten() for a, b in pairs]).norm()
        alone += bool(change > 2e-2 * 0.5 * plain.gradients.flat.gradient().norm())
    assert sum(hurt) > 0
    assert any(0 < one < 1 for one in hurt)
    assert alone <= 1  # where an overlap is zero but for its rounding, either answer is right


def test_only_tasks_that_bind_are_asked_for_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = GroupGradients.of_groups

    def counted(self: GroupGradients, batch: Batch, sizes: list[int], base: object) -> object:
        asked.append(len(sizes))
        return plain(self, batch, sizes, base)  # type: ignore[arg-type]

    monkeypatch.setattr(GroupGradients, "of_groups", counted)
    whole, screened = (
        learner(GEM(16, memory="ring")),
        learner(GEM(16, memory="ring", screened=True)),
    )
    totals = []
    for one in (whole, screened):
        asked.clear()
        while not one.done:
            one.advance()
        totals.append(sum(asked))
    assert totals[1] < 0.7 * totals[0]


def test_screening_goes_with_gradients_of_every_update() -> None:
    with pytest.raises(InputError, match="but got every=3 too"):
        GEM(every=3, screened=True)
    with pytest.raises(InputError, match="screened"):
        GEM(screened=1)  # type: ignore[arg-type]


def test_learners_from_before_there_was_screening_go_on() -> None:
    old = learner(GEM(16, memory="ring", margin=0.25))
    for _ in range(5):
        old.advance()
    state = old.state_dict()
    assert identity(old.strategy) == {
        "name": "gem",
        "size": 16,
        "margin": 0.25,
        "memory": "ring",
        "every": 1,
    }
    learner(GEM(16, memory="ring", margin=0.25)).load_state_dict(state)
    with pytest.raises(InputError, match="screened=True"):
        learner(GEM(16, memory="ring", margin=0.25, screened=True)).load_state_dict(state)


def linear(model: nn.Module, batch: Batch) -> Tensor:
    """A loss whose gradient is the mean of the samples, wherever the parameters are."""
    each: Tensor = model(batch.x)[:, 0]
    return each.mean() if batch.weight is None else each @ batch.weight.to(each)


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_what_binds_later_is_solved_for_with_all_that_bind(margin: float) -> None:
    g = torch.Generator().manual_seed(1)
    later = apart = 0
    for _ in range(60):
        G = torch.randn(3, 4, dtype=torch.float64, generator=g)
        model = nn.Linear(4, 1, bias=False).double()
        strategy = GEM(1, margin=margin, screened=True)
        new = torch.randn(4, dtype=torch.float64, generator=g)
        strategy.gradients, strategy._screen = GroupGradients(model), Screen(model)
        strategy._base = linear
        old = Batch(G, torch.zeros(3, dtype=torch.long), task=torch.arange(3))
        strategy._screen.look(old, [1, 1, 1], linear)
        strategy.gradients.flat.set_gradient(new.clone())
        found = strategy._binding(model, old, [1, 1, 1])
        rows = GroupMatrix([G])
        hurt = rows.dot(new) < 0
        expected = project(new, rows, margin) if bool(hurt.any()) else new
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        start = new + margin * G.sum(0)
        first = rows.dot(start) < 0
        if bool(hurt.any()) and bool(first.any()):
            once = project(start, GroupMatrix([G[first]]))
            later += bool(((rows.dot(once) < -1e-6) & ~first).any())
            apart += float((project(once, rows) - expected).norm()) > 1e-2
    assert later >= 3
    assert apart >= 1
