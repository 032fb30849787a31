"""A whole stream in one call."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from attractor.continual.learner import Learner
from attractor.continual.result import Result
from attractor.continual.strategies.base import Strategy
from attractor.tasks.streams import Stream
from attractor.training.process import finish


def train(
    model: nn.Module,
    stream: Stream,
    strategy: Strategy | str | Mapping[str, Any] | None = None,
    **options: Any,
) -> Result:
    """Learn a stream from its first task to its last.

    Args:
        model: the network.
        stream: the tasks.
        strategy: how to learn them, as itself, by its key, or as a table with ``name`` and options.
        options: as for `Learner`: optimiser, batch_size, epochs, iterations, seed and so on.

    Example:
        >>> import torch
        >>> from attractor.continual import ER
        >>> from attractor.models import MLP
        >>> from attractor.tasks.streams import permuted_images
        >>> g = torch.Generator().manual_seed(0)
        >>> stream = permuted_images(dataset="digits", tasks=2, generator=g)
        >>> result = train(MLP([64, 32, 10], generator=g), stream, ER(), iterations=50)
        >>> result.names
        ['permutation 1', 'permutation 2']
    """
    learner = Learner(model, stream, strategy, **options)
    finish(learner)
    return learner.result()
