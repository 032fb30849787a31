"""Answers that are no classes, against formulas written out and losses of torch."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attractor import InputError
from attractor.continual import DER, EWC, GEM, MAS, STRATEGIES, Learner
from attractor.models import MLP
from attractor.tasks import Batch, Data, LabelTask, NumberTask
from attractor.tasks.streams import Stream, with_valid
from attractor.training.evaluate import evaluate


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stream(kind: Any, tasks: int = 3, outputs: int = 2, scale: float = 3.0) -> Stream:
    made, g = [], seeded(1)
    for place in range(tasks):
        x, w = torch.randn(120, 6, generator=g), torch.randn(6, outputs, generator=g)
        y = scale * x @ w + 5.0 if kind is NumberTask else ((x @ w) > 0).long()
        halves = Data(x[:80], y[:80]), Data(x[80:], y[80:])
        made.append(kind(f"part {place}", place, *halves, tuple(range(outputs))))
    return Stream("vectors", made)


def test_numbers_are_judged_by_squares_and_the_variance_explained() -> None:
    task = stream(NumberTask)[1]
    assert isinstance(task, NumberTask)
    model = nn.Linear(6, 2)
    x, y = task.test.x.numpy(), task.test.y.numpy()
    said = x @ model.weight.detach().numpy().T + model.bias.detach().numpy()
    found = evaluate(model, task, "test", 7)
    assert found["loss"] == pytest.approx(((said - y) ** 2).mean(), rel=1e-5)
    explained = 1 - ((said - y) ** 2).sum() / ((y - y.mean(0)) ** 2).sum()
    assert found["r2"] == pytest.approx(explained, rel=1e-5)
    mean = torch.from_numpy(np.broadcast_to(y.mean(0), y.shape).copy())
    assert task.told({"loss": float(((mean - task.test.y) ** 2).mean())})["r2"] == pytest.approx(
        0, abs=1e-6
    )


def test_labels_are_judged_one_by_one() -> None:
    task = stream(LabelTask, outputs=3)[0]
    model = nn.Linear(6, 3)
    batch = task.first("test", 40)
    said = model(batch.x)
    assert task.loss(model, batch).item() == pytest.approx(
        F.binary_cross_entropy_with_logits(said, batch.y).item()
    )
    found = evaluate(model, task, "test", 9)
    right = (said > 0).float() == batch.y
    assert found["accuracy"] == pytest.approx(float(right.float().mean()))
    assert found["exact"] == pytest.approx(float(right.all(1).float().mean()))
    assert found["exact"] < found["accuracy"]


@pytest.mark.parametrize("kind", [NumberTask, LabelTask])
def test_weights_say_how_much_each_sample_counts(kind: Any) -> None:
    task, model = stream(kind)[0], nn.Linear(6, 2)
    batch = task.samples(torch.arange(4))
    weight = torch.tensor([0.5, 0.0, 2.0, 1.0])
    each = [task.loss(model, batch[i : i + 1]).item() for i in range(4)]
    weighted = Batch(batch.x, batch.y, task=batch.task, weight=weight)
    assert task.loss(model, weighted).item() == pytest.approx(
        0.5 * each[0] + 2 * each[2] + each[3], rel=1e-5
    )


@pytest.mark.parametrize("kind", [NumberTask, LabelTask])
@pytest.mark.parametrize(
    "name", sorted(set(STRATEGIES) - {"icarl", "slda", "lwf", "er_ace", "hat", "progressive"})
)
def test_strategies_learn_what_is_no_class(name: str, kind: Any) -> None:
    tasks = stream(kind, tasks=2)
    learner = Learner(
        MLP([6, 8, 2], generator=seeded()),
        tasks,
        STRATEGIES[name](),
        optimiser={"name": "adam", "lr": 0.01},
        iterations=3,
    )
    before = learner.matrix[0].clone()
    rows = [row for _ in range(6) for row in learner.advance()]
    assert learner.done
    assert torch.isfinite(learner.matrix).all()
    assert not torch.equal(before, learner.matrix[2])
    told = [row for row in rows if row["split"] == "test"]
    assert all(("r2" if kind is NumberTask else "accuracy") in row for row in told)


@pytest.mark.slow
def test_replay_keeps_regression_better_than_nothing_does() -> None:
    def ends(strategy: Any) -> float:
        model = MLP([6, 16, 2], generator=seeded())
        optimiser = {"name": "adam", "lr": 0.02}
        learner = Learner(model, stream(NumberTask), strategy, optimiser=optimiser, iterations=150)
        while not learner.done:
            learner.advance()
        return learner.result().metrics["acc"]

    assert ends(GEM(80)) > ends(None) + 0.3


@pytest.mark.parametrize("strategy", [DER(50, replay=20), MAS(0.1)])
def test_old_outputs_count_whole_where_answers_are_vectors(strategy: Any) -> None:
    tasks = stream(NumberTask, tasks=2, outputs=1)
    learner = Learner(MLP([6, 4, 1], generator=seeded()), tasks, strategy, iterations=4)
    while not learner.done:
        learner.advance()
    assert torch.isfinite(learner.matrix).all()


@pytest.mark.parametrize(
    ("y", "classes", "words"),
    [
        (torch.zeros(4), (0,), r"answers of 1 numbers .* got \(4,\)"),
        (torch.zeros(4, 2), (0,), r"answers of 1 numbers .* got \(4, 2\)"),
        (torch.full((4, 1), torch.nan), (0,), "finite training answers"),
    ],
)
def test_answers_of_another_shape_are_refused(
    y: torch.Tensor, classes: tuple[int, ...], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        NumberTask("odd", 0, Data(torch.zeros(4, 3), y), Data(torch.zeros(4, 3), y), classes)


def test_labels_are_zero_or_one() -> None:
    data = Data(torch.zeros(2, 3), torch.tensor([[0, 2], [1, 0]]))
    with pytest.raises(InputError, match="0 or 1 for each label"):
        LabelTask("odd", 0, data, data, (0, 1))


def test_labels_cannot_be_drawn_for_numbers() -> None:
    with pytest.raises(InputError, match="'no classes': labels can be drawn from a softmax alone"):
        Learner(MLP([6, 2]), stream(NumberTask), EWC(sampled=True), iterations=1)


def test_a_share_for_validation_is_of_the_same_kind() -> None:
    held = with_valid(stream(NumberTask), 0.25, generator=seeded())
    assert [len(task) for task in held] == [60, 60, 60]
    assert "r2" in evaluate(nn.Linear(6, 2), held[0], "valid", 100)
