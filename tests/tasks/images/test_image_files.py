"""MNIST and its relatives from files that the tests write, each image with its own number."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.tasks import KMNIST, MNIST, FashionMNIST, ImageTask
from attractor.tasks.images.files import load_images


def numbered(count: int, first: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    images = np.zeros((count, 784), np.uint8)
    images[:, :4] = np.arange(first, first + count, dtype=">u4").view(np.uint8).reshape(count, 4)
    return images.reshape(count, 28, 28)


def write(path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    magic = 0x0800 | array.ndim
    path.write_bytes(struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes())


def write_half(folder: Path, half: str, count: int, first: int, label: int = 0) -> None:
    write(folder / f"{half}-images-idx3-ubyte", numbered(count, first))
    labels = (np.arange(count) % 10 + label).astype(np.uint8)
    write(folder / f"{half}-labels-idx1-ubyte", labels)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MNIST unpacked, and links to it under the names of its relatives."""
    folder = tmp_path_factory.mktemp("data")
    write_half(folder / "MNIST/raw", "train", 60000, 0)
    write_half(folder / "MNIST/raw", "t10k", 10000, 60000)
    for other in ("FashionMNIST", "KMNIST"):
        (folder / other).symlink_to(folder / "MNIST")
    return folder


def numbers(task: ImageTask) -> list[list[int]]:
    found = []
    for part in (task.train, task.valid, task.test):
        assert part is not None
        digits = part.x.flatten(1)[:, :4].long()
        found.append((digits * torch.tensor([1 << 24, 1 << 16, 1 << 8, 1])).sum(1).tolist())
    return found


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST, KMNIST])
def test_the_splits_are_50k_10k_10k_in_order(kind: type[MNIST], root: Path) -> None:
    train, valid, test = numbers(kind(root=root))
    assert train == list(range(50000))
    assert valid == list(range(50000, 60000))
    assert test == list(range(60000, 70000))


def test_the_test_images_alone_are_split_8k_1k_1k(root: Path) -> None:
    train, valid, test = numbers(KMNIST(source="test", root=str(root)))
    assert train == list(range(60000, 68000))
    assert valid == list(range(68000, 69000))
    assert test == list(range(69000, 70000))


def test_psmnist_shows_each_pixel_once_and_then_nothing(root: Path) -> None:
    task = MNIST(order="permuted", trailing=True, root=root)
    batch = next(task.held_out("test", 300))
    x, y = batch.x, batch.y
    assert x.shape == (300, 785, 1)
    assert (x[:, -1] == 0).all()
    pixels = task.test.x[:300].flatten(1).sort().values
    read = (x[:, :-1, 0] * 255).round().to(torch.uint8).sort().values
    assert torch.equal(read, pixels)
    assert torch.equal(y, torch.arange(300) % 10)


def test_the_root_is_taken_from_the_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTRACTOR_DATA", str(root))
    assert len(load_images("kmnist", "test", None).y) == 10000


def test_a_class_beyond_ten_is_refused(tmp_path: Path) -> None:
    write_half(tmp_path / "KMNIST/raw", "t10k", 10000, 0, label=5)
    with pytest.raises(InputError, match="test labels of kmnist below 10, but got 14"):
        KMNIST(source="test", root=tmp_path)


def test_an_unknown_source_is_refused(root: Path) -> None:
    with pytest.raises(InputError, match=r"known source \(all, test\), but got 'tests'"):
        KMNIST(source="tests", root=root)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST, KMNIST])
def test_missing_files_are_named_with_three_ways_out(kind: type[MNIST], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--data .*ATTRACTOR_DATA.*`attractor data fetch ") as got:
        kind(root=tmp_path)
    assert str(tmp_path) in str(got.value)
