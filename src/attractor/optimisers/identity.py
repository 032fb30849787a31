"""What tells one rule from another in the state of an optimiser: its weights and its options."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch

from attractor.errors import InputError
from attractor.optimisers.rule import Rule


def identity(rule: Rule) -> dict[str, str]:
    """Of a rule's weights a few letters that others would not have, and its options in words.

    Example:
        >>> from attractor.optimisers import DMSGD, Pacer
        >>> identity(DMSGD(rate=0.1)) == identity(DMSGD(rate=0.2))
        False
        >>> identity(Pacer())["options"]
        '{"hidden_size": 0}'
    """
    options = json.dumps(rule.options, sort_keys=True, default=repr)
    return {"fingerprint": fingerprint(rule), "options": options}


def expect_same(rule: Rule, groups: Sequence[dict[str, Any]]) -> None:
    """Refuse parameter groups that an optimiser with another rule saved; those of older releases
    tell less. What they tell of the rule is taken out of them."""
    own = identity(rule)
    found = {name: {group.pop(name, None) for group in groups} - {None} for name in own}
    if not found["fingerprint"] <= {own["fingerprint"]}:
        raise InputError(
            f"expected the state of an optimiser whose rule {rule.key!r} has the weights of this "
            "one, but got one of other weights; nothing was changed. Load the rule that was in "
            "use, with pretrained() or load_rule, and make the optimiser with it."
        )
    if others := found["options"] - {own["options"]}:
        raise InputError(
            f"expected the state of an optimiser whose rule {rule.key!r} has the options "
            f"{own['options']}, but got one of {min(others)}; nothing was changed. Make the rule "
            "with those."
        )


def fingerprint(rule: Rule) -> str:
    """A few letters that other weights of a rule would not have."""
    digest = hashlib.sha256()
    for name, value in rule.state_dict().items():
        numbers = value.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(name.encode() + numbers.numpy().tobytes())
    return digest.hexdigest()[:16]
