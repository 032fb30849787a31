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
from attractor.tasks import ArrayTask, Batch
from attractor.tasks.streams import stream_of, task_of


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
        (Squares(), {"classes": range(3), "augment": lambda x, g: x}, "transforms its samples"),
        (DataLoader(Endless()), {"classes": range(3)}, "whose samples have numbers"),
        ((torch.zeros(2, 3), torch.zeros(2)), {}, "test samples as arrays"),
    ],
)
def test_what_is_no_task_is_refused(train: Any, options: dict[str, Any], words: str) -> None:
    test = TensorDataset(torch.zeros(2, 3)) if isinstance(train, tuple) else train
    with pytest.raises(InputError, match=words):
        task_of(train, test, **options)
