"""The birds of CUB-200-2011 as tensors, from their files."""

from pathlib import Path, PurePosixPath
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from attractor.checks import one_of, whole
from attractor.errors import InputError
from attractor.tasks.data import data_root, load_lines
from attractor.tasks.images.files import Half
from attractor.tasks.images.task import Images

FOLDER = "CUB_200_2011/images"


def load_cub200(half: Half, root: str | Path | None = None, size: int = 224) -> Images:
    """CUB-200-2011 in the order of ``images.txt`` and with the official split.

    Each photograph is scaled until its shorter side is `size`, and the middle is cut out. At a
    size of 224 the training images take 0.9 GB.

    Args:
        half: ``"train"`` (5,994 images) or ``"test"`` (5,794).
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.
        size: rows and columns of the images.

    Shape:
        x ``(images, 3, size, size)`` from 0 to 255, y ``(images,)`` from 0 to 199, in the order of
        ``classes.txt``.

    References:
        Wah et al. (2011), The Caltech-UCSD Birds-200-2011 dataset, CNS-TR-2011-001.
    """
    one_of("half", half, get_args(Half))
    whole("size", size, 1)
    names, labels, split = (table(part, root) for part in ("images", "labels", "split"))
    order = {label: n for n, label in enumerate(table("classes", root))}
    if not names.keys() == labels.keys() == split.keys() or not order.keys() >= set(
        labels.values()
    ):
        raise InputError(
            f"expected the lists of CUB-200-2011 below {data_root(root)} to name the same images "
            "and classes, but they differ. Delete them and run `attractor data fetch cub200`."
        )
    chosen = [key for key in names if split[key] == ("1" if half == "train" else "0")]
    x = torch.empty(len(chosen), 3, size, size, dtype=torch.uint8)
    for image, key in zip(x, chosen, strict=True):
        image.copy_(photograph(data_root(root) / FOLDER, names[key], size))
    return Images(x, torch.tensor([order[labels[key]] for key in chosen], dtype=torch.long))


def table(part: str, root: str | Path | None) -> dict[str, str]:
    """A list of the data set: on each line a number and what belongs to it."""
    rows = [line.split(maxsplit=1) for line in load_lines("cub200", part, root) if line.strip()]
    for row in rows:
        if len(row) != 2:
            raise InputError(
                f"expected two words on each line of the {part} of CUB-200-2011, but got "
                f"{' '.join(row)!r}. Delete that file and run `attractor data fetch cub200`."
            )
    return {key: value.strip() for key, value in rows}


def photograph(folder: Path, name: str, size: int) -> Tensor:
    """The middle square of a JPEG file, in colour.

    Shape:
        ``(3, size, size)`` of bytes.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise InputError(
            "expected pillow to be installed, which decodes the photographs of CUB-200-2011, but "
            "it is not. Try `pip install attractor[images]`."
        ) from error
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InputError(
            f"expected the name of an image below {folder}, but the list says {name!r}. "
            "Do not use this copy of CUB-200-2011."
        )
    try:
        with Image.open(folder / name, formats=["JPEG"]) as image:
            fitted = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(
            f"expected a photograph at {folder / name}, but it cannot be read: {error}. "
            "Delete the lists beside its folder and run `attractor data fetch cub200`."
        ) from error
    return torch.from_numpy(np.array(fitted)).permute(2, 0, 1)
