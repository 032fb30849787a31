"""Pairs of sentences."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from attractor.errors import InputError
from attractor.tasks import SICK, SNLI, PairTask
from attractor.tasks.data.pairs import Pair, load_sick, load_snli
from attractor.tasks.pairs import by_premise

PAIRS = [
    Pair("A dog runs.", "An animal moves.", "entailment"),
    Pair("A dog runs.", "A dog sleeps", "contradiction"),
]


def write_snli(root: Path, part: str, pairs: list[Pair], *, packed: bool = False) -> None:
    folder = root / "snli_1.0"
    folder.mkdir(exist_ok=True)
    lines = [
        json.dumps({"gold_label": p.label, "sentence1": p.premise, "sentence2": p.hypothesis})
        for p in pairs
    ]
    text = "\n".join(lines) + "\n"
    path = folder / f"snli_1.0_{part}.jsonl"
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def test_a_premise_is_followed_by_a_mark_and_a_hypothesis() -> None:
    task = PairTask(PAIRS, PAIRS[1:], PAIRS)
    batch = task.samples(torch.tensor([0, 1]))
    known = task.vocabulary.tokens
    told = [" ".join(known[n] for n in row.tolist()) for row in batch.x]
    assert told[0] == "a dog runs . <then> an animal moves ."
    assert told[1].startswith("a dog runs . <then> a dog sleeps")
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [9, 8]
    assert batch.y.tolist() == [0, 2]
    assert task.features == (len(known),) == (10,)
    assert task.output_size == 3
    plain: Any = [tuple(pair) for pair in PAIRS]
    assert torch.equal(PairTask(plain, plain, plain).train.x, PairTask(PAIRS, PAIRS, PAIRS).train.x)


def test_rare_and_unseen_words_are_unknown() -> None:
    task = PairTask(PAIRS, [Pair("A cat", "runs", "neutral")], PAIRS, least=2)
    assert task.vocabulary.tokens == ("<unk>", "<then>", ".", "a", "dog", "runs")
    assert next(task.held_out("valid", 1)).x.tolist() == [[3, 0, 1, 5]]


def test_snli_leaves_out_what_the_judges_did_not_agree_on(tmp_path: Path) -> None:
    write_snli(tmp_path, "dev", [*PAIRS, Pair("a", "b", "-")], packed=True)
    assert load_snli("dev", tmp_path) == PAIRS
    with pytest.raises(InputError, match=r"expected snli_1\.0_train\.jsonl in"):
        SNLI(root=tmp_path)
    for part in ("train", "test"):
        write_snli(tmp_path, part, PAIRS[::-1])
    task = SNLI(root=tmp_path)
    assert task.train.y.tolist() == [2, 0]
    assert next(task.held_out("valid", 9)).y.tolist() == [0, 2]


def test_no_premise_is_in_two_parts() -> None:
    pairs = [Pair(str(n % 40), str(n), "neutral") for n in range(120)]
    parts = [{pair.premise for pair in part} for part in by_premise(pairs)]
    assert [len(part) for part in parts] == [32, 4, 4]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]


def test_sick_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    (tmp_path / "sick").mkdir()
    header = "pair_ID\tsentence_B\tsentence_A\trelatedness_score\tentailment_judgment\r\n"
    for name in ("SICK_train", "SICK_trial", "SICK_test_annotated"):
        row = "1\tsecond\tfirst\t4.5\tNEUTRAL\r\n"
        (tmp_path / "sick" / f"{name}.txt").write_text(header + row)
    assert load_sick("dev", tmp_path) == [Pair("first", "second", "neutral")]
    assert SICK(root=tmp_path).train.y.tolist() == [1]


def test_bad_files(tmp_path: Path) -> None:
    write_snli(tmp_path, "dev", [Pair("a", "b", "maybe")])
    with pytest.raises(InputError, match="but got: the label 'maybe' in pair 1"):
        load_snli("dev", tmp_path)
    for sentence in (None, 3):
        write_snli(tmp_path, "dev", [PAIRS[0], Pair("a", sentence, "neutral")])  # type: ignore[arg-type]
        with pytest.raises(InputError, match="but got: a sentence that is no text in pair 2"):
            load_snli("dev", tmp_path)
    (tmp_path / "snli_1.0" / "snli_1.0_dev.jsonl").write_text('{"gold_label": "neutral"}\n')
    with pytest.raises(InputError, match="expected pairs of sentences in"):
        load_snli("dev", tmp_path)
    (tmp_path / "snli_1.0" / "snli_1.0_dev.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no pairs at all"):
        load_snli("dev", tmp_path)
    with pytest.raises(InputError, match="expected validation pairs of sentences"):
        PairTask(PAIRS, [], PAIRS)
    strange = [*PAIRS, Pair("a", "b", "maybe")]
    message = "labelled entailment, neutral, contradiction, but pair 2 is labelled 'maybe'. Rename"
    for given in ((strange, PAIRS, PAIRS), (PAIRS, strange, PAIRS), (PAIRS, PAIRS, strange)):
        with pytest.raises(InputError, match=message):
            PairTask(*given)
