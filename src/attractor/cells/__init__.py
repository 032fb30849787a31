"""Recurrent cells, and the layer that runs any of them over time."""

from attractor.cells.base import Cell as Cell
from attractor.cells.base import State as State
from attractor.cells.eurnn import EURNNCell as EURNNCell
from attractor.cells.eurnn import EURNNState as EURNNState
from attractor.cells.goru import GORUCell as GORUCell
from attractor.cells.gru import GRUCell as GRUCell
from attractor.cells.interop import copy_from_torch as copy_from_torch
from attractor.cells.interop import copy_to_torch as copy_to_torch
from attractor.cells.janet import JANETCell as JANETCell
from attractor.cells.layer import Recurrent as Recurrent
from attractor.cells.lstm import LSTMCell as LSTMCell
from attractor.cells.lstm import LSTMState as LSTMState
from attractor.cells.named import LAYERS as LAYERS
from attractor.cells.nru import NRUCell as NRUCell
from attractor.cells.nru import NRUState as NRUState
from attractor.cells.rnn import RNNCell as RNNCell
from attractor.cells.stat_ru import StatRUCell as StatRUCell
from attractor.cells.table import CELLS as CELLS
from attractor.cells.unroll import unroll as unroll
