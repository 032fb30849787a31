"""Changes to configurations: ``a.b=value`` from the command line, and tables laid over tables."""

import copy
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from attractor.errors import InputError, shortened

LENGTHS = (
    *(("train", key) for key in ("steps", "batch_size")),
    *(("meta", key) for key in ("steps", "learners", "updates", "batch_size")),
    ("stream", "tasks"),
)
"""What decides how long a run is."""

DEEPEST = 20
"""Tables in tables beyond which a file is no configuration."""


def parsed(text: str) -> dict[str, Any]:
    """TOML of a depth that a configuration can have; `ValueError` for all else."""
    try:
        content = tomllib.loads(text)
    except RecursionError:
        content = {}
        levels: list[Any] = [None]
    else:
        levels = [content]
        for _ in range(DEEPEST):
            levels = [inner for one in levels for inner in _inside(one)]
    if levels:
        raise ValueError(f"tables and lists more than {DEEPEST} deep")
    return content


def _inside(value: Any) -> list[Any]:
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in each if isinstance(one, dict | list)]


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A table with another laid over it, table by table.

    Example:
        >>> merged({"train": {"lr": 1, "steps": 5}}, {"train": {"lr": 2}})
        {'train': {'lr': 2, 'steps': 5}}
    """
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def changed(content: dict[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """Apply ``a.b=value`` changes; one to ``model`` applies to every model of the list.

    ``strategy=er`` is short for ``strategy.name=er``.

    Example:
        >>> changed({"train": {"steps": 5}}, ["train.steps=7", "train.device=cuda"])
        {'train': {'steps': 7, 'device': 'cuda'}}
    """
    content = copy.deepcopy(content)
    for change in changes:
        key, equals, text = change.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts) or len(parts) > DEEPEST:
            raise InputError(
                f"expected a change as a.b=value, but got {shortened(change)}. Try train.steps=100."
            )
        value = _value(text.strip())
        if parts == ["strategy"] and isinstance(value, str):
            parts.append("name")
        tables = [content]
        for part in parts[:-1]:
            inner = [table.setdefault(part, {}) for table in tables]
            tables = [t for item in inner for t in (item if isinstance(item, list) else [item])]
            if not all(isinstance(table, dict) for table in tables):
                raise InputError(
                    f"expected {shortened(part)} in the change {shortened(change)} to be a table, "
                    "but it is a value. "
                    "Try fewer dots."
                )
        for table in tables:
            table[parts[-1]] = value
    return content


def overruled(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, by dotted keys, to which settings say something else.

    Example:
        >>> overruled({"train": {"lr": 1, "steps": 5}}, {"train": {"lr": 2, "clip": 1, "steps": 5}})
        {'train.lr': 2}
    """
    own = flat(settings)
    return {key: value for key, value in flat(changes).items() if key in own and own[key] != value}


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a table and of those in it, under dotted keys.

    Example:
        >>> flat({"train": {"lr": 1}, "seed": 2})
        {'train.lr': 1, 'seed': 2}
    """
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{key}.")
        else:
            result[prefix + key] = value
    return result


def resized(content: dict[str, Any], changes: dict[str, Any]) -> bool:
    """Whether changes make some run longer or shorter than its file does.

    Example:
        >>> content = {"train": {"steps": 5, "lr": 0.1}, "variant": [{"train": {"steps": 7}}]}
        >>> resized(content, {"train": {"lr": 0.2}}), resized(content, {"train": {"steps": 5}})
        (False, True)
    """
    each = [content, *content.get("variant", []), *content.get("model", [])]
    for table, key in LENGTHS:
        if key in changes.get(table, {}):
            own = [one[table][key] for one in each if key in one.get(table, {})]
            if not own or any(value != changes[table][key] for value in own):
                return True
    return False


def _value(text: str) -> Any:
    """A TOML value, or the text itself, so that strings need no quotes on the command line."""
    try:
        return parsed(f"value = {text}")["value"]
    except ValueError:
        return text
