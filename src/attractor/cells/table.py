"""The table of cells: the only place where a cell is registered."""

from typing import Any

from attractor.cells.base import Cell
from attractor.cells.gru import GRUCell
from attractor.cells.janet import JANETCell
from attractor.cells.lstm import LSTMCell
from attractor.cells.rnn import RNNCell

CELLS: dict[str, type[Cell[Any, Any]]] = {
    "gru": GRUCell,
    "janet": JANETCell,
    "lstm": LSTMCell,
    "rnn": RNNCell,
}
