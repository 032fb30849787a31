"""Streams from arrays, files mapped into memory, data sets and loaders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from attractor import InputError
from attractor.continual import ER, Learner
from attractor.models import MLP
from attractor.tasks import ArrayTask, Batch, DatasetTask
from attractor.tasks.streams import Stream, stream_of, task_of


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


class Squares(Dataset[Any]):
    """Reads a sample when it is asked for, and transforms it."""

    def __len__(self) -> int:
        return 30

    def __getitem__(self, n: int) -> tuple[Tensor, int]:
        return torch.full((4,), float(n)) ** 2 / 900, n % 3


def finished(stream: Any, strategy: Any, outputs: int, features: int = 4) -> Learner:
    model = MLP([features, 8, outputs], generator=seeded())
    learner = Learner(model, stream, strategy, batch_size=5, iterations=6)
    while not learner.done:
        learner.advance()
    return learner


def test_a_file_mapped_into_memory_is_read_row_by_row(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 256, (40, 4), dtype=np.uint8)
    values.tofile(tmp_path / "x.bin")
    x = np.memmap(tmp_path / "x.bin", dtype=np.uint8, mode="r", shape=(40, 4))
    y = np.arange(40) % 4
    strategy = ER(size=10)
    stream = stream_of(
        "files",
        [((x[:20], y[:20] % 2), (x[20:], y[20:] % 2)), ((x[20:], y[:20] % 2 + 2), (x, y))],
        transform=lambda x: x.float() / 255,
        classes=range(4),
    )
    task = stream[0]
    assert isinstance(task, ArrayTask)
    assert task.train.x.numpy().base is not None  # no copy: the file's own pages
    assert not task.keep
    assert torch.equal(task.samples(torch.tensor([3])).x, torch.tensor(values[3:4]) / 255)
    learner = finished(stream, strategy, 4)
    kept = strategy.episodes.memory.store.columns[0]
    assert kept.dtype == torch.uint8
    shown = strategy.episodes.all_of([0]).x
    assert shown.is_floating_point()
    assert torch.equal(shown, kept[: len(shown)].float() / 255)
    assert learner.result().matrix.shape == (3, 2)


def test_samples_are_augmented_anew_at_each_replay() -> None:
    x, y = torch.arange(40.0).reshape(10, 4), torch.arange(10) % 2

    def shift(x: Tensor, generator: Generator) -> Tensor:
        return x + torch.rand(len(x), 1, generator=generator)

    stream = stream_of("shifted", [((x, y), (x, y))] * 2, augment=shift)
    strategy = ER(size=10)
    finished(stream, strategy, 2)
    first, second = strategy.episodes.all_of([0]).x, strategy.episodes.all_of([0]).x
    assert not torch.equal(first, second)
    whole = strategy.episodes.memory.store.columns[0][:10]
    assert {tuple(row) for row in whole.tolist()} <= {tuple(row) for row in x.tolist()}
    assert ((first - whole) >= 0).all()
    assert ((first - whole) < 1).all()
    assert torch.equal(stream[0].first("test", 10).x, x)


def test_a_data_set_and_a_loader_give_the_same_task() -> None:
    loader = DataLoader(Squares(), batch_size=7, shuffle=True)
    one = stream_of("set", [(Squares(), Squares())] * 2, classes=range(3))
    other = stream_of("loader", [(loader, loader)] * 2, classes=range(3))
    index = torch.tensor([4, 29, 0])
    assert torch.equal(one[0].samples(index).x[:, 0], index**2 / 900)
    assert torch.equal(one[1].samples(index).x, other[1].samples(index).x)
    a, b = finished(one, ER(size=5), 3), finished(other, ER(size=5), 3)
    assert torch.equal(a.matrix, b.matrix)


def test_a_loader_keeps_its_way_of_putting_samples_together() -> None:
    def collate(samples: list[tuple[Tensor, int]]) -> Batch:
        x, y = zip(*samples, strict=True)
        return Batch(torch.stack(x) + 10, torch.tensor(y))

    loader = DataLoader(Squares(), batch_size=7, collate_fn=collate)
    task = task_of(loader, loader, classes=range(3))
    assert float(task.samples(torch.tensor([3])).x[0, 0]) == pytest.approx(10.01)


def test_one_more_task_after_the_stream() -> None:
    stream = stream_of("set", [(Squares(), Squares())], classes=range(3))
    learner = finished(stream, ER(size=5), 3)
    x, y = torch.rand(10, 4), torch.arange(10) % 5
    result = learner.learn(task_of((x, y), (x, y), name="more"))
    assert result.matrix.shape == (3, 2)
    layers = [one for one in learner.model.modules() if isinstance(one, nn.Linear)]
    assert layers[-1].out_features == 5


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([])


@pytest.mark.parametrize(
    ("train", "options", "words"),
    [
        (Squares(), {}, "does not tell without being read"),
        (Squares(), {"classes": range(3), "asks": "numbers"}, "no classes where numbers are"),
        (TensorDataset(torch.zeros(2, 3), torch.rand(2)), {"classes": [0]}, "say asks='numbers'"),
        (DataLoader(Endless()), {"classes": range(3)}, "whose samples have numbers"),
        ((torch.zeros(2, 3), torch.zeros(2)), {}, "test samples as arrays"),
    ],
)
def test_what_is_no_task_is_refused(train: Any, options: dict[str, Any], words: str) -> None:
    test = TensorDataset(torch.zeros(2, 3)) if isinstance(train, tuple) else train
    with pytest.raises(InputError, match=words):
        task_of(train, test, **options)


class Bytes(Dataset[Any]):
    """Images of bytes, the number of the sample in each place."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, n: int) -> tuple[Tensor, int]:
        return torch.full((4,), n, dtype=torch.uint8), n % 3


