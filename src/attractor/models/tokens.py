"""Numbers of tokens as vectors."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.checks import whole
from attractor.errors import InputError


def table_of(vocabulary: int, embedding_size: int, options: Mapping[str, Any]) -> nn.Embedding:
    """A table of embedded tokens, where and in the type that the options of a layer say.

    Example:
        >>> table_of(5, 3, {"dtype": torch.float64, "num_layers": 2}).weight.dtype
        torch.float64
    """
    return nn.Embedding(
        whole("vocabulary", vocabulary, 1),
        whole("embedding_size", embedding_size, 1),
        device=options.get("device"),
        dtype=options.get("dtype"),
    )


def embedded(tokens: Tensor, table: Tensor) -> Tensor:
    """The rows of a table that tokens stand for.

    Tokens are looked at only where the lookup has failed, so nothing waits for an accelerator.

    Args:
        tokens: numbers below the rows of the table, in any shape.
        table: a row of features for each token.

    Example:
        >>> embedded(torch.tensor([[2, 0]]), torch.eye(3))
        tensor([[[0., 0., 1.],
                 [1., 0., 0.]]])
    """
    if not isinstance(tokens, Tensor) or tokens.dtype not in (torch.int64, torch.int32):
        kind = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        raise InputError(
            f"expected tokens as a tensor of whole numbers, but got {kind}. Try tokens.long(), and "
            "pack_sequence for sentences that are not equally long."
        )
    try:
        return F.embedding(tokens, table)
    except IndexError as error:
        beyond = (tokens < 0) | (tokens >= len(table))
        place = beyond.nonzero()[0].tolist()
        raise InputError(
            f"expected tokens from 0 to {len(table) - 1}, the vocabulary of the model, but got "
            f"{int(tokens[beyond][0])} at {place}. Make the model with a larger vocabulary, or "
            "give such tokens the number of an unknown word."
        ) from error
