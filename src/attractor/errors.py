"""Mistakes of the user's, said in one sentence: what was expected, what came, what to try."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something given to attractor is not as it should be; the command line exits with 2."""


class RunError(RuntimeError):
    """A run could not go on; the command line exits with 1."""


def unknown(
    kind: str, name: object, known: Iterable[str], *, listed: str | None = None
) -> InputError:
    """The error for a name that is not in a table, with the nearest names in it.

    Args:
        kind: what the name is of, in words.
        name: what was given.
        known: the names in the table.
        listed: the command that shows them all, where they are too many for a sentence.
    """
    names = sorted(set(known))
    folded: dict[str, list[str]] = {}
    for one in names:
        folded.setdefault(one.casefold(), []).append(one)
    # a name may be as long as a file: its beginning is enough to compare and to show
    close = difflib.get_close_matches(str(name)[:100].casefold(), folded, n=3, cutoff=0.5)
    near = [one for key in close for one in folded[key]][:3]
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Try one of these."
    if listed is not None:
        hint = f"{hint if near else ''} `{listed}` shows all.".strip()
    among = "" if listed is not None else f" ({', '.join(names)})"
    return InputError(
        f"expected the name of a known {kind}{among}, but got {shortened(name)}. {hint}"
    )


def shortened(value: object, most: int = 200) -> str:
    """A value as Python writes it, cut where it is long.

    Example:
        >>> shortened("x" * 500, most=12)
        "'xxxx...xxx'"
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep, or a number with too many digits
        text = f"a {type(value).__name__}"
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return f"{text[: most - 3 - half]}...{text[-half:]}"
