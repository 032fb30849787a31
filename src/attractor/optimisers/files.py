"""Learned rules on disk: safetensors with their kind, version and options in the header."""

import json
from collections.abc import Collection
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from attractor.errors import InputError, unknown
from attractor.files import write_atomic
from attractor.optimisers.rule import Rule, needs_size
from attractor.tables import code_in

HEADER = {"kind", "version", "options", "about"}
LOADERS = {"small_fc": "load_published", "celo": "load_celo", "velo": "load_velo"}
"""What reads the weights that others published of a rule."""


def save_rule(rule: Rule, path: str | Path, *, about: dict[str, Any] | None = None) -> None:
    """Write a rule's weights, and what is needed to make it again.

    Args:
        rule: what to save.
        path: a file that ends in ``.safetensors``.
        about: how it was trained; plain values that ``attractor meta card`` shows.

    Example:
        >>> import tempfile
        >>> from attractor.optimisers import DMSGD
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_rule(DMSGD(rate=0.1), f"{folder}/rule.safetensors")
        ...     load_rule(f"{folder}/rule.safetensors").static.item()
        0.10000000149011612
    """
    try:
        options, told = json.dumps(rule.options), json.dumps(about or {})
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected options and about of plain values, but got {rule.options} and {about}: "
            f"{error}. Give numbers, words, lists and dictionaries of these."
        ) from error
    header = {
        "attractor": "rule",
        "kind": rule.key,
        "version": str(rule.version),
        "options": options,
        "about": told,
    }
    tensors = {name: value.contiguous() for name, value in rule.state_dict().items()}
    write_atomic(Path(path), save(tensors, header))


def load_rule(
    path: str | Path, kind: type[Rule] | None = None, *, code: Collection[str] = ()
) -> Rule:
    """The rule that `save_rule` wrote.

    Args:
        path: the file.
        kind: the class of a rule of your own, for a file names no code; those of attractor are
            known by their keys.
        code: what its options may name as ``module:Class``, such as a cell of your own, which is
            then imported; a file that names anything else is refused.
    """
    header, tensors = _read(Path(path))
    kind = _kind(header["kind"], path, kind)
    if header["version"] != str(kind.version):
        raise InputError(
            f"expected version {kind.version} of the rule {kind.key!r} in {path}, but got "
            f"{header['version']}. Meta-train it again, or use the release that wrote it."
        )
    try:
        options = json.loads(header["options"])
    except ValueError as error:
        raise _misfit(kind, path) from error
    _refuse_code(options, path, code)
    try:
        rule: Rule = kind(**options)
        # in the type in which they were saved, and in memory of their own: in that of the file they
        # may lie askew, and a copy of the rule would then round otherwise
        own = {name: value.clone() for name, value in tensors.items()}
        rule.load_state_dict(own, assign=True)
    except (InputError, RuntimeError, TypeError, ValueError) as error:
        raise _misfit(kind, path) from error
    return rule


def _misfit(kind: type[Rule], path: str | Path) -> InputError:
    return InputError(
        f"expected the weights of the rule {kind.key!r} in {path}, but they do not fit its "
        "options: the file is damaged. Get it again, or meta-train it again."
    )


def _refuse_code(options: Any, path: str | Path, known: Collection[str]) -> None:
    """Refuse a file that names what is neither attractor's nor known to who loads it."""
    others = ((key, name) for key, name in code_in(options) if name not in known)
    if found := next(others, None):
        key, name = found
        raise InputError(
            f"expected a rule made of attractor's own parts in {path}, but its {key} is {name!r}, "
            "code that would be imported and called. If you trust whoever made the file, try "
            f"load_rule(path, code=[{name!r}]), or {key} = {name!r} beside pretrained in a "
            "configuration."
        )


