"""What strategies do that hold a network against its former self, beyond their references."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attractor.continual import DER, ER, ERACE, GDumb, ICaRL, Learner, LwF, Naive, combine, train
from attractor.continual.nearest import NearestMean, herded
from attractor.continual.readouts import features, readout
from attractor.continual.strategies.der import distance
from attractor.continual.strategies.lwf import distillation
from attractor.continual.strategies.mas import loudness
from attractor.models import MLP
from attractor.tasks import IGNORE, Batch
from attractor.tasks.streams import Stream, split_images


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def digits(size: int = 5) -> Stream:
    return split_images(dataset="digits", size=size)


def mlp() -> MLP:
    return MLP([64, 24, 10], generator=seeded())


def test_distillation_counts_old_classes_and_asked_steps_alone() -> None:
    h, z = torch.randn(2, 3, 4, generator=seeded()), torch.randn(2, 3, 4, generator=seeded(1))
    y = torch.tensor([[0, IGNORE, 1], [IGNORE, IGNORE, 2]])
    T, found = 3.0, distillation(h, z, [1, 3], 3.0, y)
    expected = 0.0
    for i, t in ((0, 0), (0, 2), (1, 2)):
        p, q = (F.softmax(a[i, t, [1, 3]] / T, 0) for a in (z, h))
        expected += T**2 * float((p * (p / q).log()).sum()) / 3
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_distance_heeds_heads_that_are_closed_steps_that_are_not_asked_and_growth() -> None:
    said = torch.tensor([[[1.0, -torch.inf]], [[5.0, 5.0]]])
    output = torch.tensor([[[3.0, -torch.inf, 7.0]], [[0.0, 0.0, 7.0]]])
    y = torch.tensor([[0], [IGNORE]])
    assert float(distance(output, said, y)) == 4.0
    assert float(distance(output, said, torch.full_like(y, IGNORE))) == 0.0


def test_icarl_has_targets_of_labels_for_new_classes_and_of_the_old_network_for_old_ones() -> None:
    stream, strategy = digits(), ICaRL(50, replay=7)
    learner = Learner(mlp(), stream, strategy, iterations=30)
    while learner.task == 0:
        learner.advance()
    learner.advance()
    batch = stream[1].samples(torch.arange(9))
    old: Any = strategy._ahead.look("exemplars", strategy._draw)
    x, y = torch.cat([batch.x, old.x]), torch.cat([batch.y, old.y])
    learner.model.train()
    output = learner.model(x)
    assert strategy.teacher.model is not None
    wanted = F.one_hot(y, 10).float()
    wanted[:, :5] = strategy.teacher.model(x)[:, :5].sigmoid()
    each = F.binary_cross_entropy_with_logits(output, wanted, reduction="none").sum(1)
    assert torch.allclose(strategy.loss(learner.model, batch), each.mean())
    assert len(old) == 7
    assert int(old.y.max()) < 5


def test_icarl_answers_with_the_nearest_mean_of_its_exemplars() -> None:
    stream, strategy = digits(), ICaRL(40)
    model = train(mlp(), stream, strategy, iterations=60).model.eval()
    assert {len(kept[0]) for kept in strategy.exemplars.values()} == {4}
    means = torch.stack(
        [
            F.normalize(F.normalize(features(model, Batch(x, y, task=t))).mean(0), dim=0)
            for _, (x, y, t) in sorted(strategy.exemplars.items())
        ]
    )
    some = next(stream[1].held_out("test", 100))
    far = torch.cdist(F.normalize(features(model, some)), means)
    assert torch.equal(model(some.x).argmax(1), far.argmin(1))
    assert isinstance(readout(model)[1], NearestMean)


def test_a_class_without_a_mean_is_never_the_answer() -> None:
    layer = NearestMean(torch.nn.Linear(2, 3)).eval()
    layer.remember(1, torch.tensor([[-3.0, -4.0]]))
    assert layer(torch.tensor([[3.0, 4.0], [-1.0, 0.0]])).argmax(1).tolist() == [1, 1]


def test_herding_follows_the_mean_better_than_the_first_samples_do() -> None:
    some = F.normalize(torch.randn(200, 6, generator=seeded()))
    chosen = herded(some, 10)
    assert len(set(chosen.tolist())) == 10

    def off(rows: torch.Tensor) -> float:
        return float((some[rows].mean(0) - some.mean(0)).norm())

    assert off(chosen) < 0.25 * off(torch.arange(10))


def test_herding_takes_the_sample_that_brings_the_mean_nearest_each_time() -> None:
    some = 2 * torch.randn(12, 3, generator=seeded(4)) + 1
    chosen = herded(some, 7).tolist()

    def off(rows: list[int]) -> float:
        return float((some[rows].mean(0) - some.mean(0)).norm())

    for k, best in enumerate(chosen):
        rest = set(range(12)) - set(chosen[:k])
        assert best == min(rest, key=lambda one: off([*chosen[:k], one]))


def test_der_replays_what_was_said_when_the_memory_came() -> None:
    stream, strategy = digits(), DER(300, replay=5)
    learner = Learner(mlp(), stream, strategy, iterations=10)
    said = []
    for _ in range(6):
        before = learner.model(stream[0].samples(torch.arange(40)).x).detach()
        learner.advance()
        kept = strategy.episodes.memory.store.columns
        said.append(kept[3][: len(strategy.episodes)].clone())
        assert len(strategy.episodes) == 10 * len(said)
        shown = stream[0].samples(torch.arange(40)).x
        for row in range(40):
            same = (kept[0][: len(strategy.episodes)] == shown[row]).all(1)
            if same.any() and int(same.nonzero()[0]) >= 10 * (len(said) - 1):
                place = int(same.nonzero()[0])
                assert torch.allclose(kept[3][place], before[row], atol=1e-6)
    assert torch.equal(said[0], said[-1][:10])  # and it stays as it was said


def test_er_ace_hides_old_classes_that_are_not_in_the_batch() -> None:
    stream, strategy = digits(), ERACE(20)
    model = strategy.start(mlp(), stream, generator=seeded())
    first, batch = stream[0].samples(torch.arange(30)), stream[1].samples(torch.arange(8))
    strategy.observe(first)
    old: Any = strategy._ahead.look("replayed", strategy._draw)
    output = model(batch.x)
    output[:, :5] = -torch.inf
    expected = F.cross_entropy(output, batch.y) + F.cross_entropy(model(old.x), old.y)
    assert torch.allclose(strategy.loss(model, batch), expected)


@pytest.mark.parametrize("strategy", [LwF(), GDumb(60, epochs=3)])
def test_the_network_that_is_given_is_the_one_that_learns(strategy: Any) -> None:
    model = mlp()
    assert train(model, digits(), strategy, iterations=4).model is model


def test_bits_count_one_by_one_where_they_are_asked() -> None:
    """Answers of bits: two samples of two steps of three bits, and what is said to them."""
    h = torch.arange(12.0).reshape(2, 2, 3)
    y = torch.tensor([[[0, 1, 1], [IGNORE] * 3], [[IGNORE] * 3, [1, IGNORE, 0]]])
    said = torch.full((2, 3, 3), 2.0)  # a step more, with which a memory was filled up
    off = [(0 - 2) ** 2, (1 - 2) ** 2, (2 - 2) ** 2, (9 - 2) ** 2, (11 - 2) ** 2]
    assert float(distance(h, said, y)) == pytest.approx(sum(off) / 5)
    assert float(distance(h, said[:, :1], y)) == pytest.approx(sum(off[:3]) / 3)
    loud = [0 + 1 + 4, 81 + 100 + 121]  # of each sample, the mean over the steps that are asked
    batch = Batch(h, y)
    assert float(loudness(torch.nn.Identity(), batch)) == pytest.approx(sum(loud) / 2)
    weighted = Batch(h, y, weight=torch.tensor([0.5, 3.0]))
    assert float(loudness(torch.nn.Identity(), weighted)) == pytest.approx(
        0.5 * loud[0] + 3 * loud[1]
    )


def test_a_head_that_grows_is_distilled_from_the_one_before() -> None:
    """Kuo (2021), section 3.3.4: two outputs become four, and what the two said is held on to."""
    stream = digits(2)
    learner = Learner(
        MLP([64, 24, 2], generator=seeded()), stream[:1], LwF(0.7, temperature=3.0), iterations=30
    )
    while not learner.done:
        learner.advance()
    batch = stream[1].samples(torch.arange(12))
    with torch.no_grad():
        z = learner.model(batch.x).double().numpy()
    learner.add(stream[1])
    with torch.no_grad():
        assert np.allclose(learner.model(batch.x)[:, :2].numpy(), z, atol=1e-6)
    learner.advance()
    with torch.no_grad():
        h = learner.model(batch.x).double().numpy()
        found = learner.strategy.loss(learner.model, batch).item()
    assert h.shape == (12, 4)
    right = np.exp(h)[np.arange(12), batch.y.numpy()] / np.exp(h).sum(1)
    p, q = (np.exp(a[:, :2] / 3) / np.exp(a[:, :2] / 3).sum(1, keepdims=True) for a in (z, h))
    expected = -np.log(right).mean() + 0.7 * 9 * (p * np.log(p / q)).sum(1).mean()
    assert found == pytest.approx(expected, rel=1e-5)


def test_with_a_memory_the_distilled_head_knows_all_of_its_classes() -> None:
    stream = digits(2)
    faster = partial(torch.optim.SGD, lr=0.03)
    ends = []
    for strategy in (Naive(), combine(ER("classes", 60), LwF())):
        model = MLP([64, 48, 2], generator=seeded())
        learner = Learner(model, stream[:1], strategy, iterations=60, optimiser=faster)
        for task in stream[1:4]:
            result = learner.learn(task)
        assert readout(learner.model)[1].out_features == 8
        ends.append(result.matrix[-1])
    assert float(ends[0][:3].max()) < 0.1  # what came before is forgotten
    assert float(ends[1].min()) > 0.6
