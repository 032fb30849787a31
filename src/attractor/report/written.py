"""Numbers written into a map, each in black or white, whichever is read better on its colour."""

from collections.abc import Sequence
from typing import Any

SCALE = "Cividis"
"""The colours of maps, which the colour-blind can tell apart: from dark blue to yellow."""
BRIGHT = 0.47
"""Where, from 0 to 1, black has more contrast with `SCALE` than white has: 4.5 at least."""


def written(
    map_: dict[str, Any], texts: Sequence[Sequence[str]], low: float, high: float
) -> dict[str, Any]:
    """The numbers of a map as a trace of text over it: the library's own choice is hard to read.

    Args:
        map_: a heatmap with names on its axes, in the colours of `SCALE`.
        texts: what to write, as many as the map has values; an empty one writes nothing.
        low: the value of the darkest colour.
        high: of the brightest.
    """
    cells = [
        (x, y, text, value)
        for y, values, row in zip(map_["y"], map_["z"], texts, strict=True)
        for x, value, text in zip(map_["x"], values, row, strict=True)
        if text
    ]
    span = (high - low) or 1.0
    bright = [(value - low) / span > BRIGHT for _, _, _, value in cells]
    return {
        "type": "scatter",
        "mode": "text",
        "x": [x for x, _, _, _ in cells],
        "y": [y for _, y, _, _ in cells],
        "text": [text for _, _, text, _ in cells],
        "textfont": {"size": 11, "color": ["#000" if one else "#FFF" for one in bright]},
        "hoverinfo": "skip",
        "showlegend": False,
    }