def _kind(key: str, path: str | Path, own: type[Rule] | None) -> type[Rule]:
    """The class of a rule in a file: a user's own, or the one of the table."""
    from attractor.optimisers.table import OPTIMISERS

    if own is not None:
        if own.key != key:
            raise InputError(
                f"expected the weights of {own.key} in {path}, but they are of {key}. Try "
                f"optimiser.name={key}, or the class of that rule."
            )
        return own
    rules: dict[str, type[Rule]] = {
        name: entry.kind for name, entry in OPTIMISERS.items() if entry.learned
    }
    if key not in rules:
        told = unknown(f"kind of learned optimiser in {path}", key, rules)
        raise InputError(
            f"{told} For a rule of your own, load_rule(path, kind=...) takes its class."
        )
    return rules[key]


def about(path: str | Path) -> dict[str, Any]:
    """How the rule in a file was trained."""
    header, _ = _read(Path(path))
    try:
        told: dict[str, Any] = dict(json.loads(header["about"]))
        return {"kind": header["kind"], "options": json.loads(header["options"]), **told}
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected the card of a rule in {path}, but it is no JSON: the file is damaged. Get "
            "it again, or meta-train it again."
        ) from error


def shipped() -> list[str]:
    """The rules that come with the package, as ``kind/name``.

    Example:
        >>> isinstance(shipped(), list)
        True
    """
    folder = files("attractor.optimisers").joinpath("weights")
    if not folder.is_dir():
        return []
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".safetensors"))
    return sorted(name.removesuffix(".safetensors").replace("--", "/") for name in names)


def load_pretrained(kind: str, name: str | None = None) -> Rule:
    """A rule that comes with the package: the one of that name, or the first of its kind.

    The first is that called ``default``, then ``mlp``, which all experiments of the papers have.
    """
    with as_file(shipped_file(kind, chosen(kind, name))) as path:
        return load_rule(path)


def chosen(kind: str, name: str | None = None) -> str:
    """The name of the weights of a rule that come with the package, as `load_pretrained` says."""
    from attractor.optimisers.table import OPTIMISERS

    rules = {one: entry.kind for one, entry in OPTIMISERS.items() if entry.learned}
    if kind not in rules:
        raise unknown("learned optimiser", kind, rules)
    own = [one.split("/")[1] for one in shipped() if one.startswith(f"{kind}/")]
    if name is None and own:
        name = min(own, key=lambda one: (one != "default", one != "mlp", one))
    if name not in own:
        if own:
            raise unknown(f"pretrained {kind}", name, own)
        raise InputError(
            f"expected a rule that comes with weights ({', '.join(shipped())}), but {kind} does "
            f"not: {_how_to_get(rules[kind])}"
        )
    return str(name)


def _how_to_get(kind: type[Rule]) -> str:
    """Advice on a rule whose weights do not come with the package."""
    if needs_size(kind):
        return (
            "it is made for networks of one size. Make it for yours and meta-train it with "
            "`attractor meta train`."
        )
    advice = "Meta-train one with `attractor meta train`."
    if kind.key in LOADERS:
        advice = (
            f"Load what its authors published with attractor.optimisers.{LOADERS[kind.key]}, or "
            "meta-train one with `attractor meta train`."
        )
    return f"no weights of it come with attractor. {advice}"


def shipped_file(kind: str, name: str) -> Any:
    """Where a rule of the package is."""
    return files("attractor.optimisers").joinpath("weights", f"{kind}--{name}.safetensors")


def _read(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    if not path.is_file():
        raise InputError(
            f"expected the file of a learned optimiser, but there is no {path}. "
            "Write one with `attractor meta train`."
        )
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"expected a safetensors file of a learned optimiser, but {path} is damaged or of "
            "another kind. Get it again, or write one with `attractor meta train`."
        ) from error
    if header.get("attractor") != "rule" or not header.keys() >= HEADER:
        raise InputError(
            f"expected the file of a learned optimiser, but {path} holds something else. "
            "Write one with `attractor meta train`."
        )
    return header, tensors
