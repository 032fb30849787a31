"""Streams hold their data, read them lazily and refuse what cannot be learnt."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from attractor import InputError
from attractor.tasks import ArrayTask, Batch, Data, DatasetTask, Shuffled, joined
from attractor.tasks.streams import Stream


def data(samples: int = 12, features: int = 3, classes: int = 3) -> Data:
    x = torch.arange(float(samples * features)).reshape(samples, features)
    return Data(x, torch.arange(samples) % classes)


def task(place: int = 0, **options: object) -> ArrayTask:
    one = ArrayTask(f"task {place}", place, data(), data(), (0, 1, 2))
    return replace(one, **options)  # type: ignore[arg-type]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def places(batch: Batch) -> list[int]:
    assert batch.task is not None
    return batch.task.tolist()


def test_rows_are_read_when_they_are_picked() -> None:
    one = task(read=lambda x: x.flip(1))
    index = torch.tensor([4, 0])
    assert torch.equal(one.samples(index).x, data().x[index].flip(1))
    assert torch.equal(one.test_samples.x, data().x.flip(1))
    assert places(one.samples(index)) == [0, 0]


def test_held_out_pieces_make_up_the_test_set() -> None:
    one = task(2)
    pieces = list(one.held_out("test", 5))
    assert [len(piece) for piece in pieces] == [5, 5, 2]
    assert torch.equal(torch.cat([piece.x for piece in pieces]), one.test.x)
    assert places(pieces[0]) == [2] * 5


def test_ragged_sequences_are_packed() -> None:
    x, lengths = torch.randn(3, 4, 2), torch.tensor([2, 4, 1])
    data = Data(x, torch.arange(3), lengths)
    one = ArrayTask("ragged", 0, data, data, (0, 1, 2))
    packed = one.samples(torch.tensor([0, 2])).inputs
    assert isinstance(packed, PackedSequence)
    assert packed.data.shape == (3, 2)
    assert torch.equal(packed.data[0], x[0, 0])


def test_joined_samples_are_padded_to_the_longest() -> None:
    def some(length: int) -> Batch:
        x, y = torch.ones(2, length, 1), torch.ones(2, length, dtype=torch.long)
        return Batch(x, y, torch.full((2,), length), torch.zeros(2))

    both = joined([some(2), some(4)])
    assert both.x.shape == (4, 4, 1)
    assert both.x[0].squeeze().tolist() == [1, 1, 0, 0]
    assert both.y[0].tolist() == [1, 1, -100, -100]
    assert both.lengths is not None
    assert both.lengths.tolist() == [2, 2, 4, 4]


def test_a_part_of_a_stream_is_a_stream() -> None:
    stream = Stream("three", [task(0), task(1), task(2)])
    assert [one.name for one in stream[1:]] == ["task 1", "task 2"]
    assert [one.place for one in stream[1:]] == [0, 1]


def test_a_fingerprint_tells_streams_apart() -> None:
    stream = Stream("a", [task(0), task(1)])
    same = Stream("a", [task(0), task(1)])
    others = [
        Stream("b", [task(0), task(1)]),
        Stream("a", [task(0)]),
        Stream("a", [task(0), task(1)], identity=True),
        Stream("a", [task(0), task(1, read=lambda x: x.flip(1))]),
        Stream("a", [task(0), task(1, train=data()._replace(y=data().y.flip(0)))]),
    ]
    assert stream.fingerprint() == same.fingerprint()
    assert len({one.fingerprint() for one in [stream, *others]}) == 1 + len(others)


def test_an_empty_task_is_refused() -> None:
    nothing = Data(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InputError, match="'task 0'.*0 inputs and 0 answers.*Leave empty tasks out"):
        task(train=nothing)


def test_an_answer_that_is_not_among_the_classes_is_refused() -> None:
    with pytest.raises(InputError, match=r"'task 0' among its classes, but got \[2\]"):
        task(classes=(0, 1))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float32])
def test_answers_of_another_type_are_whole_numbers_all_the_same(dtype: torch.dtype) -> None:
    some = data()._replace(y=data().y.to(dtype))
    one = task(train=some, test=some)
    for y in (one.samples(torch.arange(12)).y, one.test_samples.y):
        assert y.dtype == torch.long
        assert torch.equal(y, data().y)


def test_answers_that_are_not_classes_from_0_on_are_refused() -> None:
    with pytest.raises(InputError, match=r"number of a class .* 'task 0', but got torch.float32"):
        task(test=data()._replace(y=data().y / 2))
    signs = data()._replace(y=torch.tensor([-1, 1]).repeat(6))
    with pytest.raises(InputError, match="classes from 0 on for the task 'task 0'.*got -1.*-100"):
        task(train=signs, test=signs, classes=(-1, 1))
    silent = data()._replace(y=torch.tensor([-100, 1]).repeat(6))
    assert task(train=silent, test=silent).train.y[0] == -100


def test_a_test_half_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"but the test half of 'task 0' has \(4,\)"):
        Stream("two sizes", [task(test=data(features=4))])


def test_a_look_at_some_test_samples_keeps_nothing() -> None:
    one = task(read=lambda x: x.flip(1), keep=False)
    assert torch.equal(one.first("test", 2).x, data().x[:2].flip(1))
    assert one.first("test", 2).y.tolist() == [0, 1]
    assert "test_samples" not in one.__dict__


def test_a_task_of_another_size_is_refused() -> None:
    wide = ArrayTask("wide", 1, data(features=4), data(features=4), (0, 1, 2))
    with pytest.raises(InputError, match=r"\(3,\) as in 'task 0', but 'wide' has \(4,\)"):
        Stream("two sizes", [task(0), wide])


def test_a_stream_needs_tasks_that_know_their_place() -> None:
    with pytest.raises(InputError, match="at least one task"):
        Stream("none", [])
    with pytest.raises(InputError, match="place 0 in the stream, but got 1"):
        Stream("late", [task(1)])


def epochs(batches: Shuffled, count: int) -> Tensor:
    return torch.cat([batches.draw().x[:, 0] for _ in range(count)])


def test_an_epoch_has_every_sample_once() -> None:
    batches = Shuffled(task(), 5, generator=seeded())
    for epoch in epochs(batches, 12).reshape(5, 12):
        assert torch.equal(epoch.sort().values, data().x[:, 0])


def test_batches_leave_the_global_generator_alone_and_follow_theirs() -> None:
    before = torch.get_rng_state()
    one, same, other = (Shuffled(task(), 5, generator=seeded(seed)) for seed in (0, 0, 1))
    drawn = epochs(one, 30)
    assert torch.equal(drawn, epochs(same, 30))
    assert not torch.equal(drawn, epochs(other, 30))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("after", [0, 1, 3, 64, 70])
def test_batches_go_on_bit_by_bit(after: int) -> None:
    def noise(x: Tensor, generator: torch.Generator) -> Tensor:
        return x + torch.rand(x.shape, generator=generator)

    one = Shuffled(task(noise=noise), 5, generator=seeded(0))
    for _ in range(after):
        one.draw()
    state = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    expected = epochs(one, 70)
    other = Shuffled(task(noise=noise), 5, generator=seeded(1))
    other.load_state_dict(state)
    assert torch.equal(epochs(other, 70), expected)


def test_the_state_of_other_batches_is_refused() -> None:
    state = Shuffled(task(), 5, generator=seeded()).state_dict()
    other = Shuffled(task(), 4, generator=seeded())
    with pytest.raises(InputError, match="batch size"):
        other.load_state_dict(state | {"position": torch.tensor(5)})
    with pytest.raises(InputError, match="12 samples of 'task 0'.*sample 99"):
        other.load_state_dict(state | {"order": torch.tensor([99])})


def test_sequences_of_tasks_that_differ_in_length_say_where_they_end() -> None:
    def long(place: int, steps: int, lengths: Tensor | None = None) -> ArrayTask:
        some = Data(torch.zeros(6, steps, 2), torch.arange(6) % 3, lengths)
        return task(place, train=some, test=some)

    with pytest.raises(InputError, match="'two lengths' has 2 lengths and not all of its data say"):
        Stream("two lengths", [long(0, 4), long(1, 5, torch.full((6,), 5))])
    whole = [long(0, 4, torch.full((6,), 4)), long(1, 5, torch.full((6,), 5))]
    assert len(Stream("two lengths", whole)) == 2
    assert len(Stream("one length", [long(0, 4), long(1, 4)])) == 2


def test_samples_may_have_two_inputs() -> None:
    def pairs(place: int) -> DatasetTask:
        some = [((torch.zeros(3), torch.ones(4)), torch.tensor(n % 2)) for n in range(6)]
        return DatasetTask(some, test=some, place=place, classes=(0, 1))  # type: ignore[arg-type]

    stream = Stream("pairs", [pairs(0), pairs(1)])
    first, second = stream[1].samples(torch.tensor([0, 1])).x
    assert (first.shape, second.shape) == ((2, 3), (2, 4))
