"""The table of figures that can be drawn anew: the only place where one is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attractor.dynamics.plots import styled
from attractor.errors import InputError, unknown
from attractor.report.papers import chandar, decaynet, kuo, pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[], Figure]] = {
    "chandar-3.3": chandar.figure_3_3,
    "chandar-3.5": chandar.figure_3_5,
    "chandar-3.7": chandar.figure_3_7,
    "chandar-4.1": chandar.figure_4_1,
    "chandar-4.2": chandar.figure_4_2,
    "chandar-4.3": chandar.figure_4_3,
    "chandar-4.4": chandar.figure_4_4,
    "chandar-4.5": chandar.figure_4_5,
    "chandar-4.6": chandar.figure_4_6,
    "chandar-4.7": chandar.figure_4_7,
    "chandar-4.8": chandar.figure_4_8,
    "chandar-5.1": chandar.figure_5_1,
    "chandar-5.2": chandar.figure_5_2,
    "chandar-5.3": chandar.figure_5_3,
    "chandar-5.4": chandar.figure_5_4,
    "chandar-5.5": chandar.figure_5_5,
    "decaynet-1": decaynet.figure_1,
    "decaynet-2": decaynet.figure_2,
    "decaynet-3": decaynet.figure_3,
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


ABSENT: dict[str, str] = {
    "kuo-6.14": "four networks without a strategy on incremental CIFAR-100",
    "kuo-6.15": "HCN and MLP with four strategies on incremental CIFAR-100",
}
"""What those figures would show of which no runs are stored: CIFAR-100 was not at hand."""


def listed() -> dict[str, str]:
    """By its name, what each figure shows, or why it cannot be drawn.

    Example:
        >>> listed()["decaynet-5"]
        'The cobwebs of 0.5 x and 1.5 x: a sink and a source.'
    """
    shown = {name: (make.__doc__ or "").split("\n")[0] for name, make in FIGURES.items()}
    absent = {
        name: f"Not drawn: {what}, of which no runs are stored." for name, what in ABSENT.items()
    }
    return dict(sorted((shown | absent).items(), key=lambda item: _place(item[0])))


def _place(name: str) -> tuple[str, list[int]]:
    """The document and the numbers of a figure, by which 6.3 comes before 6.11."""
    document, _, number = name.rpartition("-")
    return document, [int(part) for part in number.split(".")]


def draw(name: str) -> Figure:
    """Draw a figure by its name; those with trained networks train them first, quickly.

    Example:
        >>> len(draw("decaynet-5").axes)  # doctest: +SKIP
        2
    """
    if name in ABSENT:
        raise InputError(
            f"expected stored runs of {name}, but there are none of {ABSENT[name]}. "
            "Try `attractor run incremental-cifar100` where its images are at hand, and "
            "`attractor report` on the runs."
        )
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    with styled():
        return FIGURES[name]()
