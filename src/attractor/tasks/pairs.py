"""Whether one sentence follows from another."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attractor.checks import one_of, whole
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.data.pairs import LABELS, Pair, load_sick, load_snli
from attractor.tasks.vocabulary import UNKNOWN, Vocabulary

BETWEEN = "<then>"
"""The token after the premise."""

Source = Literal["all", "dev"]


def words(sentence: str) -> list[str]:
    """The words and marks of a sentence, in small letters.

    Example:
        >>> words("A man isn't here.")
        ['a', 'man', "isn't", 'here', '.']
    """
    return re.findall(r"[\w']+|[^\w\s]", sentence.lower())


class PairTask(ArrayTask):
    r"""Read a premise, a mark, then a hypothesis; say if it is entailed, neutral or contradicted.

    Args:
        train: the training pairs.
        valid: the validation pairs.
        test: the test pairs.
        least: words that occur less often in the training pairs count as ``<unk>``.

    Shape:
        x ``(samples, time)``, the numbers of words; lengths ``(samples,)``; y ``(samples,)``: 0
        entailment, 1 neutral, 2 contradiction.

    Example:
        >>> pairs = [Pair("a dog runs", "a dog moves", label) for label in LABELS]
        >>> task = PairTask(pairs, pairs, pairs)
        >>> task.samples(torch.tensor([0])).x.shape, task.input_size
        (torch.Size([1, 7]), 6)

    Departs from the paper: the embeddings of words are learnt from the pairs alone; words are cut
    by a simple rule, not as the Stanford tokeniser does.

    References:
        Bowman et al. (2015), A large annotated corpus for learning natural language inference,
        arXiv:1508.05326; Chandar (2020), section 3.7.4.
    """

    vocabulary: Vocabulary
    symbolic = True
    timed = True

    def __init__(
        self, train: Sequence[Pair], valid: Sequence[Pair], test: Sequence[Pair], *, least: int = 1
    ) -> None:
        whole("least", least, 1)
        train, valid, test = ([Pair(*one) for one in pairs] for pairs in (train, valid, test))
        counts = Counter(w for one in train for w in words(one.premise) + words(one.hypothesis))
        kept = sorted(word for word, count in counts.items() if count >= least)
        vocabulary = Vocabulary([UNKNOWN, BETWEEN, *kept])
        object.__setattr__(self, "vocabulary", vocabulary)  # the rest of a task is frozen too
        halves = {"training": train, "validation": valid, "test": test}
        for half, pairs in halves.items():
            if not pairs:
                raise InputError(
                    f"expected {half} pairs of sentences, but there are none. Give some."
                )
        data = {half: numbered(pairs, vocabulary) for half, pairs in halves.items()}
        super().__init__(
            type(self).__name__,
            0,
            data["training"],
            data["test"],
            classes=(0, 1, 2),
            valid=data["validation"],
            keep=False,
        )

    @property
    def input_size(self) -> int:  # type: ignore[override]
        return len(self.vocabulary)

    @property
    def features(self) -> tuple[int, ...]:
        return (self.input_size,)


def numbered(pairs: Sequence[Pair], vocabulary: Vocabulary) -> Data:
    """Pairs as padded rows of numbers, with their lengths and labels."""
    for place, one in enumerate(pairs):
        if one.label not in LABELS:
            raise InputError(
                f"expected pairs labelled {', '.join(LABELS)}, but pair {place} is labelled "
                f"{one.label!r}. Rename the label, or leave such pairs out."
            )
    rows: list[Tensor] = [
        vocabulary.numbers([*words(one.premise), BETWEEN, *words(one.hypothesis)]) for one in pairs
    ]
    y = torch.tensor([LABELS.index(one.label) for one in pairs])
    lengths = torch.tensor([len(row) for row in rows])
    return Data(pad_sequence(rows, batch_first=True), y, lengths)


class SNLI(PairTask):
    """Stanford natural language inference.

    Args:
        source: ``"all"`` parts as published, or the ``"dev"`` part alone, whose pairs are grouped
            by premise: eight tenths of the premises for training, a tenth each for validation and
            test. Numbers of the latter do not compare with published ones.
        least: words that occur less often in the training pairs count as ``<unk>``.
        root: the data root; the files are ``snli_1.0/snli_1.0_train.jsonl``, ``..._dev.jsonl`` and
            ``..._test.jsonl``, plain or compressed.

    Shape:
        as for `PairTask`.

    Example:
        >>> task = SNLI(source="dev")  # doctest: +SKIP

    Departs from the paper: as for `PairTask`.

    References:
        Bowman et al. (2015), A large annotated corpus for learning natural language inference,
        arXiv:1508.05326; Chandar (2020), section 3.7.4.
    """

    reference = "bowman2015large"

    def __init__(
        self, *, source: Source = "all", least: int = 1, root: str | Path | None = None
    ) -> None:
        if one_of("source", source, get_args(Source)) == "dev":
            parts = by_premise(load_snli("dev", root))
        else:
            parts = load_snli("train", root), load_snli("dev", root), load_snli("test", root)
        super().__init__(*parts, least=least)


class SICK(PairTask):
    """Sentences involving compositional knowledge: 4,500 pairs to train on, 500 and 4,927 held out.

    Args:
        least: words that occur less often in the training pairs count as ``<unk>``.
        root: the data root; the files are ``sick/SICK_train.txt``, ``SICK_trial.txt`` and
            ``SICK_test_annotated.txt``, plain or compressed.

    Shape:
        as for `PairTask`.

    Example:
        >>> task = SICK()  # doctest: +SKIP

    Departs from the paper: the labels of entailment alone; the scores of relatedness are left out.

    References:
        Marelli et al. (2014), A SICK cure for the evaluation of compositional distributional
        semantic models.
    """

    reference = "marelli2014sick"

    def __init__(self, *, least: int = 1, root: str | Path | None = None) -> None:
        parts = load_sick("train", root), load_sick("dev", root), load_sick("test", root)
        super().__init__(*parts, least=least)


def by_premise(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Eight tenths, a tenth and a tenth of the premises, in a fixed random order, with their pairs.

    Example:
        >>> pairs = [Pair(str(n // 3), "b", "neutral") for n in range(60)]
        >>> [len(part) for part in by_premise(pairs)]
        [48, 6, 6]
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.premise, []).append(pair)
    found = list(groups.values())
    order = torch.randperm(len(found), generator=torch.Generator().manual_seed(0)).tolist()
    tenth = len(found) // 10
    cuts = order[2 * tenth :], order[:tenth], order[tenth : 2 * tenth]
    train, valid, test = ([pair for n in cut for pair in found[n]] for cut in cuts)
    return train, valid, test
