"""Fused kernels for the processor: a whole sequence of a cell in one call."""

from attractor.cells.kernels.native import STATUS as STATUS
