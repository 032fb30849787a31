"""Small files in the official formats of data sets that are seldom at hand."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from scipy.io import savemat


def write_svhn(root: Path, train: int = 1500, test: int = 200) -> None:
    """Files of SVHN's second format with random images."""
    draw = np.random.default_rng(0)
    for half, count in (("train", train), ("test", test), ("extra", 40)):
        x = draw.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        y = draw.integers(1, 11, (count, 1), dtype=np.uint8)
        savemat(root / f"{half}_32x32.mat", {"X": x, "y": y}, do_compression=True)


def write_stl10(root: Path, train: int = 1500, test: int = 200) -> None:
    """Binary files of STL-10 with random images."""
    draw = np.random.default_rng(1)
    folder = root / "stl10_binary"
    folder.mkdir()
    for half, count in (("train", train), ("test", test)):
        x = draw.integers(0, 256, (count, 3 * 96 * 96), dtype=np.uint8)
        (folder / f"{half}_X.bin").write_bytes(x.tobytes())
        (folder / f"{half}_y.bin").write_bytes(draw.integers(1, 11, count, np.uint8).tobytes())


def write_text(root: Path) -> None:
    """A corpus of random words, and of such as the training text does not have."""
    draw = np.random.default_rng(2)
    folder = root / "words"
    folder.mkdir()
    for half, count in (("train", 4000), ("valid", 3000), ("test", 3000)):
        words = [f"w{n}" for n in draw.integers(0, 50, count)]
        more = ["<unk>"] if half == "train" else ["strange"]
        lines = [" ".join(words[n : n + 9]) for n in range(0, count, 9)]
        (folder / f"{half}.txt").write_text("\n".join([*lines, *more]) + "\n")


WRITERS = {"svhn": write_svhn, "stl10": write_stl10, "text": write_text}


@cache
def written(name: str) -> Path:
    """A folder with the files of a data set."""
    root = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    WRITERS[name](root)
    return root
