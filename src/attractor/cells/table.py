"""The table of cells: the only place where a cell is registered."""

from typing import Any

from attractor.cells.base import Cell
from attractor.cells.eurnn import EURNNCell
from attractor.cells.goru import GORUCell
from attractor.cells.gru import GRUCell
from attractor.cells.janet import JANETCell
from attractor.cells.lstm import LSTMCell
from attractor.cells.nru import NRUCell
from attractor.cells.rnn import RNNCell
from attractor.cells.stat_ru import StatRUCell

CELLS: dict[str, type[Cell[Any, Any]]] = {
    "eurnn": EURNNCell,
    "goru": GORUCell,
    "gru": GRUCell,
    "janet": JANETCell,
    "lstm": LSTMCell,
    "nru": NRUCell,
    "rnn": RNNCell,
    "stat_ru": StatRUCell,
}
