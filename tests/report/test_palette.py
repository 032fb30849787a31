"""The colours of figures, as those see them who lack red or green cones."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from plotly.colors import get_colorscale, sample_colorscale

from attractor.report.figures import COLOURS
from attractor.report.written import SCALE, written

OKABE_ITO = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#000000")
SEEN = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
"""What those without red or green cones see of linear RGB: Machado et al. (2009), table 1."""


def lab(colour: str, seen: Any = None) -> Any:
    """A colour in CIELAB, as seen by someone, where distances are those that are perceived."""
    signal = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    if seen is not None:
        linear = np.clip(np.array(seen) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.array(to_xyz) @ linear / [0.9505, 1.0, 1.089]
    fx, fy, fz = (
        v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (x, y, z)
    )
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def closest(colours: Sequence[str], seen: Any = None) -> float:
    return min(
        float(np.linalg.norm(lab(a, seen) - lab(b, seen))) for a, b in combinations(colours, 2)
    )


def test_the_colour_blind_tell_the_lines_apart() -> None:
    assert set(COLOURS[:6]) < set(OKABE_ITO)
    usual = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
    for seen in SEEN.values():
        assert closest(COLOURS[:6], seen) > 10 > closest(usual, seen)


def luminance(rgb: Sequence[float]) -> float:
    signal = np.array(rgb) / 255
    linear = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_numbers_are_read_on_every_colour_of_a_map() -> None:
    """With the contrast that WCAG asks of small text, 4.5."""
    values = [i / 200 for i in range(201)]
    map_ = {"x": [str(value) for value in values], "y": ["0"], "z": [[3 * v + 1 for v in values]]}
    chosen = written(map_, [["1"] * len(values)], 1.0, 4.0)["textfont"]["color"]
    assert set(chosen) == {"#000", "#FFF"}
    colours = sample_colorscale(get_colorscale(SCALE), values, colortype="tuple")
    for colour, text in zip(colours, chosen, strict=True):
        below = luminance([255 * part for part in colour])
        dark, light = sorted((below, 0.0 if text == "#000" else 1.0))
        assert (light + 0.05) / (dark + 0.05) > 4.5
