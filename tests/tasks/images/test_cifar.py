"""CIFAR-10 and CIFAR-100 from small files of the official format, in which images are numbered."""

import gzip
import lzma
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks import CIFAR10, load_cifar10, load_cifar100
from attractor.tasks.data import DATASETS
from attractor.tasks.images.cifar10 import grey_corner

RECORDS = 20
"""Images in each file, in place of 10,000 or 50,000."""


def records(first: int, labels: int) -> NDArray[np.uint8]:
    """Random images whose first red pixel is their number; its last digit is the (last) label."""
    number = np.arange(first, first + RECORDS)
    content = np.random.default_rng(first).integers(0, 256, (RECORDS, labels + 3072))
    content[:, 0] = number // 10
    content[:, labels - 1] = number % 10
    content[:, labels] = number
    return content.astype(np.uint8)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two training batches and the test batch of CIFAR-10, and with CIFAR-100."""
    for name in ("cifar10", "cifar100"):
        entry = DATASETS[name]
        parts = {}
        for part, published in entry.parts.items():
            (form,) = published.forms
            assert published.shape is not None
            shape = (RECORDS, *published.shape[1:])
            parts[part] = replace(
                published, shape=shape, forms=(replace(form, sha256=None, size=None),)
            )
        monkeypatch.setitem(DATASETS, name, replace(entry, parts=parts))
    ten, hundred = tmp_path / "cifar-10-batches-bin", tmp_path / "cifar-100-binary"
    ten.mkdir()
    hundred.mkdir()
    (ten / "data_batch_1.bin").write_bytes(records(0, 1).tobytes())
    (ten / "data_batch_2.bin.xz").write_bytes(lzma.compress(records(20, 1).tobytes()))
    (ten / "test_batch.bin.gz").write_bytes(gzip.compress(records(100, 1).tobytes()))
    (hundred / "train.bin").write_bytes(records(0, 2).tobytes())
    (hundred / "test.bin.gz").write_bytes(gzip.compress(records(100, 2).tobytes()))
    return tmp_path


def test_a_record_is_a_label_and_the_planes_of_red_green_and_blue(root: Path) -> None:
    x, y = load_cifar10("train", root, batches=2)
    assert x.shape == (40, 3, 32, 32)
    assert x.dtype == torch.uint8
    assert x[:, 0, 0, 0].tolist() == list(range(40))
    assert y.tolist() == [n % 10 for n in range(40)]
    written = records(20, 1)
    for n, row, column in ((3, 0, 1), (7, 31, 31), (0, 5, 30)):
        place = 1 + 32 * row + column
        assert x[20 + n, :, row, column].tolist() == written[n, place::1024].tolist()


def test_the_last_tenth_of_the_training_images_is_for_validation(root: Path) -> None:
    task = CIFAR10(batches=2, root=root)
    numbers = [part.x[:, 0, 0, 0].tolist() for part in (task.train, task.valid, task.test) if part]
    assert numbers == [list(range(36)), list(range(36, 40)), list(range(100, 120))]


def test_images_are_shown_in_each_order(root: Path) -> None:
    test = load_cifar10("test", root)
    for order, expected in (
        ("image", test.x / 255),
        ("flat", test.x.flatten(1) / 255),
        ("rows", test.x.permute(0, 2, 3, 1).flatten(2) / 255),
        ("pixels", test.x.flatten(2).permute(0, 2, 1) / 255),
    ):
        task = CIFAR10(order=order, batches=2, root=root)  # type: ignore[arg-type]
        batch = next(task.held_out("test", RECORDS))
        x, y = batch.x, batch.y
        assert torch.equal(x, expected)
        assert torch.equal(y, test.y)
        assert task.timed == (order in ("rows", "pixels"))
        assert task.input_size == {"image": 3, "flat": 3072, "rows": 96, "pixels": 3}[order]


def test_grey_is_the_brightness_of_the_first_28_rows_and_columns(root: Path) -> None:
    task = CIFAR10(order="flat", grey=True, batches=2, root=root)
    colours = load_cifar10("test", root).x.numpy().astype(float)
    expected = np.empty((RECORDS, 28, 28))
    for row in range(28):
        for column in range(28):
            red, green, blue = colours[:, :, row, column].T
            expected[:, row, column] = 0.30 * red + 0.59 * green + 0.11 * blue
    assert np.abs(task.test.x.numpy() - expected).max() <= 0.5 + 1e-4
    assert next(task.held_out("test", 5)).x.shape == (5, 784)
    assert grey_corner(torch.full((1, 3, 32, 32), 255, dtype=torch.uint8)).min() == 255


def test_missing_batches_are_counted_and_the_way_out_is_named(root: Path) -> None:
    says = r"expected 5 training batches of CIFAR-10 below .*, but found 2\. Try batches=2, or"
    with pytest.raises(InputError, match=says):
        CIFAR10(root=root)
    with pytest.raises(InputError, match="at most the 5 training batches of CIFAR-10, but got 6"):
        CIFAR10(batches=6, root=root)
    with pytest.raises(InputError, match="batches to be at least 1, but got 0"):
        CIFAR10(batches=0, root=root)
    (root / "cifar-10-batches-bin/data_batch_1.bin").unlink()
    with pytest.raises(
        InputError, match="the train batch 1 of CIFAR-10 at .*`attractor data fetch"
    ):
        CIFAR10(batches=2, root=root)


def test_the_pickled_version_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    for name in ("data_batch_1", "test_batch"):
        content = pickle.dumps({b"data": np.zeros((10, 3072), np.uint8), b"labels": [0] * 10})
        (tmp_path / "cifar-10-batches-py" / name).write_bytes(content)
    with pytest.raises(InputError, match="cifar-10-batches-bin.*there is no such file"):
        CIFAR10(batches=1, root=tmp_path)


def test_a_label_beyond_the_classes_is_refused(root: Path) -> None:
    wrong = records(0, 1)
    wrong[3, 0] = 10
    (root / "cifar-10-batches-bin/data_batch_1.bin").write_bytes(wrong.tobytes())
    with pytest.raises(InputError, match="train labels of cifar10 below 10, but got 10"):
        CIFAR10(batches=1, root=root)


@pytest.mark.parametrize("half", ["train", "test"])
def test_cifar_100_has_a_coarse_and_a_fine_label(root: Path, half: str) -> None:
    first = 0 if half == "train" else 100
    x, fine = load_cifar100(half, root)  # type: ignore[arg-type]
    coarse = load_cifar100(half, root, coarse=True).y  # type: ignore[arg-type]
    numbers = range(first, first + RECORDS)
    assert x.shape == (RECORDS, 3, 32, 32)
    assert x[:, 0, 0, 0].tolist() == list(numbers)
    assert fine.tolist() == [n % 10 for n in numbers]
    assert coarse.tolist() == [n // 10 for n in numbers]
    assert x[2, :, 4, 5].tolist() == records(first, 2)[2, 2 + 32 * 4 + 5 :: 1024].tolist()


def test_an_unknown_half_is_refused(root: Path) -> None:
    for load in (load_cifar10, load_cifar100):
        with pytest.raises(InputError, match=r"known half \(test, train\), but got 'valid'"):
            load("valid", root)  # type: ignore[arg-type]
