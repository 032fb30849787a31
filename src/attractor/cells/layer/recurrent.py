"""A recurrent layer from any cell: the drop-in for ``nn.LSTM``."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch._compile import _disable_dynamo
from torch.nn.utils.rnn import PackedSequence

from attractor.cells.base import Cell, check_input, map_state, parameter_sizes, positive
from attractor.cells.kernels.fused import fused
from attractor.cells.layer.checkpoint import from_torch, saved_by_torch
from attractor.cells.layer.options import LayerCell, LayerSpec, layer_specs, name_of
from attractor.cells.layer.ragged import Ragged, ragged_of
from attractor.cells.layer.segments import check_divisible, in_segments
from attractor.cells.layer.states import LearnedState, gather, scatter
from attractor.cells.layer.unroll import Unrolled, exporting, unroll_rows
from attractor.checks import flag, plain
from attractor.errors import InputError


class Recurrent(nn.Module):
    r"""Any cell over time, in layers and directions, called and answering as ``nn.LSTM``.

    Args:
        cell: a key of ``CELLS``, ``module:Class``, a `Cell` class, or what `layer_norm`, `zoneout`
            and the like return; or a list with the cell of each layer, where
            ``{"cell": "nru", "heads": 1}`` has options of its own.
        input_size: features of the input.
        hidden_size: units of each cell, or a list with those of each layer.
        num_layers: layers, each reading the outputs of the one below; a list says it by itself.
        bias: whether the cells have biases.
        batch_first: input and output are ``(batch, time, features)``.
        dropout: on the outputs of every layer but the last, in training; with one layer it does
            nothing, as a warning says.
        bidirectional: also read from the end; outputs are concatenated.
        device: where the parameters are.
        dtype: the type of the parameters.
        checkpoint_every: in training keep the state of every so many steps only, and compute what
            is between again on the way back; 0 keeps all. About the root of the number of steps
            needs least memory.
        learn_initial_state: learn the state before the first step, which begins as the cell's own,
            for whatever of it is no count. A state that is given is taken in its place.
        generator: draws the initial weights; ``None`` means torch's default generator.
        cell_options: go to the cells of all layers.

    Shape:
        The input is ``(time, batch, input_size)``, or ``(time, input_size)`` for one sequence, or
        a ``PackedSequence``. The output has the same form with ``D * output_size`` features,
        where D is 2 if bidirectional. Each tensor of the state is ``(D * num_layers, batch, ...)``.
        Where a list was given, the state is a tuple with the state of each layer, whose tensors are
        ``(D, batch, ...)``.

    Returns:
        ``(output, state)``, where the state is what the cell says: ``h_n`` for a GRU,
        ``(h_n, c_n)`` for an LSTM. With ``return_states=True`` ``(output, state, states)``: the
        states after every step, with time as a new first dimension (zero after the end of a
        packed sequence).

    Example:
        >>> layer = Recurrent("lstm", 3, 8, num_layers=2, batch_first=True)
        >>> output, (h_n, c_n) = layer(torch.zeros(4, 10, 3))
        >>> output.shape, h_n.shape
        (torch.Size([4, 10, 8]), torch.Size([2, 4, 8]))
        >>> layer = Recurrent(["lstm", {"cell": "nru", "memory_size": 16}], 3, [8, 4])
        >>> output, ((h_1, c_1), (h_2, m_2)) = layer(torch.zeros(10, 5, 3))
        >>> output.shape, c_1.shape, m_2.shape
        (torch.Size([10, 5, 4]), torch.Size([1, 5, 8]), torch.Size([1, 5, 16]))
    """

    def __init__(
        self,
        cell: LayerCell | Sequence[LayerCell],
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
        **cell_options: Any,
    ) -> None:
        super().__init__()
        bias, dropout = plain(bias), plain(dropout)
        if not isinstance(bias, bool):
            raise InputError(
                f"{type(self).__name__} expects bias to be True or False, but got {bias!r}. "
                "Name other options, such as nonlinearity='relu'."
            )
        if not bias:
            cell_options["bias"] = False
        specs = layer_specs(type(self), cell, hidden_size, num_layers, cell_options)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise InputError(f"expected dropout to be from 0 to 1, but got {dropout!r}. Try 0.1.")
        if dropout and len(specs) == 1:
            warnings.warn(  # as torch does, and no more, so that its code runs as it is
                f"dropout={dropout} acts between layers, but there is one: it changes nothing. Try "
                "num_layers=2, or leave dropout out.",
                stacklevel=2 if type(self) is Recurrent else 3,
            )
        self.input_size = positive(type(self), "input_size", input_size)
        self.hidden_size = specs[-1].hidden_size
        self.hidden_sizes = tuple(spec.hidden_size for spec in specs)
        self.num_layers = len(specs)
        self.batch_first = flag("batch_first", batch_first)
        self.dropout = float(dropout)
        self.bidirectional = flag("bidirectional", bidirectional)
        self.checkpoint_every = checkpoint_every and positive(
            type(self), "checkpoint_every", checkpoint_every
        )
        listed = isinstance(cell, list | tuple) or isinstance(hidden_size, list | tuple)
        self._groups = [self.num_directions] * self.num_layers if listed else None
        self.cells = nn.ModuleList()
        features = self.input_size
        for spec in specs:
            for _ in range(self.num_directions):
                made = _made(spec, features, generator=generator, device=device, dtype=dtype)
                self.cells.append(made)
            features = self.num_directions * made.output_size
        self.output_size = features
        self.initial: nn.ModuleList | None = None
        if flag("learn_initial_state", learn_initial_state):
            cells: Any = self.cells
            self.initial = nn.ModuleList(LearnedState(one) for one in cells)

    @property
    def num_directions(self) -> int:
        """1, or 2 if bidirectional."""
        return 2 if self.bidirectional else 1

    def forward(
        self,
        input: Tensor | PackedSequence,  # noqa: A002 - as nn.LSTM names it
        hx: Any = None,
        *,
        return_states: bool = False,
    ) -> Any:
        """Read the input from the state `hx`, by default the `initial_state`."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx, return_states)
        x = self._time_major(input)
        batched = input.dim() == 3
        initial = self._initial_states(hx, x.shape[1], batched)
        output, state, states = self._run(x, initial, None, return_states)
        if not batched:
            output, state = output.squeeze(1), map_state(lambda s: s.squeeze(1), state)
            states = map_state(lambda s: s.squeeze(2), states)
        elif self.batch_first:
            output = output.transpose(0, 1)
        if exporting():
            # plain tuples, so that a saved program can be loaded without attractor
            state, states = _plain(state), _plain(states)
        return (output, state, states) if return_states else (output, state)

    def initial_state(self, batch_size: int) -> Any:
        """The state from which so many sequences start, in the form in which it is returned."""
        return gather(self.starts(batch_size), self._groups, 0)

    # as nn.LSTM: under torch.compile, packed sequences are run as they are; this form of
    # torch.compiler.disable does not import the compiler, which takes as long as torch itself
    @_disable_dynamo
    def _forward_packed(self, input: PackedSequence, hx: Any, return_states: bool) -> Any:  # noqa: A002
        ragged = ragged_of(input)
        check_input(self, self.input_size, input.data)
        initial = self._initial_states(hx, ragged.batch, batched=True)
        if input.sorted_indices is not None:
            order = input.sorted_indices
            initial = [map_state(lambda s: s.index_select(0, order), s) for s in initial]
        output, state, states = self._run(input.data, initial, ragged, return_states)
        if input.unsorted_indices is not None:
            back = input.unsorted_indices
            state = map_state(lambda s: s.index_select(1, back), state)
            states = map_state(lambda s: s.index_select(2, back), states)
        packed = input._replace(data=output)
        return (packed, state, states) if return_states else (packed, state)

    def _run(
        self, x: Tensor, initial: list[Any], ragged: Ragged | None, return_states: bool
    ) -> Unrolled:
        """All layers and directions over x ``(time, batch, features)``, or over ragged rows."""
        final, every = [], []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in range(self.num_directions):
                index = layer * self.num_directions + direction
                y, state, states = self._run_one(
                    self.cells[index], x, initial[index], ragged, bool(direction), return_states
                )
                outputs.append(y)
                final.append(state)
                every.append(states)
            x = torch.cat(outputs, dim=-1) if self.bidirectional else outputs[0]
        states = gather(every, self._groups, 1) if return_states else ()
        return Unrolled(x, gather(final, self._groups, 0), states)

    def _run_one(
        self,
        cell: Any,
        x: Tensor,
        state: Any,
        ragged: Ragged | None,
        backwards: bool,
        return_states: bool,
    ) -> Unrolled:
        """One cell in one direction; the states of ragged rows are padded."""

        def run(x: Tensor, state: Any) -> Unrolled:
            done = fused(cell, x, state, ragged, return_states)
            return done or unroll_rows(cell, x, state, ragged, return_states)

        def turned(x: Tensor) -> Tensor:
            return x.flip(0) if ragged is None else ragged.reverse(x)

        if backwards:
            x = turned(x)
        if self.checkpoint_every and self.training and torch.is_grad_enabled():
            check_divisible(cell, ragged)
            done = in_segments(run, x, state, self.checkpoint_every)
        else:
            done = run(x, state)
        output, state, states = done
        if backwards:
            output, states = turned(output), map_state(turned, states)
        if ragged is not None:
            states = map_state(ragged.pad, states)
        return Unrolled(output, state, states)

    def _time_major(self, x: Tensor) -> Tensor:
        """Check the input, and bring it to ``(time, batch, features)``."""
        if not isinstance(x, Tensor):
            raise InputError(
                f"{type(self).__name__} expects x to be a tensor or a PackedSequence, but got "
                f"{type(x).__name__}. Try torch.nn.utils.rnn.pack_sequence for a list of tensors."
            )
        if x.dim() not in (2, 3):
            raise InputError(
                f"{type(self).__name__} expects x of 3 dimensions, or 2 for one sequence, but got "
                f"shape {tuple(x.shape)}. Add a feature dimension with x[..., None] if it has none."
            )
        check_input(self, self.input_size, x)
        if x.dim() == 2:
            x = x[:, None]
        elif self.batch_first:
            x = x.transpose(0, 1)
        if x.shape[0] == 0:
            raise InputError(
                f"{type(self).__name__} expects at least one time step, but (time, batch, features)"
                f" is {tuple(x.shape)}. Drop empty sequences first."
            )
        return x

    def starts(self, batch: int) -> list[Any]:
        """The state from which each cell starts, learnt or not, in the order of ``cells``."""
        cells: Any = self.cells
        if self.initial is None:
            return [cell.initial_state(batch) for cell in cells]
        return [start(cell, batch) for start, cell in zip(self.initial, cells, strict=True)]

    def _initial_states(self, hx: Any, batch: int, batched: bool) -> list[Any]:
        """The state of each cell, as given by the caller or as the cell starts."""
        cells: Any = self.cells
        default = self.starts(batch)
        if hx is None:
            return default
        given = scatter(self, default, hx, self._groups, batched=batched)
        return [cell.resume(state) for cell, state in zip(cells, given, strict=True)]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        own = {n.removeprefix(prefix): t for n, t in state_dict.items() if n.startswith(prefix)}
        if saved_by_torch(own):
            for name in own:
                del state_dict[prefix + name]
            renamed = from_torch(self.cells, self.num_directions, own)
            state_dict.update({prefix + name: tensor for name, tensor in renamed.items()})
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def flatten_parameters(self) -> None:
        """Nothing to do: kept so that code written for ``nn.LSTM`` runs as it is."""

    def extra_repr(self) -> str:
        units = self.hidden_size if self._groups is None else list(self.hidden_sizes)
        parts = [f"{self.input_size}, {units}, num_layers={self.num_layers}"]
        parts += ["batch_first=True"] if self.batch_first else []
        parts += [f"dropout={self.dropout}"] if self.dropout else []
        parts += ["bidirectional=True"] if self.bidirectional else []
        parts += [f"checkpoint_every={self.checkpoint_every}"] if self.checkpoint_every else []
        parts += ["learn_initial_state=True"] if self.initial is not None else []
        return ", ".join(parts)


def _made(spec: LayerSpec, features: int, **given: Any) -> Cell[Any, Any]:
    """One cell of a layer."""
    made = spec.make(features, spec.hidden_size, **given, **spec.options)
    if not isinstance(made, Cell):
        raise InputError(f"expected {name_of(spec.make)} to make a Cell, but it made {type(made)}.")
    made.made_of = parameter_sizes(made)
    return made


def _plain(state: Any) -> Any:
    return tuple(map(_plain, state)) if isinstance(state, tuple) else state
