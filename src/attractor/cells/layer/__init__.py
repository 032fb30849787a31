"""The layer that runs any cell over time."""

from attractor.cells.layer.interop import copy_from_torch as copy_from_torch
from attractor.cells.layer.interop import copy_to_torch as copy_to_torch
from attractor.cells.layer.named import LAYERS as LAYERS
from attractor.cells.layer.recurrent import Recurrent as Recurrent
from attractor.cells.layer.unroll import compile_steps as compile_steps
from attractor.cells.layer.unroll import unroll as unroll
