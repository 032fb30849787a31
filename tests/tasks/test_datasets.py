"""Tasks over data sets and loaders: what users have, larger than memory too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from attractor.errors import InputError
from attractor.tasks import Batch, DatasetTask, LoaderTask
from attractor.tasks.datasets import Loaded, batch_of, over
from attractor.tasks.streams import Stream


class Squares(Dataset[tuple[Tensor, Tensor]]):
    """Numbers and their squares, made when they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, n: int) -> tuple[Tensor, Tensor]:
        self.asked.append(n)
        return torch.tensor([float(n), 1.0]), torch.tensor(n * n)


class Counting(IterableDataset[tuple[Tensor, int]]):
    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return ((torch.full((3,), float(n)), n % 2) for n in range(7))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_an_epoch_over_a_data_set_has_every_sample_once() -> None:
    sampler = DatasetTask(Squares(10)).batches(4, generator=seeded())
    seen = torch.cat([sampler.draw().y for _ in range(5)])
    assert sorted(seen[:10].tolist()) == [n * n for n in range(10)]
    assert sorted(seen[10:].tolist()) == [n * n for n in range(10)]


def test_held_out_samples_come_in_order_and_know_their_task() -> None:
    task = DatasetTask(Squares(3), test=Squares(5), place=2, classes=range(26))
    pieces = list(task.held_out("test", 2))
    assert [piece.y.tolist() for piece in pieces] == [[0, 1], [4, 9], [16]]
    assert pieces[2].task is not None
    assert pieces[2].task.tolist() == [2]
    assert task.output_size == 26
    with pytest.raises(InputError, match=r"expected valid data .* Give some as valid="):
        next(task.held_out("valid", 2))


def test_a_sampler_over_a_data_set_goes_on_bit_by_bit() -> None:
    one = DatasetTask(Squares(10)).batches(3, generator=seeded())
    one.draw()
    other = DatasetTask(Squares(10)).batches(3, generator=seeded(1))
    other.load_state_dict(one.state_dict())
    for _ in range(6):
        assert torch.equal(one.draw().x, other.draw().x)


def test_data_on_disk_are_read_sample_by_sample(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(20, dtype=np.float32).reshape(10, 2))
    x = np.load(path, mmap_mode="r")

    class OnDisk(Dataset[Any]):
        def __len__(self) -> int:
            return len(x)

        def __getitem__(self, n: int) -> Any:
            return np.array(x[n]), n

    batch = DatasetTask(OnDisk()).samples(torch.tensor([7, 1]))
    assert batch.x.tolist() == [[14, 15], [2, 3]]
    assert batch.y.tolist() == [7, 1]


def test_tasks_over_data_sets_make_a_stream() -> None:
    tasks = [
        DatasetTask(Squares(4), test=Squares(4), name=str(n), place=n, classes=range(10))
        for n in (0, 1)
    ]
    stream = Stream("squares", tasks)
    assert stream.outputs == 10
    assert [one.place for one in stream[1:]] == [0]
    assert stream[1].place == 1
    other = Stream(
        "squares",
        [tasks[0], DatasetTask(Squares(5), test=Squares(4), name="1", place=1, classes=range(10))],
    )
    assert stream.fingerprint() != other.fingerprint()
    with pytest.raises(InputError, match="stream of tasks over arrays, but 'squares' has others"):
        stream.arrays()


def test_a_pair_of_inputs_stays_a_pair() -> None:
    pairs = [((torch.ones(2), torch.zeros(3)), n) for n in range(4)]
    task = DatasetTask(pairs)  # type: ignore[arg-type]
    batch = task.samples(torch.tensor([0, 3]))
    assert [x.shape for x in batch.x] == [(2, 2), (2, 3)]
    assert [x.shape for x in batch[1:].x] == [(1, 2), (1, 3)]
    assert not task.timed


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_goes_on_where_it_was(shuffle: bool) -> None:
    def loader(seed: int) -> DataLoader[Any]:
        data = TensorDataset(torch.arange(7.0)[:, None], torch.arange(7))
        return DataLoader(data, batch_size=2, shuffle=shuffle, generator=seeded(seed))

    one = Loaded(loader(0))
    for _ in range(6):
        one.draw()
    state = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    expected = [one.draw().y for _ in range(7)]
    other = Loaded(loader(1))
    other.load_state_dict(state)
    for y in expected:
        assert torch.equal(other.draw().y, y)


