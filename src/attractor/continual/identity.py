"""What tells one strategy from another, as plain values that a checkpoint can hold."""

import inspect
from typing import Any

from torch import Tensor

from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.combined import Combined
from attractor.continual.strategies.table import STRATEGIES
from attractor.errors import InputError


def identity(strategy: Strategy) -> Any:
    """The key of a strategy in the table and its settings; of a combined one, those of each.

    A strategy of one's own, which has no key, has ``module:Class``.

    Example:
        >>> from attractor.continual import Stable
        >>> identity(Stable(0.5))
        {'name': 'stable', 'gamma': 0.5, 'least': 5e-05}
    """
    if isinstance(strategy, Combined):
        return [identity(one) for one in strategy.strategies]
    keys = [key for key, made in STRATEGIES.items() if made is type(strategy)]
    name = keys[0] if keys else _place(type(strategy))
    given = strategy.settings()
    for key in strategy.newer:  # states from before have no word of them
        if given[key] == inspect.signature(type(strategy)).parameters[key].default:
            del given[key]
    return {"name": name} | {key: _value(value) for key, value in given.items()}


def described(found: Any) -> str:
    """Such an identity in words.

    Example:
        >>> described([{"name": "gem", "size": 20}, {"name": "stable"}])
        'gem(size=20) + stable()'
    """
    if isinstance(found, list):
        return " + ".join(map(described, found))
    if not isinstance(found, dict):
        return str(found)
    options = ", ".join(f"{key}={value!r}" for key, value in found.items() if key != "name")
    return f"{found.get('name')}({options})"


def expect_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Refuse the state of a learner that was made otherwise.

    Args:
        ours: what a learner was made with, by name.
        theirs: the same of the one whose state is to be taken over.

    Example:
        >>> expect_same({"batch_size": 10}, {"batch_size": 10, "more": 1})
    """
    for what, own in ours.items():
        if theirs.get(what) != own:
            raise InputError(
                f"expected the state of a learner with the {what} {described(own)}, but it is of "
                f"one with {described(theirs.get(what))}. Make the learner with the arguments that "
                "it had."
            )


def _value(value: Any) -> Any:
    """A setting as JSON gives it back."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    return _place(value if hasattr(value, "__qualname__") else type(value))


def _place(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"
