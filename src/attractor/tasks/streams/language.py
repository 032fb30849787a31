"""Text of one domain after the other, character by character."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.data.text import load_text
from attractor.tasks.streams.stream import Stream, cites

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
"""The characters that are told apart: a new line and those of ASCII that are printed."""

OTHER = len(ALPHABET)
"""Stands for all other characters."""


@cites("merity2017pointer")
def language(
    *,
    domains: Sequence[str] = ("ptb", "wikitext-2"),
    length: int = 50,
    samples: int | None = None,
    root: str | Path | None = None,
) -> Stream:
    """Say the next character: each task is the text of another domain.

    A text is cut into pieces, and the answer at each step is the character that follows. All
    domains share one alphabet, and so one output layer (`ALPHABET`, and one more for all else).

    Args:
        domains: corpora: ``"ptb"`` (newspaper), ``"wikitext-2"`` (encyclopedia), or any folder
            below the data root with a ``train.txt`` and a ``test.txt``, plain or compressed.
        length: characters of a piece.
        samples: at most so many pieces of each training and each test text, the first ones.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(samples, length, 97)``, one-hot when read, for a model with ``batch_first=True`` that
        answers at each step, such as `SequenceTagger`; y ``(samples, length)``.

    Example:
        >>> stream = language(samples=1000)  # doctest: +SKIP
        >>> [task.name for task in stream]  # doctest: +SKIP
        ['ptb', 'wikitext-2']

    References:
        Marcus et al. (1993), Building a large annotated corpus of English; Merity et al. (2017),
        Pointer sentinel mixture models, arXiv:1609.07843 (WikiText).
    """
    whole("length", length, 1)
    if samples is not None:
        whole("samples", samples, 1)
    tasks = []
    for place, name in enumerate(domains):
        train, test = (
            _pieces(name, load_text(name, half, root), length, samples)
            for half in ("train", "test")
        )
        answers = tuple(range(OTHER + 1))
        tasks.append(ArrayTask(name, place, train, test, answers, one_hot, keep=False))
    return Stream(f"language of {', '.join(domains)}", tasks)


def one_hot(x: Tensor) -> Tensor:
    """Characters as vectors of zeros and a one."""
    return F.one_hot(x.long(), OTHER + 1).float()


def encode(text: str) -> Tensor:
    """The place of each character in the alphabet.

    Example:
        >>> encode("a b").tolist()
        [66, 1, 67]
    """
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    places = np.full(128, OTHER, np.uint8)
    places[[ord(character) for character in ALPHABET]] = np.arange(OTHER)
    return torch.from_numpy(places[np.minimum(points, 127)])


def _pieces(name: str, text: str, length: int, samples: int | None) -> Data:
    pieces = (len(text) - 1) // length
    if pieces < 1:
        raise InputError(
            f"expected texts of more than {length} characters in {name}, but got one of "
            f"{len(text)}. Try a smaller length."
        )
    pieces = pieces if samples is None else min(pieces, samples)
    codes = encode(text[: pieces * length + 1])
    x, y = codes[:-1].reshape(pieces, length), codes[1:].reshape(pieces, length)
    return Data(x, y.long())
