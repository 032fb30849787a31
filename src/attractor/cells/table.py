"""The table of cells: the only place where a cell is registered."""

from typing import Any

from attractor.cells.base import Cell
from attractor.cells.clockwork import ClockworkCell
from attractor.cells.decaynet import DecayNetCell
from attractor.cells.decaynet_gru import DecayNetGRUCell
from attractor.cells.dntm import DNTMCell
from attractor.cells.eurnn import EURNNCell
from attractor.cells.fastgrnn import FastGRNNCell
from attractor.cells.full_urnn import FullURNNCell
from attractor.cells.goru import GORUCell
from attractor.cells.gru import GRUCell
from attractor.cells.ihc import IHCGRUCell, IHCLSTMCell
from attractor.cells.irc import IRCFastGRNNCell, IRCGRUCell, IRCLSTMCell
from attractor.cells.irc_diagonal import IRCSRUCell, IRCTLSTMCell
from attractor.cells.janet import JANETCell
from attractor.cells.lstm import LSTMCell
from attractor.cells.lstm1997 import LSTM1997Cell
from attractor.cells.nru import NRUCell
from attractor.cells.ntm import NTMCell
from attractor.cells.rnn import RNNCell
from attractor.cells.sru import SRUCell
from attractor.cells.stat_ru import StatRUCell
from attractor.cells.tardis import TARDISCell
from attractor.cells.tlstm import TLSTMCell
from attractor.cells.urnn import URNNCell

CELLS: dict[str, type[Cell[Any, Any]]] = {
    "clockwork": ClockworkCell,
    "decaynet": DecayNetCell,
    "decaynet_gru": DecayNetGRUCell,
    "dntm": DNTMCell,
    "eurnn": EURNNCell,
    "fastgrnn": FastGRNNCell,
    "full_urnn": FullURNNCell,
    "goru": GORUCell,
    "gru": GRUCell,
    "ihc_gru": IHCGRUCell,
    "ihc_lstm": IHCLSTMCell,
    "irc_fastgrnn": IRCFastGRNNCell,
    "irc_gru": IRCGRUCell,
    "irc_lstm": IRCLSTMCell,
    "irc_sru": IRCSRUCell,
    "irc_tlstm": IRCTLSTMCell,
    "janet": JANETCell,
    "lstm": LSTMCell,
    "lstm1997": LSTM1997Cell,
    "nru": NRUCell,
    "ntm": NTMCell,
    "rnn": RNNCell,
    "sru": SRUCell,
    "stat_ru": StatRUCell,
    "tardis": TARDISCell,
    "tlstm": TLSTMCell,
    "urnn": URNNCell,
}
