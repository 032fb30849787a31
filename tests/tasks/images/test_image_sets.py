"""SVHN and STL-10, from files of their formats, and images to be made."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import savemat
from torch import nn

from attractor.errors import InputError
from attractor.tasks import STL10, SVHN, Generate, load_stl10, load_svhn
from tasks.written import write_stl10, write_svhn


def test_svhn_has_channels_first_and_zero_for_ten(tmp_path: Path) -> None:
    x = np.zeros((32, 32, 3, 2), np.uint8)
    x[4, 7, 1, 0], x[31, 0, 2, 1] = 200, 90
    savemat(tmp_path / "train_32x32.mat", {"X": x, "y": np.array([[10], [3]], np.uint8)})
    found = load_svhn("train", tmp_path)
    assert found.x.shape == (2, 3, 32, 32)
    assert (int(found.x[0, 1, 4, 7]), int(found.x[1, 2, 31, 0])) == (200, 90)
    assert int(found.x.sum()) == 290
    assert found.y.tolist() == [0, 3]


def test_svhn_with_the_extra_images(tmp_path: Path) -> None:
    write_svhn(tmp_path, train=50, test=10)
    assert len(SVHN(root=tmp_path)) == 45
    task = SVHN(order="image", extra=True, root=tmp_path)
    assert len(task) == 85
    assert task.features == (3, 32, 32)
    extra = load_svhn("extra", tmp_path)
    last = task.samples(torch.arange(45, 85))
    assert torch.equal(last.y, extra.y)
    torch.testing.assert_close(last.x, extra.x / 255)


def test_stl10_has_columns_first_in_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    x = np.zeros((1, 3, 96, 96), np.uint8)
    x[0, 2, 5, 80] = 77  # channel, column, row
    (folder / "test_X.bin").write_bytes(x.tobytes())
    (folder / "test_y.bin").write_bytes(bytes([10]))
    found = load_stl10("test", tmp_path)
    assert int(found.x[0, 2, 80, 5]) == 77
    assert found.y.tolist() == [9]


def test_stl10_as_a_task(tmp_path: Path) -> None:
    write_stl10(tmp_path, train=20, test=6)
    task = STL10(side=12, root=tmp_path)
    assert (len(task), task.input_size) == (18, 36)
    assert next(task.held_out("test", 6)).x.shape == (6, 12, 36)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected train_32x32\.mat"):
        load_svhn("train", tmp_path)
    y = np.array([[1], [2]])
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((28, 28, 3, 2), np.uint8), "y": y})
    with pytest.raises(InputError, match="expected images of 32 x 32 x 3 bytes"):
        load_svhn("train", tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": y + 9})
    with pytest.raises(InputError, match="expected labels from 1 to 10"):
        load_svhn("train", tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((32, 32, 3, 0), np.uint8), "y": y[:0]})
    with pytest.raises(InputError, match="expected images in .*, but there are none"):
        load_svhn("train", tmp_path)
    (tmp_path / "train_32x32.mat").write_bytes(b"no matlab")
    with pytest.raises(InputError, match="expected arrays X and y"):
        load_svhn("train", tmp_path)
    with pytest.raises(InputError, match=r"expected train_X\.bin"):
        load_stl10("train", tmp_path)
    write_stl10(tmp_path, train=3, test=1)
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(bytes([1, 2]))
    with pytest.raises(InputError, match="for each of the 2 labels"):
        load_stl10("train", tmp_path)
    (tmp_path / "stl10_binary" / "test_y.bin").write_bytes(bytes([0]))
    with pytest.raises(InputError, match="expected labels of STL-10 from 1 to 10"):
        load_stl10("test", tmp_path)


class Noisy(nn.Module):
    """A bound with noise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum((1, 2, 3)) + torch.rand(len(x))


def test_a_threshold_is_half_of_the_scale() -> None:
    plain, sharp = (Generate("digits", threshold=one, samples=50) for one in (False, True))
    x = plain.samples(torch.arange(50)).x
    assert ((x > 0.3) & (x < 0.5)).any()
    assert torch.equal(sharp.samples(torch.arange(50)).x, (x > 0.5).float())


def test_a_bound_is_averaged_and_measured_with_the_same_noise() -> None:
    task = Generate("digits", threshold=True, samples=7)
    assert len(task) == 7
    batch = task.batches(3, generator=torch.Generator()).draw()
    assert {*batch.x.unique().tolist()} == {0.0, 1.0}
    before = torch.get_rng_state()
    one = task.measure(Noisy(), batch)["loss"]
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)  # whatever was drawn meanwhile
    assert task.measure(Noisy(), batch)["loss"] == one
    assert 0 < one[0] - float(batch.x.sum()) < 3
    assert Generate("digits").shown().x.unique().numel() > 2
    with pytest.raises(InputError, match=r"Try model\.name=draw"):
        task.loss(nn.Flatten(), batch)


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        ("cats", {}, "name of a known data set .* but got 'cats'"),
        ("digits", {"normalise": True}, "option of the data set digits .* but got 'normalise'"),
        ("digits", {"order": "rows"}, "option of the data set digits .* but got 'order'"),
        ("mnist", {"batches": 2}, "option of the data set mnist .* but got 'batches'"),
        ("digits", {"side": 9}, "side to be at most 8, as it shrinks images of 8 x 8, but got 9"),
    ],
)
def test_options_that_are_not_of_the_images_are_refused(
    images: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Generate(images, **options)
