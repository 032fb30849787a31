"""Texts as tokens, read in pieces that go on from each other."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, LanguageTask, TextFolder
from attractor.tasks.continued import Continued, in_order
from attractor.tasks.data.root import data_root
from attractor.tasks.language import PTBCharacters, PTBWords
from attractor.tasks.vocabulary import Vocabulary, tokens_of
from attractor.training import evaluate


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


class Counting(nn.Module):
    """Says the next token of a cycle if its state, the number of tokens so far, is even."""

    carries_state = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.zeros(1))

    def initial_state(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        seen = state[:, None] + torch.arange(x.shape[1])
        right = torch.nn.functional.one_hot((x + 1) % 5, self.size).float()
        return right * (3 * (seen % 2 == 0))[..., None] + self.weight, state + x.shape[1]


def cycle(tokens: int) -> LanguageTask:
    text = " ".join(str(n % 5) for n in range(tokens))
    return LanguageTask(dict.fromkeys(("train", "valid", "test"), text), level="word", steps=4)


def test_every_token_but_the_first_is_asked_for_once_in_its_order() -> None:
    text = torch.arange(23)
    for streams, steps, size in ((1, 5, 1), (3, 2, 2), (4, 100, 3), (50, 3, 7)):
        asked: dict[int, int] = {}
        for batch in in_order(text, streams, steps, size):
            keep = batch.y != IGNORE
            for shown, wanted in zip(batch.x[keep].tolist(), batch.y[keep].tolist(), strict=True):
                assert wanted == shown + 1
                asked[wanted] = asked.get(wanted, 0) + 1
        assert asked == dict.fromkeys(range(1, 23), 1)


def test_pieces_of_a_held_out_text_go_on_from_each_other() -> None:
    batches = list(in_order(torch.arange(21), 4, 2, 3))
    rows = [batch.x[0] for batch in batches if len(batch) == 3]
    assert torch.cat(rows).tolist() == [0, 1, 2, 3, 4]
    assert [batch.continues for batch in batches] == [False, True, True] * 2


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_measures_do_not_depend_on_the_batch_size(size: int) -> None:
    task = cycle(41)
    found = evaluate(Counting(task.input_size), task, "test", size)
    # 41 words and the end of the line: 41 are asked for in 20 streams of 3, in each of which the
    # model knows the first and the third, but for the last of all, which is the end of the line
    states = [n % 3 for n in range(41)]
    right, wrong = 3 - math.log(math.e**3 + 5), -math.log(6)
    total = sum(right if state % 2 == 0 else wrong for state in states[:-1])
    total += -math.log(math.e**3 + 5) if states[-1] % 2 == 0 else wrong
    assert found["loss"] == pytest.approx(-total / 41, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))
    assert found["bits"] == pytest.approx(found["loss"] / math.log(2))


def test_training_pieces_go_around_the_text_and_carry_on() -> None:
    text = torch.arange(11)
    sampler = Continued(text, 3, 2, generator=seeded(5))
    first, second = sampler.draw(), sampler.draw()
    assert (first.continues, second.continues) == (False, True)
    for batch in (first, second):
        assert torch.equal(batch.y, (batch.x + 1) % 11)
    assert torch.equal(second.x[:, 0], (first.x[:, -1] + 1) % 11)
    assert second.x.shape == (3, 1)
    starts = set()
    for _ in range(40):
        batch = sampler.draw()
        if not batch.continues:
            starts.add(int(batch.x[0, 0]))
    assert len(starts) > 5


def test_a_sampler_refuses_a_place_of_another_text() -> None:
    state = Continued(torch.arange(100), 3, 2, generator=seeded()).state_dict()
    with pytest.raises(InputError, match="expected a place in 5 tokens"):
        Continued(torch.arange(5), 3, 2, generator=seeded()).load_state_dict(
            state | {"place": torch.tensor([70, 0])}
        )


def test_tokens_of_words_and_characters() -> None:
    assert tokens_of(" a bc \n\nd\n", "word") == ["a", "bc", "<eos>", "<eos>", "d", "<eos>"]
    assert tokens_of(" a bc \n", "character") == ["a", "_", "b", "c", "<eos>"]
    assert tokens_of("", "word") == []


def test_bad_texts(tmp_path: Path) -> None:
    def texts(train: str, valid: str = "a b", test: str = "a b") -> Any:
        return {"train": train, "valid": valid, "test": test}

    with pytest.raises(InputError, match="the text is empty"):
        LanguageTask(texts(""), level="word")
    with pytest.raises(InputError, match="expected a valid text of at least two tokens"):
        LanguageTask(texts("a b", valid=""), level="word")
    with pytest.raises(InputError, match=r"but got 'c', and there is no <unk>"):
        LanguageTask(texts("a b", test="a c"), level="word")
    for text, kind in (
        (tmp_path / "valid.txt", "PosixPath"),
        (b"a b", "bytes"),
        (None, "NoneType"),
    ):
        with pytest.raises(InputError, match=f"expected the valid text itself, but got a {kind}"):
            LanguageTask(texts("a b") | {"valid": text}, level="word")
    known = LanguageTask(texts("a <unk>", test="a c", valid="a"), level="word")
    assert known.held["test"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="expected a text of at least the 9 tokens"):
        known.batches(9, generator=seeded())
    with pytest.raises(InputError, match="unknown level|level"):
        LanguageTask(texts("a b"), level="letter")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected train\.txt"):
        TextFolder("nowhere", root=tmp_path)


def test_a_part_of_the_training_text_keeps_the_vocabulary() -> None:
    texts: Any = dict.fromkeys(("train", "valid", "test"), "a b c d e")
    task = LanguageTask(texts, level="word", tokens=3)
    assert (len(task.train), task.input_size) == (3, 6)


def test_a_vocabulary_gives_each_token_one_number() -> None:
    known = Vocabulary(["b", "a", "b", "c"])
    assert known.tokens == ("b", "a", "c")
    assert known.numbers(["c", "b", "a"]).tolist() == [2, 0, 1]


@pytest.mark.skipif(not (data_root() / "ptb").exists(), reason="needs Penn Treebank")
def test_penn_treebank_has_the_published_sizes() -> None:
    words, characters = PTBWords(), PTBCharacters()
    assert (words.input_size, len(words.train)) == (10_000, 929_589)
    assert [len(words.held[half]) for half in ("valid", "test")] == [73_760, 82_430]
    assert (characters.input_size, len(characters.train)) == (50, 4_975_414 + 42_068)


def test_a_batch_says_whether_it_goes_on() -> None:
    task = cycle(30)
    assert [batch.continues for batch in task.held_out("valid", 20)][:2] == [False]
    assert isinstance(task.shown(), Batch)


def test_a_text_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="train, valid and test, but valid is missing. Try"):
        LanguageTask({"train": "a b", "test": "a b"}, level="word")
    with pytest.raises(InputError, match="but valid and test are missing. Try"):
        LanguageTask({"train": "a b"}, level="word")


@pytest.mark.parametrize(("level", "name"), [("character", "bits"), ("word", "perplexity")])
def test_a_text_is_ranked_as_papers_do(level: Any, name: str) -> None:
    texts: Any = dict.fromkeys(("train", "valid", "test"), "a b c d e")
    task = LanguageTask(texts, level=level)
    assert task.leading == name
    assert name in task.measures
