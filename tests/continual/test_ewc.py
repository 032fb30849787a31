"""EWC against its penalty, differentiated by autograd."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor import InputError
from attractor.continual import EWC, MAS, Learner
from attractor.continual.fisher import Anchor, relabelled, summed
from attractor.continual.flat import Flat
from attractor.models import MLP, SequenceTagger
from attractor.tasks import IGNORE, ArrayTask, Data
from attractor.tasks.streams import Stream
from continual.helpers import batch, digits, mlp, seeded


def started(strategy: EWC, model: nn.Module) -> EWC:
    strategy.start(model, digits(), generator=seeded())
    return strategy


def test_the_fisher_diagonal_is_that_of_single_samples() -> None:
    model, task = mlp(), digits()[0]
    found = started(EWC(samples=40), model).fisher(task)
    rows = torch.randperm(len(task.train.y), generator=seeded())[:40]
    total = torch.zeros_like(found)
    for row in rows:
        model.zero_grad()
        some = task.samples(row[None])
        F.cross_entropy(model(some.x), some.y).backward()  # type: ignore[no-untyped-call]
        total += Flat(model).gradient() ** 2
    torch.testing.assert_close(found, total / 40)


def test_sampled_labels_give_the_expectation_under_the_model() -> None:
    model, task = mlp(), digits().arrays()[0]
    strategy = started(EWC(samples=None, sampled=True), model)
    found = torch.stack([strategy.fisher(task) for _ in range(8)]).mean(0)
    total = torch.zeros_like(found)
    x = task.test_samples.x[:60]
    chances = model(x).softmax(1).detach()
    for row in range(60):
        for label in range(10):
            model.zero_grad()
            loss = F.cross_entropy(model(x[row : row + 1]), torch.tensor([label]))
            loss.backward()  # type: ignore[no-untyped-call]
            total += chances[row, label] * Flat(model).gradient() ** 2
    # other samples of the same task: the same to a few percent in total
    assert float(found.sum()) == pytest.approx(float(total.sum() / 60), rel=0.1)


def test_sampled_labels_leave_out_what_is_not_asked() -> None:
    x, y = torch.randn(10, 6, 2, generator=seeded()), torch.full((10, 6), IGNORE)
    y[:, -1] = 1
    data = Data(x, y, torch.full((10,), 6))
    stream = Stream("tags", [ArrayTask("tags", 0, data, data, (0, 1, 2))])
    model = SequenceTagger("gru", 2, 5, 3, generator=seeded())
    new = relabelled(model, stream[0].samples(torch.arange(10)), seeded())
    assert torch.equal(new.y == IGNORE, y == IGNORE)


def test_the_fisher_leaves_the_mode_of_the_model() -> None:
    model = mlp().eval()
    started(EWC(samples=20), model).fisher(digits()[0])
    assert not model.training


def penalty(theta: Tensor, anchors: list[Anchor], strength: float) -> Tensor:
    """Equation 3 as it is printed."""
    terms = [(fisher * (theta - value) ** 2).sum() for fisher, value in anchors]
    return strength / 2 * torch.stack(terms).sum()


@pytest.mark.parametrize("merge", [True, False])
def test_the_gradient_is_that_of_the_penalty(merge: bool) -> None:
    model = mlp()
    g = seeded(5)
    size = sum(p.numel() for p in model.parameters())
    anchors = [
        Anchor(torch.rand(size, generator=g), torch.randn(size, generator=g)) for _ in range(3)
    ]
    strategy = started(EWC(7.0), model)
    strategy.anchors = [summed(anchors)] if merge else anchors
    model(batch(digits()[0]).x).sum().backward()
    plain = Flat(model).gradient()
    strategy.after_backward(model)
    theta = Flat(model).values().requires_grad_()
    penalty(theta, anchors, 7.0).backward()  # type: ignore[no-untyped-call]
    assert theta.grad is not None
    torch.testing.assert_close(Flat(model).gradient(), plain + theta.grad, rtol=1e-4, atol=1e-4)


def test_merged_or_not_makes_no_difference_to_learning() -> None:
    ends = []
    for merge in (True, False):
        model = mlp()
        learner = Learner(model, digits(), EWC(3.0, samples=50, merge=merge), iterations=30)
        while not learner.done:
            learner.advance()
        ends.append(Flat(model).values())
        assert len(learner.strategy.anchors) == (1 if merge else 3)  # type: ignore[attr-defined]
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-5)


def test_old_penalties_decay() -> None:
    model, stream = mlp(), digits()
    strategy = started(EWC(samples=20, decay=0.5, merge=False), model)
    for task in stream:
        strategy.end_task(model, task)
    first = strategy.anchors[0].fisher
    again = started(EWC(samples=20, merge=False), model)
    again.end_task(model, stream[0])
    torch.testing.assert_close(first, 0.25 * again.anchors[0].fisher)


def test_a_stronger_penalty_moves_less() -> None:
    moves = []
    for strength in (0.0, 1.0, 10.0):
        model = mlp()
        learner = Learner(model, digits(2), EWC(strength, samples=200), iterations=60)
        while learner.task == 0:
            learner.advance()
        before = Flat(model).values()
        while not learner.done:
            learner.advance()
        moves.append(float((Flat(model).values() - before).norm()))
    assert moves[0] > moves[1] > moves[2]


def test_the_penalty_can_be_asked_for() -> None:
    model = mlp()
    strategy = started(EWC(2.0), model)
    assert float(strategy.penalty()) == 0
    theta = Flat(model).values()
    strategy.anchors = [Anchor(torch.ones_like(theta), theta - 0.5)]
    assert float(strategy.penalty()) == pytest.approx(0.25 * len(theta))
    other = MAS(0.3)  # which has no half of one
    other.start(model, digits(), generator=seeded())
    assert float(other.penalty()) == 0
    other.anchor = Anchor(torch.ones_like(theta), theta - 0.5)
    assert float(other.penalty()) == pytest.approx(0.3 * 0.25 * len(theta))


def test_a_state_of_another_model_is_refused() -> None:
    small, large = mlp(), mlp(16, 16)
    saved = started(EWC(samples=10), small)
    saved.end_task(small, digits()[0])
    with pytest.raises(InputError, match="Fisher diagonal of 1482 parameters.*holds 682"):
        started(EWC(samples=10), large).load_state_dict(saved.state_dict())


@pytest.mark.parametrize("sampled", [False, True])
def test_the_fisher_is_that_of_the_model_in_use_without_dropout(sampled: bool) -> None:
    found = []
    for dropout in (0.0, 0.6):
        model = MLP([64, 8, 8, 10], dropout=dropout, init="xavier", generator=seeded())
        assert model.training
        found.append(started(EWC(samples=40, sampled=sampled), model).fisher(digits()[0]))
        assert model.training
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"strength": -1}, "expected strength to be at least 0, but got -1. Try strength=0"),
        ({"decay": 2}, "expected decay to be from 0 to 1, but got 2"),
        ({"decay": -0.1}, "expected decay to be from 0 to 1, but got -0.1"),
        ({"strength": float("nan")}, "expected strength to be at least 0, but got nan"),
        ({"samples": 0}, "expected samples to be at least 1, but got 0"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        EWC(**options)
