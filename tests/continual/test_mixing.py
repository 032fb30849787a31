"""Tasks that run into each other, samples for validation, and tasks that end early."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from attractor import InputError
from attractor.continual import ER, Learner
from attractor.continual.stopping import Patience
from attractor.models import MLP
from attractor.state import pack, unpack
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream, blurred, inject_noise, split_images, with_valid
from continual.helpers import digits, seeded


def rows_of(x: Tensor) -> Counter[bytes]:
    return Counter(one.numpy().tobytes() for one in x)


def test_blurring_moves_samples_and_loses_none() -> None:
    stream = split_images(dataset="digits", size=2)
    soft = blurred(stream, 0.3, generator=seeded())
    every = [task.samples(torch.arange(len(task))) for task in soft]
    before = sum((rows_of(task.samples(torch.arange(len(task))).x) for task in stream), Counter())
    assert sum((rows_of(one.x) for one in every), Counter()) == before
    for place, one in enumerate(every):
        counts = torch.bincount(one.places, minlength=5)
        assert torch.equal(one.places, one.y // 2)  # each sample knows its own task
        assert int(counts[place]) == len(stream[place]) - round(0.3 * len(stream[place]))
        others = counts[[other for other in range(5) if other != place]]
        assert int(others.min()) >= 0.3 * 280 // 4  # evenly to the four others
        assert soft[place].classes == tuple(range(10))
        assert torch.equal(soft[place].first("test", 5).x, stream[place].first("test", 5).x)


def test_samples_come_in_the_order_that_was_asked_for() -> None:
    soft = blurred(split_images(dataset="digits", size=2), 0.5, generator=seeded())
    index = torch.randperm(len(soft[1]), generator=seeded(3))[:50]
    found = soft[1].samples(index)
    for row, number in enumerate(index.tolist()):
        alone = soft[1].samples(torch.tensor([number]))
        assert torch.equal(found.x[row], alone.x[0])
        assert int(found.y[row]) == int(alone.y[0])


def test_memories_read_samples_as_their_own_task_shows_them() -> None:
    noisy = inject_noise(digits(3), 0.0, anew=True)
    soft = blurred(noisy, 0.4, generator=seeded())
    strategy = ER("reservoir", 60)
    learner = Learner(MLP([64, 8, 10], generator=seeded()), soft, strategy, iterations=8)
    while not learner.done:
        learner.advance()
    kept = strategy.episodes.everything()
    assert len(set(kept.places.tolist())) == 3
    shown = [rows_of(task.samples(torch.arange(len(task))).x) for task in digits(3)]
    pairs = zip(kept.x, kept.places.tolist(), strict=True)
    assert all(one.numpy().tobytes() in shown[place] for one, place in pairs)


def test_a_blurred_stream_resumes_bit_by_bit() -> None:
    def learner() -> Learner:
        soft = blurred(digits(2), 0.3, generator=seeded())
        return Learner(MLP([64, 8, 10], generator=seeded()), soft, ER(size=20), iterations=10)

    one, other = learner(), learner()
    for _ in range(13):
        one.advance()
    other.load_state_dict(unpack(*pack(one.state_dict())))
    assert [one.advance() for _ in range(7)] == [other.advance() for _ in range(7)]


def test_what_cannot_be_blurred_or_held_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 tasks"):
        blurred(digits(1), 0.3, generator=seeded())
    soft = blurred(digits(2), 0.3, generator=seeded())
    with pytest.raises(InputError, match="Choose tasks first, then blur"):
        soft[1:]
    with pytest.raises(InputError, match="takes all"):
        with_valid(digits(2), 1.0, generator=seeded())
    with pytest.raises(InputError, match="has some. Take them"):
        with_valid(with_valid(digits(2), 0.1, generator=seeded()), 0.1, generator=seeded())


def test_validation_samples_are_none_of_those_of_training() -> None:
    held = with_valid(digits(2), 0.2, generator=seeded())
    for own, task in zip(digits(2), held, strict=True):
        assert isinstance(task, ArrayTask)
        assert task.valid is not None
        train, valid = rows_of(task.train.x), rows_of(task.valid.x)
        assert train + valid == rows_of(own.train.x)
        assert len(task.valid.y) == round(0.2 * len(own))


def lazy(**more: Any) -> Learner:
    held = with_valid(digits(2), 0.2, generator=seeded())
    model = MLP([64, 16, 10], generator=seeded())
    return Learner(model, held, optimiser={"name": "sgd", "lr": 0.5}, iterations=400, **more)


def test_a_task_ends_once_validation_gets_no_better() -> None:
    learner = lazy(patience=2, eval_every=5)
    ends = []
    while not learner.done:
        before = learner.task
        learner.advance()
        if learner.task > before:
            ends.append(learner.step)
    assert ends[0] < 400
    assert ends[0] % 5 == 0
    assert ends[1] < 800
    assert len(learner.result().seconds) == 2
    assert learner.result().memory_bytes == 0


def test_an_early_end_is_where_it_was_after_a_stop() -> None:
    one, other = lazy(patience=3, eval_every=4), lazy(patience=3, eval_every=4)
    for _ in range(17):
        one.advance()
    other.load_state_dict(unpack(*pack(one.state_dict())))
    while not one.done:
        assert one.advance() == other.advance()
    assert other.done
    assert one.step == other.step


def test_patience_counts_from_the_best() -> None:
    waits = Patience(3, every=1)
    assert [waits.tired(loss) for loss in (5.0, 4.0, 4.5, 4.0, 3.9, 4.0, 4.0)] == [False] * 7
    assert waits.tired(3.9)
    waits.start()
    assert not waits.tired(10.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"patience": 2}, "eval_every beside patience"), ({"eval_every": 5}, "patience beside")],
)
def test_patience_needs_measurements(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lazy(**options)


def test_patience_needs_validation_samples() -> None:
    learner = Learner(MLP([64, 10]), digits(2), iterations=9, patience=1, eval_every=2)
    learner.advance()
    with pytest.raises(InputError, match="expected validation samples"):
        learner.advance()


def test_what_a_strategy_keeps_is_counted_in_bytes() -> None:
    x, y = torch.zeros(30, 64), torch.arange(30) % 10
    task = ArrayTask("small", 0, Data(x, y), Data(x, y), tuple(range(10)))
    learner = Learner(MLP([64, 10]), Stream("one", [task]), ER(size=20), iterations=3)
    while not learner.done:
        learner.advance()
    # 20 rows of 64 floats, an answer and a task, and how many samples were seen
    assert learner.result().memory_bytes == 20 * (64 * 4 + 8 + 8) + 8


def test_sequences_that_are_held_back_end_where_they_did() -> None:
    lengths = torch.randint(1, 6, (20,), generator=seeded())
    data = Data(lengths.float()[:, None, None].expand(20, 5, 1), torch.arange(20) % 2, lengths)
    stream = Stream("ragged", [ArrayTask("one", 0, data, data, (0, 1))])
    (task,) = with_valid(stream, 0.25, generator=seeded()).arrays()
    assert task.valid is not None
    for part, count in ((task.train, 15), (task.valid, 5)):
        assert part.lengths is not None
        assert len(part.lengths) == count
        assert torch.equal(part.x[:, 0, 0], part.lengths.float())
