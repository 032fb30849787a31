"""What ``attractor list cells nru`` tells: one entry of a table, from its own docstring."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from attractor.cli.catalogue import first_line, table_of
from attractor.references import bibtex
from attractor.tables import lookup

GIVEN = {"generator", "device", "dtype", "root", "params", "shape", "outputs", "each_step"}
"""What is not for a configuration to choose."""

OF_TORCH = """\
>>> from attractor.optimisers import OPTIMISERS
>>> model = torch.nn.Linear(3, 1)
>>> optimiser = OPTIMISERS["{}"](lr=0.1)(model.parameters())"""
"""An example for an optimiser of torch's own."""

SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "Gamma": "Γ",
    "lambda": "λ",
    "sigma": "σ",
    "theta": "θ",
    "odot": "⊙",
    "sum": "Σ",
    "sqrt": "√",
}
"""Commands of LaTeX as a terminal shows them; of others the name remains."""

SINGULAR = {
    "cells": "cell",
    "models": "model",
    "optimisers": "optimiser",
    "strategies": "strategy",
    "streams": "stream",
    "tasks": "task",
    "experiments": "experiment",
}


def entry(kind: str, name: str) -> dict[str, Any]:
    """Key, one line, options with defaults, paper and example of an entry, or of an experiment."""
    found = lookup(SINGULAR[kind], table_of(kind), name)
    if kind == "experiments":
        return _experiment(name)
    documented = getattr(found, "kind", found)
    maker = getattr(found, "make", documented)
    parts = sections(inspect.getdoc(documented) or "")
    told = {**_told(maker), **_told(documented)}
    fixed = getattr(found, "fixed", {})
    options = [
        {"option": one.name, "default": _default(one), "what": told.get(one.name, "")}
        for one in inspect.signature(maker).parameters.values()
        if one.name not in {*GIVEN, *fixed}
        and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    paper = getattr(found, "reference", None)
    cited = cite(paper) if paper else " ".join(parts.get("References", "").split())
    return {
        "key": name,
        "what": plain(first_line(documented)) + _with(fixed),
        "options": options,
        "reference": cited,
        "example": parts.get("Example", "") if _is_ours(documented) else OF_TORCH.format(name),
    }


def _told(documented: Any) -> dict[str, str]:
    """What a docstring says of arguments; of those passed on, what that of the receiver says."""
    told = arguments(sections(inspect.getdoc(documented) or "").get("Args", ""))
    if not _is_ours(documented):
        told = {name: one_sentence(what) for name, what in told.items()}
    receiver = getattr(documented.__init__, "options_of", None)
    return {**_told(receiver), **told} if receiver else told


def _with(fixed: Mapping[str, Any]) -> str:
    """The options that are part of a name."""
    return f" With {', '.join(f'{key}={value}' for key, value in fixed.items())}." if fixed else ""


def _is_ours(documented: object) -> bool:
    return not str(getattr(documented, "__module__", "")).startswith("torch.")


def _experiment(name: str) -> dict[str, Any]:
    from attractor.experiments.table import load

    _, config = load(name)
    what = f"{config.title} ({config.budget} budget, seeds {', '.join(map(str, config.seeds))})"
    variants = [{"option": f"--only {label!r}"} for label in config.variants()]
    return {
        "key": name,
        "what": what,
        "description": config.description,
        "options": variants,
        "example": f"attractor run {name}",
    }


def sections(doc: str) -> dict[str, str]:
    """The parts of a docstring that have a heading, such as ``Args:``, without their indent.

    Example:
        >>> sections("One line.\\n\\nArgs:\\n    x: a number.\\n\\nReferences:\\n    None.")
        {'Args': 'x: a number.', 'References': 'None.'}
    """
    found = re.findall(r"^([A-Z]\w+):\n((?:(?: {4}.*)?(?:\n|\Z))+)", doc, flags=re.MULTILINE)
    return {heading: inspect.cleandoc(f"\n{text}") for heading, text in found}


def arguments(text: str) -> dict[str, str]:
    """By name, what a section on arguments says of each, on one line.

    Example:
        >>> arguments("x, y: where\\n    it is.\\nsize: how much.")
        {'x': 'where it is.', 'y': 'where it is.', 'size': 'how much.'}
        >>> arguments("lr (float, optional): the rate (default: 1)")  # as torch writes it
        {'lr': 'the rate (default: 1)'}
    """
    start = r"^(\w+(?:, \w+)*)(?: \(.*\))? ?:"
    found = re.findall(rf"{start}\s(.*(?:\n .*)*)", text, flags=re.MULTILINE)
    return {
        name: plain(" ".join(what.split())) for names, what in found for name in names.split(", ")
    }


def one_sentence(text: str) -> str:
    """The first sentence of what torch says of an option, without the default, which is beside it.

    Example:
        >>> one_sentence("learning rate (default: 1e-3). A tensor LR is not yet supported.")
        'learning rate'
    """
    without = re.sub(r"\s*\(default: (?:[^()]|\([^()]*\))*\)", "", text)
    return re.split(r"\.(?:\s|$)", without, maxsplit=1)[0].strip()


def plain(text: str) -> str:
    r"""Text without the marks of mathematics and code around words.

    Example:
        >>> plain(r"by ``None`` :math:`\gamma k` of `Recurrent`")
        'by None γ k of Recurrent'
    """
    bare = re.sub(r"(?::\w+:)?(`{1,2})(.+?)\1", r"\2", text)
    return re.sub(r"\\([a-zA-Z]+)", lambda found: SYMBOLS.get(found[1], found[1]), bare)


def cite(paper: str) -> str:
    """A paper on one line: authors, year, title."""
    text = bibtex(paper)
    fields = dict(re.findall(r"^\s*(\w+) = \{(.*)\},?$", text, flags=re.MULTILINE))
    authors = fields.get("author", "").replace(" and ", "; ")
    return re.sub(r"[{}]", "", f"{authors} ({fields.get('year')}), {fields.get('title')}")


def _default(one: inspect.Parameter) -> str:
    return "needed" if one.default is one.empty else str(one.default)
