"""Samples that are kept to be learned again."""

from attractor.continual.replay.reservoir import Reservoir as Reservoir
from attractor.continual.replay.slots import Slots as Slots
from attractor.continual.replay.slots import hard_storage as hard_storage
from attractor.continual.replay.slots import ring_buffer as ring_buffer
from attractor.continual.replay.store import Columns as Columns
from attractor.continual.replay.store import Store as Store