def test_a_loader_that_shuffles_by_the_default_generator_goes_on_where_it_was() -> None:
    def loader() -> DataLoader[Any]:
        data = TensorDataset(torch.arange(7.0)[:, None], torch.arange(7))
        return DataLoader(data, batch_size=2, shuffle=True)

    torch.manual_seed(3)
    one = Loaded(loader())
    for _ in range(6):
        one.draw()
        torch.rand(2)  # as dropout would between two batches
    state = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    now = torch.get_rng_state()
    expected = [one.draw().y for _ in range(7)]
    torch.manual_seed(4)
    other = Loaded(loader())
    other.load_state_dict(state)
    torch.set_rng_state(now)  # as whoever saved both puts it back
    for y in expected:
        assert torch.equal(other.draw().y, y)


def test_data_without_numbers_are_gone_through_again_and_again() -> None:
    task = over(Counting())
    assert isinstance(task, LoaderTask)
    assert task.features == (3,)
    sampler = task.batches(32, generator=seeded())
    assert [len(sampler.draw()) for _ in range(2)] == [7, 7]


def test_a_batch_may_be_made_by_the_users_own_collate() -> None:
    def collate(samples: list[Any]) -> Batch:
        x, y = zip(*samples, strict=True)
        return Batch(torch.stack(x) * 2, torch.stack(y), weight=torch.ones(len(y)) / len(y))

    batch = DatasetTask(Squares(4), collate=collate).samples(torch.tensor([3]))
    assert batch.x.tolist() == [[6, 2]]
    assert batch.weight is not None


def test_samples_of_another_form_are_refused() -> None:
    with pytest.raises(InputError, match=r"samples of \(x, y\), .* but the data set gives Tensor"):
        batch_of(torch.zeros(2, 2))
    with pytest.raises(InputError, match="samples to train on in 'data', but there are none"):
        DatasetTask(Squares(0))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([2, 9]), r"lengths from 1 to 6, the steps of x, but got 2 to 9\. Try"),
        (torch.tensor([0, 6]), r"lengths from 1 to 6, the steps of x, but got 0 to 6\. Try"),
        (torch.tensor([6]), r"each of 2 sequences .* torch.int64 of shape \(1,\)\. Try lengths"),
        (torch.tensor([1.5, 6]), r"a whole number, but got torch.float32 of shape \(2,\)\. Try"),
    ],
)
def test_lengths_of_other_sequences_are_refused(lengths: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _ = Batch(torch.zeros(2, 6, 3), torch.zeros(2), lengths).inputs


def test_lengths_may_be_of_any_whole_type() -> None:
    short = Batch(torch.zeros(2, 6, 3), torch.zeros(2), torch.tensor([2, 6], dtype=torch.int32))
    assert short.inputs.batch_sizes.tolist() == [2, 2, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("shapes", "timed"),
    [([(3,)], False), ([(5, 3)], True), ([(1, 8, 8)], False), ([(5, 3), (5, 3)], False)],
)
def test_time_is_the_second_of_three_dimensions(shapes: list[Any], timed: bool) -> None:
    """A pair of inputs is no sequence, even if both of them are."""
    inputs = [torch.zeros(shape) for shape in shapes]
    x = inputs[0] if len(inputs) == 1 else tuple(inputs)
    samples = [(x, torch.tensor(n)) for n in range(4)]
    loader: DataLoader[Any] = DataLoader(samples, batch_size=2)  # type: ignore[arg-type]
    assert DatasetTask(samples).timed is timed  # type: ignore[arg-type]
    assert LoaderTask(loader).timed is timed
