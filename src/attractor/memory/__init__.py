"""Memory: external stores as pure functions, and stores of samples to learn again.

An external memory is a tensor ``(batch, cells, width)`` that its owner carries along; nothing here
keeps one. A head's weights say how much of each cell it touches. A store of samples is a table that
a continual learner fills.
"""

from attractor.memory.access import erase_and_add as erase_and_add
from attractor.memory.access import overwrite as overwrite
from attractor.memory.access import read as read
from attractor.memory.addressing import cosine as cosine
from attractor.memory.addressing import sharpen as sharpen
from attractor.memory.addressing import shift as shift
from attractor.memory.addressing import standardise as standardise
from attractor.memory.addressing import unit as unit
from attractor.memory.addressing import wide as wide
from attractor.memory.discrete import Choice as Choice
from attractor.memory.discrete import choose as choose
from attractor.memory.discrete import gumbel as gumbel
from attractor.memory.discrete import logistic as logistic
from attractor.memory.discrete import one_hot_of_largest as one_hot_of_largest
from attractor.memory.discrete import straight_through as straight_through
from attractor.memory.reservoir import Reservoir as Reservoir
from attractor.memory.slots import Slots as Slots
from attractor.memory.slots import hard_storage as hard_storage
from attractor.memory.slots import ring_buffer as ring_buffer
from attractor.memory.store import Rows as Rows
from attractor.memory.store import Store as Store
