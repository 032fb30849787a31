"""A strategy from a name and options: what configurations, `train` and `Learner` read."""

from collections.abc import Mapping
from typing import Any

from attractor.checks import instance
from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.combined import combine
from attractor.continual.strategies.naive import Naive
from attractor.continual.strategies.table import STRATEGIES
from attractor.tables import make


def strategy_of(spec: Strategy | str | Mapping[str, Any] | None) -> Strategy:
    """The strategy that is meant.

    Args:
        spec: a strategy; a key of ``STRATEGIES`` or ``module:Class``; a table with ``name``,
            options, and as ``also`` another such table that it is combined with; ``None`` means
            one task after the other (`Naive`).

    Example:
        >>> strategy_of(None)
        Naive()
        >>> strategy_of({"name": "er", "size": 50}).size
        50
    """
    if spec is None:
        return Naive()
    if not isinstance(spec, str | Mapping):
        return instance("strategy", spec, Strategy, "ER(), or a name such as 'er'")
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    also = options.pop("also", None)
    made: Strategy = make("strategy", STRATEGIES, options)
    return combine(made, strategy_of(also)) if also else made
