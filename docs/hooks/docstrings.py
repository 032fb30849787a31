"""Turn the reST of our docstrings into the Markdown that the site is written in.

A griffe extension: docstrings stay readable in a terminal and in an editor, and their equations
come out as equations on the site.
"""

import re
import textwrap
from typing import Any

from griffe import Class, Extension, Object

_BLOCK = re.compile(r"^( *)\.\. math::\n((?:\n|\1 +.*\n?)+)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_ROLE = re.compile(r":(?:func|class|mod|meth):`~?([\w.]+)`")


def markdown(text: str) -> str:
    """Write equations, roles and sections as Markdown and griffe know them."""
    text = _BLOCK.sub(_display, text)
    text = _INLINE.sub(lambda found: f"${' '.join(found[1].split())}$", text)
    text = _ROLE.sub(r"[\1][]", text)
    text = _aside(text, "Shape|References")
    text = re.sub(r"^(Departs from the paper):", r"**\1:**", text, flags=re.MULTILINE)
    return re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)


def _display(found: re.Match[str]) -> str:
    equation = textwrap.dedent(found[2]).strip()
    if "&" in equation or r"\\" in equation:
        equation = f"\\begin{{aligned}}\n{equation}\n\\end{{aligned}}"
    return textwrap.indent(f"$$\n{equation}\n$$\n\n", found[1])


def _aside(text: str, titles: str) -> str:
    """Write a section that griffe does not know as a paragraph with a bold title."""
    return re.sub(
        rf"^({titles}):\n((?:\n|    .*(?:\n|$))+)",
        lambda found: f"**{found[1]}:** {textwrap.dedent(found[2]).strip()}\n\n",
        text,
        flags=re.MULTILINE,
    )


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring:
            text = markdown(obj.docstring.value)
            if isinstance(obj, Class):
                # griffe knows neither what a call returns nor the constructor of a named tuple
                text = _aside(text, "Returns")
                if "NamedTuple" in map(str, obj.bases):
                    text = text.replace("Args:", "Attributes:")
            obj.docstring.value = text
