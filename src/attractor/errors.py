"""Mistakes of the user's, said in one sentence: what was expected, what came, what to try."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something given to attractor is not as it should be; the command line exits with 2."""


class RunError(RuntimeError):
    """A run could not go on; the command line exits with 1."""


class DivergedError(RunError):
    """The numbers of a training are no longer finite.

    Args:
        reason: what became of which, without a full stop.
        advice: what to try, in a sentence.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}. {advice}")
        self.reason, self.advice = reason, advice


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a table, with the nearest names in it."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Try one of these."
    return InputError(
        f"expected the name of a known {kind} ({', '.join(names)}), but got {name!r}. {hint}"
    )
