"""From a name to the thing: what the tables hold, or what a user's own module does.

A configuration names cells, tasks, strategies and the like by their key in a table, or as
``module:Class`` from a module of the user's, which is imported by name; nothing is evaluated.
"""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from attractor.errors import InputError, unknown

T = TypeVar("T")


def lookup(kind: str, table: Mapping[str, T], name: object) -> T:
    """The entry of a table with this name, or what ``module:Class`` names.

    The module is looked for where Python looks, then in the current folder and in those that
    `search` was told of.

    Args:
        kind: what the table holds, in words, for the error.
        table: the entries by name.
        name: a key of the table, or ``module:Class``.

    Example:
        >>> lookup("size", {"small": 1, "large": 2}, "large")
        2
        >>> lookup("container", {"list": list}, "collections:deque")
        <class 'collections.deque'>
    """
    if isinstance(name, str) and name in table:
        return table[name]
    if not isinstance(name, str) or ":" not in name:
        raise unknown(kind, name, table)
    found: T = _imported(kind, name)
    example = next(iter(table.values()), found)
    alike = callable(found) if callable(example) else isinstance(found, type(example))
    if not alike:
        raise InputError(
            f"expected {name!r} to name a {kind}, but it is a value of type "
            f"{type(found).__name__}. Try the name of the class."
        )
    return found


def search(folder: Path) -> None:
    """Look for modules of ``module:Class`` in this folder too, after everywhere else.

    Processes that are started from this one look there as well.
    """
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.append(place)


def make(kind: str, table: Mapping[str, Callable[..., Any]], spec: Any, **given: Any) -> Any:
    """The one maker: look a name up, check its options by the signature, and make the thing.

    Args:
        kind: what the table holds, in words, for the errors.
        table: what makes each thing, by name.
        spec: a name, or a mapping with ``name`` and options.
        given: what is not for a specification to choose, such as a generator; passed where the
            signature asks for it.

    Example:
        >>> from fractions import Fraction
        >>> make("number", {"fraction": Fraction}, {"name": "fraction", "numerator": 3})
        Fraction(3, 1)
    """
    options = {"name": spec} if isinstance(spec, str) else spec
    if not isinstance(options, Mapping) or "name" not in options:
        raise InputError(
            f"expected a {kind} as a name, or as a table with a name and options, but got "
            f"{spec!r}. Try name = {min(table, default='...')!r}."
        )
    options = dict(options)
    name = options.pop("name")
    entry = lookup(kind, table, name)
    parameters = inspect.signature(entry).parameters
    _check_options(f"{kind} {name}", entry, options, {*given})
    wanted = {key: value for key, value in given.items() if key in parameters}
    try:
        return entry(**options, **wanted)
    except TypeError as error:
        if all(one.kind is not one.VAR_KEYWORD for one in parameters.values()):
            raise  # the options are what the signature asks for: the mistake is not in them
        raise InputError(
            f"expected options that the {kind} {name} can use, but got {options}: {error}. "
            "Try it without one of them."
        ) from error


def code_in(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All that a configuration would have imported, each with the key that it stands at.

    `lookup` imports nothing that is not of this form, so what has none of it runs no code.

    Args:
        content: tables, lists and plain values.
        key: of the content itself.

    Example:
        >>> list(code_in({"model": {"cell": ["lstm", "mycells:MyCell"]}, "task": "a: b"}))
        [('model.cell', 'mycells:MyCell')]
    """
    if isinstance(content, Mapping):
        for name, one in content.items():
            yield from code_in(one, f"{key}.{name}" if key else str(name))
    elif isinstance(content, list | tuple):
        for one in content:
            yield from code_in(one, key)
    elif isinstance(content, str) and _is_code(content):
        yield key, content


def _is_code(name: str) -> bool:
    """Whether a name has the form of ``module:Class``; dots are allowed on both sides."""
    module, _, path = name.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *path.split(".")))


def _imported(kind: str, name: str) -> Any:
    """What ``module:Class`` names."""
    if not _is_code(name):
        raise InputError(
            f"expected a {kind} of your own as module:Class, but got {name!r}. "
            "Try such as mycells:MyCell, for the class MyCell in mycells.py."
        )
    module, _, path = name.partition(":")
    search(Path())
    try:
        found: Any = import_module(module)
    except Exception as error:  # a module of the user's may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name in _parents(module):
            why = "there is no such module where Python looks, nor in the current folder, nor "
            why += "beside the configuration"
        else:
            why = f"importing it raised {type(error).__name__}: {error}"
        raise InputError(
            f"expected a module {module!r} for the {kind} {name!r}, but {why}. "
            "Check its name, and run the command from its folder."
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            public = [one for one in vars(found) if one.isidentifier() and one[0] != "_"]
            raise unknown(f"name in {module}", part, public)
        found = getattr(found, part)
    return found


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def _check_options(
    what: str, entry: Callable[..., Any], options: Mapping[str, Any], given: set[str]
) -> None:
    """Refuse options that are unknown, missing or of a wrong type."""
    parameters = inspect.signature(entry).parameters
    named = {
        name: one
        for name, one in parameters.items()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and name not in given
    }
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for name in options:
        if name in given or (name not in named and not takes_any):
            raise unknown(f"option of the {what}", name, named)
    for name, one in named.items():
        if one.default is one.empty and name not in options:
            raise InputError(
                f"expected a value for the option {name!r} of the {what}, but there is none. "
                f"Add {name} = ..."
            )
    hints = _hints(entry)
    for name, value in options.items():
        if name in hints and not fits(value, hints[name]):
            raise InputError(
                f"expected the option {name!r} of the {what} to be {_words(hints[name])}, but got "
                f"{value!r}. Try another value."
            )


def _hints(entry: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(entry.__init__ if inspect.isclass(entry) else entry)
    except (AttributeError, NameError, TypeError):  # built in, or hints for a type checker alone
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from a configuration may stand where a parameter has this hint.

    A whole number does for a fraction and a list for a tuple; hints for what no configuration can
    hold, such as functions, are left to what they are for.

    Example:
        >>> fits(3, float), fits(True, int), fits([1, 2], tuple[int, ...]), fits("a", int | None)
        (True, False, True, False)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in arguments)
    if origin is typing.Annotated:
        return fits(value, arguments[0])
    kind = origin or hint
    if not isinstance(kind, type) or kind in (Any, object):
        return True
    if kind in (int, float):
        numbers = (int, float) if kind is float else (int,)
        return isinstance(value, numbers) and not isinstance(value, bool)
    if kind in (bool, str):
        return isinstance(value, kind)
    if isinstance(value, list | tuple):
        inner = [one for one in arguments if one is not Ellipsis]
        return any(issubclass(one, kind) for one in (list, tuple)) and (
            len(set(map(str, inner))) != 1 or all(fits(one, inner[0]) for one in value)
        )
    return isinstance(value, kind) or not isinstance(value, bool | int | float | str | dict)


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _words(hint: Any) -> str:
    """A hint as one says it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return f"one of {', '.join(map(repr, arguments))}"
    if hint in _WORDS:
        return _WORDS[hint]
    if isinstance(origin or hint, type) and any(
        issubclass(one, origin or hint) for one in (list, tuple)
    ):
        return "a list"
    return str(getattr(hint, "__name__", hint))
