"""Figures of the papers, each drawn anew by one function; `FIGURES` is the table of them."""

from attractor.report.papers.table import FIGURES as FIGURES
from attractor.report.papers.table import draw as draw
from attractor.report.papers.table import listed as listed
