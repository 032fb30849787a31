"""A learner takes tasks after the stream's end, and how updates are made."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from attractor import InputError
from attractor.continual import (
    AGEM,
    DER,
    ER,
    ERACE,
    EWC,
    GEM,
    MAS,
    SI,
    SLDA,
    GDumb,
    ICaRL,
    Learner,
    LwF,
    MetaSGDCL,
    Naive,
    OnlineEWC,
    Progressive,
    Strategy,
    train,
)
from attractor.models import MLP
from attractor.tasks.streams import Stream, permuted_images, split_images


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def digits() -> Stream:
    return split_images(dataset="digits", size=2)


def mlp(outputs: int = 4) -> MLP:
    return MLP([64, 24, outputs], init="xavier", generator=seeded())


FASTER = partial(torch.optim.SGD, lr=0.1, momentum=0.5)


@pytest.mark.parametrize(
    "strategy",
    [
        Naive(),
        ER("ring", 40),
        ER("classes", 60),
        GEM(20, memory="ring"),
        AGEM(5),
        DER(60),
        ERACE(60),
        ICaRL(60),
        GDumb(60, epochs=10),
        SLDA(),
        LwF(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_task_after_the_end_is_learnt_with_a_head_that_grows(strategy: Strategy) -> None:
    stream = digits()
    learner = Learner(mlp(), stream[:2], strategy, iterations=60, optimiser=FASTER)
    before = len(learner.stream)
    first = learner.learn(stream[2])
    assert len(learner.stream) == before + 1
    assert learner.model.get_parameter("layers.1.weight").shape == (6, 24)
    assert first.matrix.shape == (4, 3)
    assert first.matrix[1:, :2].isfinite().all()
    assert torch.isnan(first.matrix[0, 2])
    assert first.matrix[2, 2] < 0.2 < 0.6 < first.matrix[3, 2]
    second = learner.learn(stream[3])
    assert second.matrix.shape == (5, 4)
    assert torch.equal(second.matrix[1:4, :2], first.matrix[1:, :2])
    assert second.matrix[4, 3] > 0.3


def test_tasks_of_the_same_classes_go_on_with_any_strategy() -> None:
    stream = permuted_images(dataset="digits", tasks=3, generator=seeded())
    told = replace(stream, identity=True)
    strategies: list[Strategy] = [
        EWC(1.0, samples=50),
        MetaSGDCL(size=20, kappa=0.2, initial=0.1),
        Progressive(),
    ]
    for strategy in strategies:
        learner = Learner(mlp(10), told[:2], strategy, iterations=30, optimiser=FASTER)
        result = learner.learn(told[2])
        assert result.matrix[3].isfinite().all()
        assert result.matrix[3, 2] > 0.3, strategy


HELD: list[Any] = [
    partial(EWC, 2.0, samples=20),
    partial(EWC, 2.0, samples=20, merge=False),
    partial(OnlineEWC, 3.0, samples=20),
    partial(SI, 5.0),
    partial(MAS, 0.02, samples=20),
]
"""Strategies that hold on to weights by their importance."""


@pytest.mark.parametrize("make", HELD)
def test_a_strategy_that_holds_on_to_weights_follows_a_head_that_grows(make: Any) -> None:
    stream = digits()
    learner = Learner(mlp(), stream[:2], make(), iterations=8, optimiser=FASTER)
    while not learner.done:
        learner.advance()
    strategy: Any = learner.strategy
    old = [one._asdict() for one in anchors(strategy)]
    price = strategy.penalty().item()
    learner.add(stream[2])
    flat_ = strategy.flat if isinstance(strategy, SI) else strategy.gradients.flat
    begin = flat_.named(flat_.values(), learner.model)
    for before, after in zip(old, anchors(strategy), strict=True):
        for kind, rows in (("fisher", 0.0), ("value", None)):
            found = flat_.named(getattr(after, kind), learner.model)
            assert torch.equal(found["layers.0.weight"].flatten(), before[kind][: 24 * 64])
            head = before[kind][24 * 64 + 24 :]
            assert torch.equal(found["layers.1.weight"][:4].flatten(), head[: 4 * 24])
            assert torch.equal(found["layers.1.bias"][:4], head[4 * 24 :])
            for name in ("layers.1.weight", "layers.1.bias"):
                new = torch.zeros_like(begin[name][4:]) if rows == 0.0 else begin[name][4:]
                assert torch.equal(found[name][4:], new)
    assert strategy.penalty().item() == pytest.approx(price, rel=1e-6)
    result = learner.learn(stream[3])
    assert result.matrix[3:].isfinite().all()
    assert len(anchors(strategy)[-1].fisher) == sum(p.numel() for p in learner.model.parameters())


def anchors(strategy: Any) -> list[Any]:
    return list(strategy.anchors) if isinstance(strategy, EWC) else [strategy.anchor]


def test_the_way_of_weights_in_the_middle_of_a_task_is_kept() -> None:
    strategy = SI(1.0)
    learner = Learner(mlp(), digits()[:2], strategy, iterations=8, optimiser=FASTER)
    for _ in range(5):
        learner.advance()
    before, strategy_path = strategy.flat, strategy.path.clone()
    gradient, theta = strategy._before or (torch.zeros(0), torch.zeros(0))
    strategy_path -= gradient * (before.values() - theta)  # of the latest update
    learner.add(digits()[2])
    path = strategy.flat.named(strategy.path, learner.model)
    assert torch.equal(path["layers.0.weight"].flatten(), strategy_path[: 24 * 64])
    assert torch.equal(path["layers.1.bias"][:4], strategy_path[-4:])
    assert path["layers.1.bias"][:4].abs().min() > 0
    assert (path["layers.1.bias"][4:] == 0).all()
    while not learner.done:
        learner.advance()


def test_a_task_that_is_refused_leaves_the_learner_as_it_was() -> None:
    stream = digits()
    learner = Learner(mlp(), stream[:2], MetaSGDCL(size=20), iterations=3)
    with pytest.raises(
        InputError, match="that gets 'more answers': earlier tasks have no rates of weights that"
    ):
        learner.learn(stream[2])
    assert learner.done
    assert len(learner.stream) == 2
    assert learner.result().matrix.shape == (3, 2)
    assert learner.learn(stream[0]).matrix.shape == (4, 3)


@pytest.mark.parametrize("make", [ER, LwF, partial(ICaRL, 60), *HELD])
def test_a_learner_whose_head_grew_goes_on_after_a_checkpoint(make: Any) -> None:
    stream = digits()

    def made() -> Learner:
        return Learner(mlp(), stream[:2], make(), iterations=9, optimiser=FASTER)

    one, other = made(), made()
    one.learn(stream[2])
    one.add(stream[3])
    for _ in range(4):
        one.advance()
    for task in stream[2:4]:
        other.add(task)
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == other.advance()
    assert torch.equal(flat(one), flat(other))


def test_moments_of_old_answers_are_kept() -> None:
    stream = digits()
    learner = Learner(mlp(), stream[:1], iterations=20, optimiser=FASTER)
    while not learner.done:
        learner.advance()
    old: Any = learner.optimiser.state[learner.model.get_parameter("layers.1.weight")]
    learner.add(stream[1])  # which has the outputs that are there
    learner.add(stream[2])
    new: Any = learner.optimiser.state[learner.model.get_parameter("layers.1.weight")]
    assert torch.equal(new["momentum_buffer"][:4], old["momentum_buffer"])
    assert (new["momentum_buffer"][4:] == 0).all()


def flat(learner: Learner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in learner.model.parameters()])


def test_accumulated_batches_are_one_large_batch() -> None:
    ends = []
    for size, accumulate in ((12, 1), (4, 3)):
        learner = Learner(
            mlp(), digits()[:2], ER(), batch_size=size, accumulate=accumulate, iterations=5
        )
        for _ in range(5):
            learner.advance()
        ends.append(flat(learner))
        assert isinstance(learner.strategy, ER)
        assert learner.strategy.episodes.sizes([0]) == [60]
    assert torch.allclose(ends[0], ends[1], atol=1e-6)


def test_iterations_of_each_task_schedules_clipping_and_callbacks() -> None:
    told: list[tuple[int, float]] = []

    def note(learner: Learner, rows: list[Any]) -> None:
        told.append((learner.task, learner.optimiser.param_groups[0]["lr"]))

    sgd = partial(torch.optim.SGD, lr=0.4)
    learner = Learner(
        mlp(),
        digits()[:2],
        iterations=[4, 2],
        schedule="linear",
        clip=1e-9,
        optimiser=sgd,
        callbacks=[note],
    )
    before = flat(learner)
    while not learner.done:
        learner.advance()
    assert [round(rate, 6) for _, rate in told] == [0.4, 0.3, 0.2, 0.1, 0.4, 0.2]
    assert float((flat(learner) - before).norm()) < 1e-8
    one = Learner(mlp(), digits()[:1], iterations=2, callbacks=note)  # without a list
    one.advance()
    assert len(told) == 7
    with pytest.raises(InputError, match="iterations for each of the 2 tasks, but got 3"):
        Learner(mlp(), digits()[:2], iterations=[1, 2, 3])


def test_entries_of_gradients_are_cut_and_autocast_is_heeded() -> None:
    ends = []
    each: list[dict[str, Any]] = [{}, {"clip_value": 1e-9}, {"autocast": "bfloat16"}]
    for options in each:
        learner = Learner(mlp(), digits()[:1], iterations=3, **options)
        before = flat(learner)
        for _ in range(3):
            learner.advance()
        ends.append(flat(learner) - before)
    assert ends[1].abs().max() < 1e-7
    assert not torch.equal(ends[0], ends[2])
    assert torch.allclose(ends[0], ends[2], atol=2e-3)


def test_a_schedule_goes_on_after_a_checkpoint() -> None:
    def made() -> Learner:
        return Learner(mlp(), digits()[:2], ER(), iterations=6, schedule="cosine", clip=1.0)

    one, other = made(), made()
    for _ in range(8):
        one.advance()
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == other.advance()
    assert torch.equal(flat(one), flat(other))


def test_train_takes_the_same_options() -> None:
    result = train(mlp(), digits()[:2], ER(), iterations=[3, 4], accumulate=2)
    assert result.matrix.shape == (3, 2)
