"""The named layers for type checkers and editors; written by ``make stubs``."""

from collections.abc import Sequence
from inspect import Parameter
from typing import Literal

import torch
from torch import Generator

from attractor.cells.init import Initialiser
from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.memory.controllers import ControllerKind, WriteAddress

COMMON: list[Parameter]
PLACES: dict[str, dict[str, int]]
LAYERS: dict[str, type[Recurrent]]

def parameters(key: str) -> list[Parameter]: ...

__all__ = [
    "DNTM",
    "EURNN",
    "GORU",
    "GRU",
    "IHCGRU",
    "IHCLSTM",
    "IRCGRU",
    "IRCLSTM",
    "IRCSRU",
    "IRCTLSTM",
    "JANET",
    "LSTM",
    "LSTM1997",
    "NRU",
    "NTM",
    "RNN",
    "SRU",
    "TARDIS",
    "TLSTM",
    "URNN",
    "Clockwork",
    "DecayNet",
    "DecayNetGRU",
    "FastGRNN",
    "FullURNN",
    "IRCFastGRNN",
    "StatRU",
]

class Clockwork(Recurrent):
    """Clockwork RNN: groups of units, each of which moves at its own rate and rests in between.

    A `Recurrent` layer of `attractor.cells.ClockworkCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        periods: Sequence[int] = (1, 2, 4, 8),
        reads: Literal["slower", "itself"] = "slower",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class DecayNet(Recurrent):
    """DecayNet: an LSTM whose forget gate is the sine of an angle that falls towards zero.

    A `Recurrent` layer of `attractor.cells.DecayNetCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        length: int | None = None,
        input_init: Initialiser = "unit",
        recurrent_init: Initialiser = "unit",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class DecayNetGRU(Recurrent):
    """DecayNet's decay on a GRU: what keeps the old state is the sine of an angle that falls.

    A `Recurrent` layer of `attractor.cells.DecayNetGRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        length: int | None = None,
        input_init: Initialiser = "unit",
        recurrent_init: Initialiser = "unit",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class DNTM(Recurrent):
    """Dynamic neural Turing machine: every cell has a learned address beside its content.

    A `Recurrent` layer of `attractor.cells.DNTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        cells: int = 100,
        address_size: int = 8,
        content_size: int = 8,
        controller: ControllerKind = "gru",
        write_address: WriteAddress = "after",
        discrete: bool = False,
        anneal: int | None = None,
        hops: int = 1,
        lru: bool = True,
        nop: bool = True,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class EURNN(Recurrent):
    """Efficient unitary recurrent network: rotates its state, and so neither fades nor explodes.

    A `Recurrent` layer of `attractor.cells.EURNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        capacity: int | None = None,
        real: bool = False,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class FastGRNN(Recurrent):
    """FastGRNN: a gated residual connection with two learnt constants.

    A `Recurrent` layer of `attractor.cells.FastGRNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        shared: bool = False,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class FullURNN(Recurrent):
    """Full-capacity unitary recurrent network: any unitary matrix can be its recurrent one.

    A `Recurrent` layer of `attractor.cells.FullURNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class GORU(Recurrent):
    """Gated orthogonal recurrent unit: a GRU whose recurrent matrix is a rotation.

    A `Recurrent` layer of `attractor.cells.GORUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        capacity: int | None = None,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class GRU(Recurrent):
    """Gated recurrent unit, resetting before the recurrent matmul or after it.

    A `Recurrent` layer of `attractor.cells.GRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        reset: Literal["before", "after"] = "before",
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IHCGRU(Recurrent):
    """GRU with an input highway connection: the gates read a mix of input and memory.

    A `Recurrent` layer of `attractor.cells.IHCGRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        gate_reads_input: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IHCLSTM(Recurrent):
    """LSTM with an input highway connection: the gates read a mix of input and memory.

    A `Recurrent` layer of `attractor.cells.IHCLSTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        gate_reads_input: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IRCFastGRNN(Recurrent):
    """FastGRNN with an input residual connection: its gate reads a corrected input.

    A `Recurrent` layer of `attractor.cells.IRCFastGRNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        beta_per_unit: bool = False,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IRCGRU(Recurrent):
    """GRU with an input residual connection: the gates read an input corrected by the memory.

    A `Recurrent` layer of `attractor.cells.IRCGRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IRCLSTM(Recurrent):
    """LSTM with an input residual connection: the gates read an input corrected by the memory.

    A `Recurrent` layer of `attractor.cells.IRCLSTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IRCSRU(Recurrent):
    """SRU with an input residual connection: the gates read an input corrected by the output.

    A `Recurrent` layer of `attractor.cells.IRCSRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        highway_bias: float | None = None,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class IRCTLSTM(Recurrent):
    """T-LSTM with an input residual connection: the gates read a corrected input.

    A `Recurrent` layer of `attractor.cells.IRCTLSTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class JANET(Recurrent):
    """Just another network (JANET): one gate, which forgets less than it lets in by beta.

    A `Recurrent` layer of `attractor.cells.JANETCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        beta: float = 1.0,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class LSTM(Recurrent):
    """Long short-term memory, with optional peepholes, chrono initialisation and projection.

    A `Recurrent` layer of `attractor.cells.LSTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        peepholes: bool = False,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class LSTM1997(Recurrent):
    """The long short-term memory of 1997: a cell that adds and never forgets.

    A `Recurrent` layer of `attractor.cells.LSTM1997Cell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class NRU(Recurrent):
    """Non-saturating recurrent unit: a memory that is only added to, and no gate that saturates.

    A `Recurrent` layer of `attractor.cells.NRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        memory_size: int | None = None,
        heads: int = 4,
        relu_heads: bool = False,
        heads_read_input: bool = True,
        average_heads: bool = False,
        norm: float = 5.0,
        memory: Literal["additive", "multiplicative"] = "additive",
        feedback: float = 1.0,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class NTM(Recurrent):
    """Neural Turing machine: a controller with heads that read and write a memory softly.

    A `Recurrent` layer of `attractor.cells.NTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        cells: int = 128,
        cell_size: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        shift_width: int = 3,
        controller: ControllerKind = "lstm",
        write_address: WriteAddress = "after",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class RNN(Recurrent):
    """Plain recurrent network, with tanh or ReLU.

    A `Recurrent` layer of `attractor.cells.RNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        layer_norm: bool = False,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        margin: float | None = None,
        orthogonality: float = 0.0,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class SRU(Recurrent):
    """Simple recurrent unit: all matrices read the input, so a step is elementwise.

    A `Recurrent` layer of `attractor.cells.SRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_bias: float = 0.0,
        highway_bias: float = 0.0,
        rescale: bool = False,
        t_max: int | None = None,
        input_init: Initialiser | None = None,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class StatRU(Recurrent):
    """Statistical recurrent unit: moving averages of learned statistics, at several time scales.

    A `Recurrent` layer of `attractor.cells.StatRUCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        statistics: int | None = None,
        recurrent_size: int | None = None,
        alphas: Sequence[float] = (0.0, 0.5, 0.9, 0.99, 0.999),
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class TARDIS(Recurrent):
    """TARDIS: an LSTM that keeps projections of its old states and reads one at every step.

    A `Recurrent` layer of `attractor.cells.TARDISCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        cells: int = 16,
        address_size: int = 4,
        content_size: int = 32,
        attention_size: int = 64,
        estimator: Literal["gumbel", "reinforce"] = "gumbel",
        growing: bool = False,
        reset_gates: bool = True,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class TLSTM(Recurrent):
    """Strongly-typed LSTM: its gates read the last two inputs and never the memory.

    A `Recurrent` layer of `attractor.cells.TLSTMCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        output_gate: Literal["sigmoid", "tanh"] = "sigmoid",
        forget_bias: float = 0.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...

class URNN(Recurrent):
    """Unitary evolution recurrent network: a rotation made of few simple ones.

    A `Recurrent` layer of `attractor.cells.URNNCell`, which has the equations.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        checkpoint_every: int = 0,
        learn_initial_state: bool = False,
        generator: Generator | None = None,
    ) -> None: ...
