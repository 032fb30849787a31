"""Text from files and labels, made safe to print: nothing in it can steer the terminal."""

import logging
import sys
import unicodedata

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of characters that show nothing by themselves, or move what others show."""


def visible(text: object) -> str:
    r"""Text with each control character written out, as Python writes it.

    Example:
        >>> print(visible("LSTM \x1b[31m"))
        LSTM \x1b[31m
    """
    return "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one) in HIDDEN else one
        for one in str(text)
    )


def warn(message: object) -> None:
    """Say something on stderr, line by line."""
    for line in str(message).split("\n"):
        print(f"attractor: {visible(line)}", file=sys.stderr)


class Formatter(logging.Formatter):
    """Log lines without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(visible, super().format(record).split("\n")))
