"""The table of figures that can be drawn anew: the only place where one is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attractor.dynamics.plots import styled
from attractor.errors import unknown
from attractor.report.papers import chandar, decaynet, kuo, pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[], Figure]] = {
    "chandar-3.3": chandar.figure_3_3,
    "chandar-3.5": chandar.figure_3_5,
    "chandar-4.1": chandar.figure_4_1,
    "chandar-4.2": chandar.figure_4_2,
    "chandar-4.3": chandar.figure_4_3,
    "chandar-4.4": chandar.figure_4_4,
    "chandar-4.5": chandar.figure_4_5,
    "chandar-4.7": chandar.figure_4_7,
    "chandar-5.2": chandar.figure_5_2,
    "chandar-5.3": chandar.figure_5_3,
    "chandar-5.4": chandar.figure_5_4,
    "chandar-5.5": chandar.figure_5_5,
    "decaynet-1": decaynet.figure_1,
    "decaynet-2": decaynet.figure_2,
    "decaynet-4": decaynet.figure_4,
    "decaynet-5": decaynet.figure_5,
    "decaynet-6": decaynet.figure_6,
    "decaynet-7": decaynet.figure_7,
    "kuo-2.5": kuo.figure_2_5,
    "kuo-2.6": kuo.figure_2_6,
    "kuo-2.7": kuo.figure_2_7,
    "kuo-2.8": kuo.figure_2_8,
    "kuo-2.9": kuo.figure_2_9,
    "kuo-4.3": kuo.figure_4_3,
    "kuo-4.5": pictures.figure_4_5,
    "kuo-4.6": kuo.figure_4_6,
    "kuo-5.4": kuo.figure_5_4,
    "kuo-5.5": kuo.figure_5_5,
    "kuo-5.7": kuo.figure_5_7,
    "kuo-5.9": kuo.figure_5_9,
    "kuo-6.3": kuo.figure_6_3,
    "kuo-6.4": kuo.figure_6_4,
    "kuo-6.5": kuo.figure_6_5,
    "kuo-6.6": kuo.figure_6_6,
    "kuo-6.7": kuo.figure_6_7,
    "kuo-6.8": kuo.figure_6_8,
    "kuo-6.11": kuo.figure_6_11,
    "kuo-6.12": kuo.figure_6_12,
    "kuo-6.13": kuo.figure_6_13,
    "kuo-6.16": kuo.figure_6_16,
    "kuo-6.17": kuo.figure_6_17,
}


def draw(name: str) -> Figure:
    """Draw a figure by its name; those with trained networks train them first, quickly.

    Example:
        >>> len(draw("decaynet-5").axes)  # doctest: +SKIP
        2
    """
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    with styled():
        return FIGURES[name]()