def shift(x: Tensor, generator: Generator) -> Tensor:
    return x + torch.rand(len(x), 1, generator=generator) / 8


def test_samples_of_a_data_set_are_kept_as_they_are_and_augmented_anew() -> None:
    stream = stream_of(
        "bytes",
        [(Bytes(), Bytes())] * 2,
        classes=range(3),
        transform=lambda x: x / 4,
        augment=shift,
    )
    strategy = ER(size=10)
    finished(stream, strategy, 3)
    kept = strategy.episodes.memory.store.columns[0]
    assert kept.dtype == torch.uint8
    first, second = strategy.episodes.all_of([0]).x, strategy.episodes.all_of([0]).x
    off = first - kept[:10] / 4
    assert not torch.equal(first, second)
    assert ((off >= 0) & (off < 1 / 8)).all()
    assert torch.equal(stream[0].first("test", 12).x[:, 0], torch.arange(12) / 4)
    shown = stream[0].samples(torch.tensor([5]), seeded())
    assert 1.25 < float(shown.x[0, 0]) < 1.375
    assert shown.raw is not None
    assert shown.raw.tolist() == [[5] * 4]
    plain = task_of(Bytes(), Bytes(), classes=range(3), transform=lambda x: x / 4)
    assert plain.keeps_raw
    assert not task_of(Squares(), Squares(), classes=range(3), transform=lambda x: 2 * x).keeps_raw


def test_each_task_may_have_classes_of_its_own() -> None:
    halves = [(Squares(), Squares())] * 2
    stream = stream_of("own", halves, classes=[range(3), [0, 1, 2, 5]])
    assert [task.classes for task in stream] == [(0, 1, 2), (0, 1, 2, 5)]
    with pytest.raises(InputError, match="classes of each of the 2 tasks, .* but got 3"):
        stream_of("own", halves, classes=[range(3)] * 3)


class Pairs(Dataset[Any]):
    """A vector, and an answer that is made of it: a number, some numbers, or labels."""

    def __init__(self, kind: str) -> None:
        self.x = torch.randn(40, 4, generator=seeded(1))
        y = self.x @ torch.tensor([[3.0, -2.0], [0.5, 1.0], [0.0, 4.0], [1.0, 0.0]]) - 6
        self.y = {"number": y[:, 0], "numbers": y, "labels": (y > -6).long()}[kind]

    def __len__(self) -> int:
        return 40

    def __getitem__(self, n: int) -> tuple[Tensor, Tensor]:
        return self.x[n], self.y[n]


@pytest.mark.parametrize(("kind", "outputs"), [("number", 1), ("numbers", 2), ("labels", 2)])
def test_numbers_and_labels_from_data_sets_are_those_from_arrays(kind: str, outputs: int) -> None:
    data = Pairs(kind)
    asks: Any = "labels" if kind == "labels" else "numbers"
    halves = [((data.x, data.y), (data.x, data.y)), (data, data)]
    ends = []
    for half in halves:
        stream = stream_of("pairs", [half] * 2, asks=asks)
        assert stream.outputs == outputs
        assert not stream[0].asks_classes
        learner = finished(stream, ER(size=8), outputs)
        ends.append(learner.result().matrix)
    assert torch.equal(ends[0], ends[1])
    said = MLP([4, 8, outputs], generator=seeded())(data.x)
    y = data.y.float().reshape(40, outputs)
    if asks == "numbers":
        spread = ((y - y.mean(0)) ** 2).mean()
        expected = 1 - ((said - y) ** 2).mean() / spread
    else:
        expected = ((said > 0) == (y > 0)).float().mean()
    assert float(ends[0][0, 0]) == pytest.approx(expected.item(), abs=1e-5)


def test_a_loss_of_ones_own_judges_numbers() -> None:
    data = Pairs("numbers")
    stream = stream_of("pairs", [(data, data)], asks="numbers")
    losses: list[Tensor] = []

    def absolute(model: nn.Module, batch: Batch) -> Tensor:
        losses.append((model(batch.x) - batch.y).abs().mean())
        return losses[-1]

    learner = Learner(MLP([4, 2], generator=seeded()), stream, iterations=3, loss=absolute)
    learner.advance()
    assert len(losses) == 1


def test_floating_answers_that_are_no_classes_are_refused_in_true_words() -> None:
    data = Pairs("numbers")
    with pytest.raises(InputError, match=r"torch.float32 that are not whole.* say asks='numbers'"):
        task_of((data.x, data.y), (data.x, data.y))
    task = DatasetTask(data, test=data, classes=(0, 1))
    with pytest.raises(InputError, match=r"numbers of classes .* got torch.float32. Try y.long"):
        Learner(MLP([4, 2]), Stream("pairs", [task]))
    tags = Pairs("labels")
    task = DatasetTask(tags, test=tags, classes=(0, 1))
    with pytest.raises(InputError, match=r"of shape \(2, 2, outputs\) .*say asks='labels'"):
        Learner(MLP([4, 2]), Stream("tags", [task]))
