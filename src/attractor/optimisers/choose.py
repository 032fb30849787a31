"""An optimiser from a name and options, fitting a network: what configurations and `fit` read."""

import logging
from collections.abc import Mapping
from typing import Any

from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.optimisers.attach import sizes
from attractor.optimisers.files import load_pretrained, load_rule, shipped
from attractor.optimisers.rule import Rule
from attractor.optimisers.table import Maker, optimiser_entry
from attractor.tables import code_in

logger = logging.getLogger(__name__)

SUFFIX = ".safetensors"
"""Of the file of a rule, by which it is told from the name of weights that come with attractor."""


def choose(
    spec: str | Mapping[str, Any],
    model: nn.Module,
    shown: Tensor | None = None,
    *,
    generator: Generator | None = None,
) -> Maker:
    """What makes the optimiser of a specification for a model.

    A learned one has the weights that ``pretrained`` names: those that come with attractor, or a
    file of the user's. The options are those of the weights; only code that a file names, such as a
    cell of the user's own, is to be named beside it. Without ``pretrained`` the weights are those
    that come with attractor, if no options ask for another form of the rule; ``pretrained = false``
    is a rule that is not trained yet.

    Args:
        spec: a key of ``OPTIMISERS`` or ``module:Class``, or a table with ``name`` and options.
        model: what it is to train.
        shown: a batch of what the model is shown, for a rule that wants to see it.
        generator: draws the initial weights of a rule that is not trained yet.

    Example:
        >>> model = nn.Linear(3, 1)
        >>> choose({"name": "sgd", "lr": 0.1}, model)(model.parameters()).defaults["lr"]
        0.1
        >>> choose("anytime", model).key
        'anytime'
    """
    options: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    entry = optimiser_entry(options.pop("name", None))
    if not entry.learned:
        return entry(**options)
    pretrained = options.pop("pretrained", None)
    if pretrained not in (None, False):
        return _weights(entry.kind, pretrained, options)
    if pretrained is None and not options and _names(entry.kind.key):
        if (fitting := pretrained_for(entry.kind.key, shown)) is not None:
            return fitting
        logger.warning(
            "%s comes with weights for inputs of other sizes alone; it starts untrained, and an "
            "untrained rule may move nothing. Try `attractor meta train`.",
            entry.kind.key,
        )
    drawn = {"generator": generator} if entry.draws else {}
    return entry(**{**sizes(entry, model, shown), **options}, **drawn)


def pretrained_for(kind: str, shown: Tensor | None = None) -> Rule | None:
    """The first rule of a kind that comes with attractor and can read what a model is shown.

    Args:
        kind: a key of ``OPTIMISERS``.
        shown: a batch of what the model is shown, for a rule that wants to see it.

    Example:
        >>> import torch
        >>> pretrained_for("mtl2l", torch.zeros(1, 8, 8)).context_size
        64
        >>> pretrained_for("mtl2l", torch.zeros(1, 3)) is None
        True
    """
    rules = (load_pretrained(kind, name) for name in _names(kind))
    return next((rule for rule in rules if _fits(rule, shown)), None)


def _weights(kind: type[Rule], pretrained: object, options: dict[str, Any]) -> Rule:
    """Those of a name or a file; a configuration names the code that a file may name."""
    file = isinstance(pretrained, str) and pretrained.endswith(SUFFIX)
    code = dict(code_in(options)) if file else {}
    if file and code == options:
        rule = load_rule(str(pretrained), kind, code=code.values())
        if options.items() <= rule.options.items():
            return rule
    if options:
        raise InputError(
            f"expected no options beside the weights {pretrained!r} of {kind.key}, which decide "
            f"them, but got {', '.join(options)}. Leave pretrained out to train another form."
        )
    return load_pretrained(kind.key, str(pretrained))


def _names(kind: str) -> list[str]:
    """The weights of a rule that come with attractor."""
    return [name.partition("/")[2] for name in shipped() if name.startswith(f"{kind}/")]


def _fits(rule: Rule, shown: Tensor | None) -> bool:
    """Whether a rule can read what the model is shown, if it wants to."""
    wanted = getattr(rule, "context_size", None)
    return wanted is None or shown is None or shown[0].numel() == wanted
