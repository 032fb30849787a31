"""CUB-200-2011 from small files of the official layout."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from attractor.errors import InputError
from attractor.tasks import load_cub200

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
IMAGES = {  # name, class, for training, colour in the middle, columns and rows
    "1": ("001.Albatross/a_1.jpg", "1", "0", "red", (60, 40)),
    "2": ("001.Albatross/a_2.jpg", "1", "1", "green", (40, 40)),
    "3": ("003.Auk/b_1.jpg", "3", "1", "blue", (40, 80)),
    "4": ("002.Crow/c 1.jpg", "2", "0", "grey", (40, 40)),
}


def write_lines(path: Path, *rows: tuple[str, str]) -> None:
    path.write_text("".join(f"{key} {value}\n" for key, value in rows))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Photographs that are white but for the square in their middle."""
    folder = tmp_path / "CUB_200_2011"
    for name, _, _, colour, (width, height) in IMAGES.values():
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if colour == "grey":
            Image.new("L", (width, height), 128).save(path, quality=95)
            continue
        left, top = max(0, width - height) // 2, max(0, height - width) // 2
        image = Image.new("RGB", (width, height), (255, 255, 255))
        image.paste(COLOURS[colour], (left, top, width - left, height - top))
        image.save(path, quality=95)
    write_lines(folder / "images.txt", *((key, row[0]) for key, row in IMAGES.items()))
    write_lines(folder / "image_class_labels.txt", *((key, row[1]) for key, row in IMAGES.items()))
    write_lines(folder / "train_test_split.txt", *((key, row[2]) for key, row in IMAGES.items()))
    write_lines(folder / "classes.txt", ("1", "001.Albatross"), ("2", "002.Crow"), ("3", "003.Auk"))
    return tmp_path


def test_the_official_split_in_the_order_of_the_lists(root: Path) -> None:
    x, y = load_cub200("train", root, size=20)
    assert x.shape == (2, 3, 20, 20)
    assert x.dtype == torch.uint8
    assert y.tolist() == [0, 2]
    x, y = load_cub200("test", root, size=20)
    assert y.tolist() == [0, 1]


def test_the_middle_of_each_photograph_is_kept(root: Path) -> None:
    (green, blue), _ = load_cub200("train", root, size=20)
    (red, grey), _ = load_cub200("test", root, size=20)
    for image, colour in ((red, "red"), (green, "green"), (blue, "blue")):
        # JPEG blurs colours at edges, so look away from the border
        inside = image[:, 3:-3, 3:-3].numpy().astype(int)
        assert np.abs(inside - np.reshape(COLOURS[colour], (3, 1, 1))).max() < 20
    assert np.abs(grey.numpy().astype(int) - 128).max() < 5


def test_missing_files_are_named(root: Path, tmp_path: Path) -> None:
    (root / "CUB_200_2011/images" / IMAGES["2"][0]).unlink()
    with pytest.raises(InputError, match="expected a photograph at .*a_2.jpg, but it cannot be"):
        load_cub200("train", root)
    with pytest.raises(InputError, match="the images of CUB-200-2011 at .*images.txt"):
        load_cub200("train", tmp_path / "elsewhere")


def test_what_is_not_a_photograph_is_refused(root: Path) -> None:
    (root / "CUB_200_2011/images" / IMAGES["2"][0]).write_bytes(b"\x89PNG not a photograph")
    with pytest.raises(InputError, match="cannot identify image file"):
        load_cub200("train", root)


def test_lists_that_disagree_are_refused(root: Path) -> None:
    folder = root / "CUB_200_2011"
    write_lines(folder / "classes.txt", ("1", "001.Albatross"), ("2", "002.Crow"))
    with pytest.raises(InputError, match="to name the same images and classes, but they differ"):
        load_cub200("train", root)
    (folder / "train_test_split.txt").write_text("1 0\n2\n")
    with pytest.raises(InputError, match="two words on each line of the split .* but got '2'"):
        load_cub200("train", root)


@pytest.mark.parametrize("name", ["../../secret.jpg", "/etc/secret.jpg"])
def test_a_name_that_leads_out_of_the_folder_is_refused(root: Path, name: str) -> None:
    rows = [(key, name if key == "2" else row[0]) for key, row in IMAGES.items()]
    write_lines(root / "CUB_200_2011/images.txt", *rows)
    with pytest.raises(InputError, match="name of an image below .* but the list says"):
        load_cub200("train", root)


def test_without_pillow_the_way_out_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "PIL":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        InputError, match=r"pillow to be installed.*`pip install attractor\[images\]`"
    ):
        load_cub200("train", root)
