"""Pairs of sentences, from the files of SNLI and SICK, plain or compressed."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from attractor.errors import InputError
from attractor.tasks.data.root import VARIABLE, data_root
from attractor.tasks.data.text import read_text

LABELS = ("entailment", "neutral", "contradiction")

Part = Literal["train", "dev", "test"]

SICK = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}


DAMAGED = (ValueError, LookupError, TypeError, EOFError, OSError, lzma.LZMAError)
"""What reading a file raises that is not what its name says."""


class Pair(NamedTuple):
    """Two sentences, and whether the first entails or contradicts the second."""

    premise: str
    hypothesis: str
    label: str


def load_snli(part: Part, root: str | Path | None = None) -> list[Pair]:
    """The pairs of one part of SNLI that have a label on which the judges agreed.

    The file is ``snli_1.0/snli_1.0_train.jsonl`` below the data root, as published: an object with
    ``gold_label``, ``sentence1`` and ``sentence2`` on each line.

    References:
        Bowman et al. (2015), A large annotated corpus for learning natural language inference,
        arXiv:1508.05326.
    """
    found = _read(data_root(root) / "snli_1.0", f"snli_1.0_{part}.jsonl", _snli)
    return [pair for pair in found if pair.label != "-"]


def load_sick(part: Part, root: str | Path | None = None) -> list[Pair]:
    """The pairs of one part of SICK; its trial part is the development part.

    The file is ``sick/SICK_train.txt`` below the data root, as published: columns between tabs,
    named in the first line.

    References:
        Marelli et al. (2014), A SICK cure for the evaluation of compositional distributional
        semantic models.
    """
    return _read(data_root(root) / "sick", SICK[part], _sick)


def _snli(lines: list[str]) -> list[Pair]:
    objects = [json.loads(line) for line in lines if line.strip()]
    return [Pair(one["sentence1"], one["sentence2"], one["gold_label"]) for one in objects]


def _sick(lines: list[str]) -> list[Pair]:
    names, *rows = [line.split("\t") for line in lines if line.strip()]
    places = [names.index(n) for n in ("sentence_A", "sentence_B", "entailment_judgment")]
    return [Pair(row[places[0]], row[places[1]], row[places[2]].lower()) for row in rows]


def _expect_pairs(pairs: list[Pair]) -> None:
    if not pairs:
        raise ValueError("no pairs at all")
    for number, pair in enumerate(pairs, 1):
        if not all(isinstance(sentence, str) for sentence in pair[:2]):
            raise ValueError(f"a sentence that is no text in pair {number}")
        if pair.label not in {*LABELS, "-"}:
            raise ValueError(f"the label {pair.label!r} in pair {number}")


def _read(folder: Path, name: str, parse: Callable[[list[str]], list[Pair]]) -> list[Pair]:
    for packed in ("", ".gz", ".xz"):
        found = folder / (name + packed)
        if not found.exists():
            continue
        try:
            pairs = parse([line.rstrip("\r") for line in read_text(found).split("\n")])
            _expect_pairs(pairs)
            return pairs
        except DAMAGED as error:
            raise InputError(
                f"expected pairs of sentences in {found}, labelled {', '.join(LABELS)}, but got: "
                f"{error}. Get the file again."
            ) from error
    raise InputError(
        f"expected {name} in {folder}, plain or compressed, but there is none. "
        f"Put it there, or set {VARIABLE} to a folder that has it."
    )
