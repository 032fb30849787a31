"""Say the next token of a text."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, get_args

from torch import Generator

from attractor.checks import one_of, whole
from attractor.errors import InputError
from attractor.measures import ACCURACY, LOSS, Measure
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.continued import Continued, in_order
from attractor.tasks.data.text import Half, load_text
from attractor.tasks.vocabulary import Level, Vocabulary, tokens_of


class LanguageTask(Task):
    r"""Say each next token of a text, reading it in pieces with a state that is carried on.

    Over all N tokens of a split that are asked for,

    .. math::
        \mathrm{loss} = -\tfrac{1}{N} \sum_n \ln p(w_n \mid w_{<n}), \quad
        \mathrm{perplexity} = e^{\mathrm{loss}}, \quad \mathrm{bits} = \mathrm{loss} / \ln 2

    so bits are those per character where tokens are characters. They do not depend on the batch
    size: a held-out text is cut into `streams` parts, whatever the batch size.

    Args:
        texts: the three texts by name: train, valid and test.
        level: tokens are words (between spaces) or characters; the end of a line is one, too.
        steps: tokens of a piece, through which gradients go back.
        streams: parts of a held-out text, each read from a fresh state; 1 is slowest, and gives
            every token all that came before it.
        tokens: train on the first so many tokens alone, for a quick budget; the vocabulary is that
            of the whole training text.

    Shape:
        x and y ``(batch, steps)``, the numbers of tokens.

    Example:
        >>> import torch
        >>> texts = dict.fromkeys(("train", "valid", "test"), "to be or not to be")
        >>> task = LanguageTask(texts, level="word", steps=3)
        >>> task.input_size, task.batches(2, generator=torch.Generator()).draw().x.shape
        (5, torch.Size([2, 3]))

    Departs from the paper: pieces have a fixed length, where AWD-LSTM draws it. Each epoch enters
    the training text at another place.

    References:
        Mikolov et al. (2010), Recurrent neural network based language model; Chandar (2020),
        section 4.3.3.
    """

    reference = "mikolov2010recurrent"
    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": LOSS,
        "accuracy": ACCURACY,
        "perplexity": Measure("min", "", log=True),
        "bits": Measure("min", "bits"),
    }
    answers = "each step"
    symbolic = True

    def __init__(
        self,
        texts: Mapping[Half, str],
        *,
        level: Level,
        steps: int = 70,
        streams: int = 20,
        tokens: int | None = None,
    ) -> None:
        self.steps, self.streams = whole("steps", steps, 1), whole("streams", streams, 1)
        _expect_all(texts)
        train = tokens_of(texts["train"], level)
        self.vocabulary = Vocabulary(train)
        self.train = self.vocabulary.numbers(train)[: tokens and whole("tokens", tokens, 2)]
        self.held = {
            half: self.vocabulary.numbers(tokens_of(texts[half], level))
            for half in ("valid", "test")
        }
        for half, text in {"train": self.train, **self.held}.items():
            if len(text) < 2:
                raise InputError(
                    f"expected a {half} text of at least two tokens, one to ask for, but it has "
                    f"{len(text)}. Check that its file is not empty."
                )
        self.input_size = self.output_size = len(self.vocabulary)
        self.leading = "bits" if level == "character" else "perplexity"

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return Continued(self.train, size, self.steps, generator=generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        one_of("split", split, ("valid", "test"))
        return in_order(self.held[split], self.streams, self.steps, size)

    def told(self, means: dict[str, float]) -> dict[str, float]:
        loss = means["loss"]
        return {**means, "perplexity": math.exp(min(loss, 700)), "bits": loss / math.log(2)}


def _expect_all(texts: Mapping[Half, str]) -> None:
    missing = [half for half in get_args(Half) if half not in texts]
    if missing:
        raise InputError(
            f"expected the texts train, valid and test, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Try a part of the training text."
        )
    for half, text in texts.items():
        if not isinstance(text, str):
            raise InputError(
                f"expected the {half} text itself, but got a {type(text).__name__}. Try "
                "Path(...).read_text()."
            )


def corpus(name: str, root: str | Path | None) -> dict[Half, str]:
    """The three texts of a corpus below the data root."""
    halves: tuple[Half, ...] = ("train", "valid", "test")
    return {half: load_text(name, half, root) for half in halves}


class PTBCharacters(LanguageTask):
    """Penn Treebank, character by character: 50 symbols, 5.0 million to train on.

    Args:
        steps: characters of a piece.
        streams: parts of a held-out text, each read from a fresh state.
        tokens: train on the first so many characters alone.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder. The
            files are ``ptb/ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``, by word, plain
            or compressed; those by character hold the same.

    Shape:
        x and y ``(batch, steps)``, numbers below 50.

    Example:
        >>> task = PTBCharacters()  # doctest: +SKIP
        >>> task.input_size  # doctest: +SKIP
        50

    Departs from the paper: as for `LanguageTask`.

    References:
        Mikolov et al. (2012), Subword language modeling with neural networks; Marcus et al.
        (1993), Building a large annotated corpus of English; Chandar (2020), section 4.3.3.
    """

    reference = "mikolov2012subword"

    def __init__(
        self,
        *,
        steps: int = 150,
        streams: int = 100,
        tokens: int | None = None,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            corpus("ptb", root), level="character", steps=steps, streams=streams, tokens=tokens
        )


class PTBWords(LanguageTask):
    """Penn Treebank, word by word: 10,000 words, 929,589 tokens to train on.

    Args:
        steps: words of a piece.
        streams: parts of a held-out text, each read from a fresh state.
        tokens: train on the first so many words alone.
        root: as for `PTBCharacters`.

    Shape:
        x and y ``(batch, steps)``, numbers below 10,000.

    Example:
        >>> task = PTBWords()  # doctest: +SKIP
        >>> task.input_size, len(task.train)  # doctest: +SKIP
        (10000, 929589)

    Departs from the paper: as for `LanguageTask`.

    References:
        Mikolov et al. (2010), Recurrent neural network based language model; Marcus et al.
        (1993), Building a large annotated corpus of English; Kuo et al. (2020), section V-A.
    """

    reference = "mikolov2010recurrent"

    def __init__(
        self,
        *,
        steps: int = 70,
        streams: int = 20,
        tokens: int | None = None,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            corpus("ptb", root), level="word", steps=steps, streams=streams, tokens=tokens
        )


class WikiText2(LanguageTask):
    """WikiText-2, word by word: 33,278 words, 2,088,628 tokens to train on.

    Args:
        steps: words of a piece.
        streams: parts of a held-out text, each read from a fresh state.
        tokens: train on the first so many words alone.
        root: the data root; the files are ``wikitext-2/wiki.train.tokens`` and so on.

    Shape:
        x and y ``(batch, steps)``, numbers below 33,278.

    Example:
        >>> task = WikiText2()  # doctest: +SKIP

    Departs from the paper: as for `LanguageTask`.

    References:
        Merity et al. (2017), Pointer sentinel mixture models, arXiv:1609.07843.
    """

    reference = "merity2017pointer"

    def __init__(
        self,
        *,
        steps: int = 70,
        streams: int = 20,
        tokens: int | None = None,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            corpus("wikitext-2", root), level="word", steps=steps, streams=streams, tokens=tokens
        )


class TextFolder(LanguageTask):
    """The next token of a text of your own.

    Args:
        folder: below the data root, with a ``train.txt``, a ``valid.txt`` and a ``test.txt``, plain
            or compressed. The vocabulary is that of the training text; other tokens count as
            ``<unk>`` if the training text has it, and are refused else.
        level: tokens are words (between spaces) or characters.
        steps: tokens of a piece.
        streams: parts of a held-out text, each read from a fresh state.
        tokens: train on the first so many tokens alone.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x and y ``(batch, steps)``.

    Example:
        >>> task = TextFolder("letters", level="character")  # doctest: +SKIP

    Departs from the paper: as for `LanguageTask`.

    References:
        Mikolov et al. (2010), Recurrent neural network based language model.
    """

    reference = "mikolov2010recurrent"

    def __init__(
        self,
        folder: str,
        *,
        level: Level = "word",
        steps: int = 70,
        streams: int = 20,
        tokens: int | None = None,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            corpus(folder, root), level=level, steps=steps, streams=streams, tokens=tokens
        )
