"""Text files, plain or compressed, and corpora of them."""

import gzip
import lzma
from io import BytesIO, TextIOWrapper
from itertools import product
from pathlib import Path
from typing import Literal

from attractor.errors import InputError
from attractor.tasks.data.root import VARIABLE, data_root

Half = Literal["train", "valid", "test"]

CORPORA = {"ptb": "ptb.{half}.txt", "wikitext-2": "wiki.{half}.tokens"}
"""What the files of known corpora are called, in a folder of the corpus's name."""

UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}
"""By its ending, how a file is unpacked."""


def read_text(path: Path) -> str:
    """The text of a file, which may be compressed (``.gz``, ``.xz``).

    Lines end in ``\\n``, whatever they end in there; a mark of the byte order, as spreadsheets
    write it, is no part of the text.

    Raises:
        ValueError, OSError, EOFError, lzma.LZMAError: if it is damaged or not UTF-8.
    """
    read = UNPACK.get(path.suffix.lower(), bytes)(path.read_bytes())
    return TextIOWrapper(BytesIO(read), encoding="utf-8-sig").read()


def load_text(name: str, half: Half, root: str | Path | None = None) -> str:
    """One part of a corpus: a file of its folder below the data root, plain or compressed.

    Args:
        name: ``"ptb"``, ``"wikitext-2"``, or any folder with a ``train.txt``, a ``valid.txt`` and a
            ``test.txt``.
        half: which part.
        root: the data root; ``None`` follows `data_root`.
    """
    folder = data_root(root) / name
    names = (CORPORA.get(name, "{half}.txt"), "{half}.txt")
    for pattern, packed in product(names, ("", ".gz", ".xz")):
        path = folder / (pattern.format(half=half) + packed)
        if path.exists():
            try:
                return read_text(path)
            except (ValueError, EOFError, OSError, lzma.LZMAError) as error:
                raise InputError(
                    f"expected text in {path}, but got: {error}. Get the file again."
                ) from error
    raise InputError(
        f"expected {names[0].format(half=half)} in {folder}, plain or compressed, but there is "
        f"none. Put it there, or set {VARIABLE} to a folder that has it."
    )
