"""Text as numbers: what its tokens are, and which number each has."""

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor

from attractor.checks import one_of
from attractor.errors import InputError

Level = Literal["word", "character"]
"""What a token is."""

END = "<eos>"
"""The token at the end of a line."""

UNKNOWN = "<unk>"
"""The token that stands for others, if the training text has it."""


def tokens_of(text: str, level: Level) -> list[str]:
    """The tokens of a text, line by line, each line with its end.

    Between the words of a line, characters have one underscore, as in the character files of
    Penn Treebank.

    Example:
        >>> tokens_of("no it\\nwas n't", "word")
        ['no', 'it', '<eos>', 'was', "n't", '<eos>']
        >>> tokens_of("no it\\n", "character")
        ['n', 'o', '_', 'i', 't', '<eos>']
    """
    one_of("level", level, ("word", "character"))
    found: list[str] = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        words = line.split()
        found += words if level == "word" else "_".join(words)
        found.append(END)
    return found


class Vocabulary:
    """The tokens that are told apart, each with its number.

    Args:
        tokens: in the order of their numbers; a repeated one counts once.

    Example:
        >>> known = Vocabulary(["<pad>", "<unk>", "a", "b", "a"])
        >>> len(known), known.numbers(["b", "c"])
        (4, tensor([3, 1]))
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = tuple(dict.fromkeys(tokens))
        if not self.tokens:
            raise InputError(
                "expected tokens to make a vocabulary of, but the text is empty. "
                "Check the file, or give another."
            )
        self._numbers = {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def numbers(self, tokens: Sequence[str]) -> Tensor:
        """The numbers of some tokens; those that are not known count as `UNKNOWN`."""
        other = self._numbers.get(UNKNOWN)
        try:
            found = [self._numbers.get(token, other) for token in tokens]
            return torch.tensor(found, dtype=torch.long)
        except (TypeError, RuntimeError) as error:
            strange = next(token for token in tokens if token not in self._numbers)
            raise InputError(
                f"expected tokens of the {len(self)} in the training text, but got {strange!r}, "
                f"and there is no {UNKNOWN} to stand for it. Put it into the training text, or "
                f"write {UNKNOWN} in its place."
            ) from error
