"""Changes to configurations: ``a.b=value`` from the command line, and tables laid over tables."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from attractor.errors import InputError, shortened
from attractor.toml import DEEPEST, parsed

LENGTHS = (
    *(("train", key) for key in ("steps", "batch_size")),
    *(("meta", key) for key in ("steps", "learners", "updates", "batch_size")),
    ("stream", "tasks"),
)
"""What decides how long a run is."""

NAMED = ("task", "stream", "model", "optimiser", "strategy")
"""The tables that name what they are about."""


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A table with another laid over it, table by table; one that names another thing replaces.

    Example:
        >>> merged({"train": {"clip": 1, "steps": 5}}, {"train": {"clip": 2}})
        {'train': {'clip': 2, 'steps': 5}}
        >>> merged({"model": {"name": "resnet", "depth": 18}}, {"model": {"name": "mlp"}})
        {'model': {'name': 'mlp'}}
    """
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        both = isinstance(value, dict) and isinstance(before, dict) and not another(before, value)
        result[key] = merged(result[key], value) if both else value
    return result


def another(before: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
    """Whether a table names something else than the one before it."""
    names = name_of(before), name_of(table)
    return None not in names and names[0] != names[1]


def name_of(table: Mapping[str, Any]) -> str | None:
    """What a table names: a network with a cell is named by it.

    Example:
        >>> name_of({"name": "sgd", "lr": 0.1}), name_of({"cell": "nru"}), name_of({"lr": 0.2})
        ('sgd', 'nru', None)
    """
    name = table.get("cell", table.get("name"))
    return None if name is None else str(name)


SIZES = ("hidden_size", "num_layers", "bidirectional", "dropout", "compose", "hidden", "bound")
"""What stays of a recurrent network when another cell takes the place of its own."""

NO_LAYERS = ("convnet", "draw", "pair_classifier", "resnet", "stroke_reader")
"""Networks whose hidden layers are not a list of widths."""


def laid_over(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables with others laid over them; one that names another thing takes the place of the first.

    Only the sizes of a network stay when it is given another cell.

    Example:
        >>> laid_over({"optimiser": {"name": "adam", "lr": 1}}, {"optimiser": {"lr": 2}})
        {'optimiser': {'name': 'adam', 'lr': 2}}
        >>> laid_over({"optimiser": {"name": "adam", "lr": 1}}, {"optimiser": {"name": "anytime"}})
        {'optimiser': {'name': 'anytime'}}
    """
    result = dict(base)
    for name, table in over.items():
        before = result.get(name, {})
        if not another(before, table):
            result[name] = merged(before, table)
        else:
            result[name] = _sized(before, table) if name == "model" else table
    return result


def _sized(before: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """A network in the place of another, in its sizes where it does not say others.

    Whether a network of the user's own has such sizes is not known, so it has what it says alone.
    """
    if ":" in str(model.get("name", "")):
        return model
    if "hidden_size" in before and "cell" not in model:
        before = {"hidden": [before["hidden_size"]] * before.get("num_layers", 1), **before}
    stays = {*SIZES} if "cell" in before and "cell" in model else {"hidden", "bound"}
    if {"hidden", "hidden_size"} & model.keys() or model.get("name") in NO_LAYERS:
        stays -= {"hidden", "hidden_size"}
    return {name: value for name, value in before.items() if name in stays} | model


def agreement(own: dict[str, Any], changes: dict[str, Any]) -> int:
    """How many changes are what a variant says, less those that it contradicts."""
    both = flat(own).keys() & flat(changes).keys()
    return len(both) - 2 * len(overruled(own, changes))


def changed(content: dict[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """Apply ``a.b=value`` changes.

    ``strategy=er`` is short for ``strategy.name=er``, and likewise for all that has a name;
    ``cell=nru`` is short for ``model.cell=nru``.

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
        if parts == ["cell"]:
            parts = ["model", "cell"]
        if len(parts) == 1 and parts[0] in NAMED and isinstance(value, str):
            parts.append("name")
        table: Any = content
        for part in parts[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(
                    f"expected {shortened(part)} in the change {shortened(change)} to be a table, "
                    "but it is a value. Try fewer dots."
                )
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
    each = [content, *content.get("variant", [])]
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
