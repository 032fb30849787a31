"""External memory as pure functions, and the parts that cells with one share.

A memory is a tensor ``(batch, cells, width)`` that its owner carries along; nothing here keeps one.
A head's weights say how much of each cell it touches.
"""

from attractor.cells.memory.access import erase_and_add as erase_and_add
from attractor.cells.memory.access import overwrite as overwrite
from attractor.cells.memory.access import read as read
from attractor.cells.memory.addressing import cosine as cosine
from attractor.cells.memory.addressing import sharpen as sharpen
from attractor.cells.memory.addressing import shift as shift
from attractor.cells.memory.addressing import standardise as standardise
from attractor.cells.memory.addressing import unit as unit
from attractor.cells.memory.addressing import wide as wide
from attractor.cells.memory.discrete import Choice as Choice
from attractor.cells.memory.discrete import choose as choose
from attractor.cells.memory.discrete import gumbel as gumbel
from attractor.cells.memory.discrete import logistic as logistic
from attractor.cells.memory.discrete import one_hot_of_largest as one_hot_of_largest
from attractor.cells.memory.discrete import straight_through as straight_through
