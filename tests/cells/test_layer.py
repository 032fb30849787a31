"""What a user gets wrong, and what the layer answers."""

import json
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence

import attractor
from attractor.cells import CELLS, Cell, GRUCell, LSTMCell, Recurrent
from attractor.cells.gated import PLAIN, Taps
from attractor.errors import InputError


def test_a_class_instead_of_a_key() -> None:
    layer = Recurrent(GRUCell, 3, 4)
    assert layer(torch.zeros(2, 1, 3))[0].shape == (2, 1, 4)


def test_unknown_cell_names_the_nearest() -> None:
    with pytest.raises(InputError, match="known cell .* but got 'lsmt'. Did you mean 'lstm'"):
        Recurrent("lsmt", 3, 4)


def test_something_that_is_no_cell() -> None:
    with pytest.raises(InputError, match="a key of CELLS or a Cell class, but got"):
        Recurrent(torch.nn.LSTM, 3, 4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a GRUCell that is made already. Try GRUCell itself"):
        Recurrent(GRUCell(3, 4), 3, 4)


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(InputError, match="option of LSTMCell .* Did you mean 'forget_bias'"):
        Recurrent("lstm", 3, 4, forgetbias=1.0)


def test_wrong_feature_size() -> None:
    with pytest.raises(InputError, match=r"input_size=3, but x has shape \(5, 2, 4\), whose last"):
        Recurrent("gru", 3, 4)(torch.zeros(5, 2, 4))


def test_wrong_feature_size_in_a_packed_sequence() -> None:
    with pytest.raises(InputError, match="input_size=3, but x has shape"):
        Recurrent("gru", 3, 4)(pack_sequence([torch.zeros(5, 4)]))


def test_wrong_number_of_dimensions() -> None:
    with pytest.raises(InputError, match=r"3 dimensions, or 2 .* got shape \(3,\)"):
        Recurrent("gru", 3, 4)(torch.zeros(3))


def test_integers() -> None:
    with pytest.raises(InputError, match=r"floating-point type, but got torch.int64. Try x.float"):
        Recurrent("gru", 3, 4)(torch.zeros(5, 2, 3, dtype=torch.long))


@pytest.mark.parametrize("packed", [False, True])
def test_another_type_than_the_parameters(packed: bool) -> None:
    layer = attractor.GRU(3, 4)
    x: Any = torch.zeros(5, 2, 3, dtype=torch.float64)
    x = pack_padded_sequence(x, torch.tensor([5, 2])) if packed else x
    text = r"GRU expects x of .* parameters, torch.float32, but got torch.float64. Try x.to"
    with pytest.raises(InputError, match=text):
        layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(torch.zeros(5, 2, 3, dtype=torch.bfloat16))
    layer.double()(x)


def test_a_state_of_another_type() -> None:
    layer = Recurrent("lstm", 3, 4)
    state = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4, dtype=torch.float64))
    text = r"state of torch.float32 and torch.float32, but got torch.float32 and torch.float64. Try"
    with pytest.raises(InputError, match=text):
        layer(torch.zeros(5, 2, 3), state)


def test_a_cell_says_what_is_wrong_with_its_input() -> None:
    cell = LSTMCell(3, 4)
    with pytest.raises(InputError, match=r"LSTMCell expects input_size=3, but x has .* \(2, 5\)"):
        cell(torch.zeros(2, 5))
    with pytest.raises(InputError, match=r"parameters, torch.float32, but got torch.float64"):
        cell(torch.zeros(2, 3, dtype=torch.float64))
    with pytest.raises(InputError, match=r"\(batch, 3\) where no .* got \(3,\). Try x\[None\]"):
        cell(torch.zeros(3))
    with pytest.raises(InputError, match="whose last dimension is missing"):
        cell(torch.zeros(()))


def test_time_and_batch_swapped_shows_with_a_state() -> None:
    layer = Recurrent("lstm", 3, 4)
    _, state = layer(torch.zeros(7, 2, 3))
    message = "for a batch of the same size; x is read as .*swapped, batch_first=True"
    with pytest.raises(InputError, match=message):
        layer(torch.zeros(2, 7, 3), state)


def test_state_of_another_cell() -> None:
    _, state = Recurrent("gru", 3, 4)(torch.zeros(7, 2, 3))
    with pytest.raises(
        InputError, match=r"\(1, 2, 4\) and \(1, 2, 4\) for 2 .* but got \(1, 2, 4\)"
    ):
        Recurrent("lstm", 3, 4)(torch.zeros(7, 2, 3), state)


def test_empty_sequence() -> None:
    with pytest.raises(InputError, match="at least one time step"):
        Recurrent("gru", 3, 4)(torch.zeros(0, 2, 3))


def test_packed_sequence_of_length_zero() -> None:
    empty = PackedSequence(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InputError, match="at least one step each, but it is empty"):
        Recurrent("gru", 3, 4)(empty)


def test_dropout_out_of_range() -> None:
    with pytest.raises(InputError, match="dropout to be from 0 to 1, but got 1.5"):
        Recurrent("gru", 3, 4, dropout=1.5)
    with pytest.raises(InputError, match="dropout to be from 0 to 1, but got True"):
        Recurrent("gru", 3, 4, 2, True, False, True)


def test_no_such_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LSMT'"):
        _ = attractor.LSMT  # type: ignore[attr-defined]
    assert "LSTM" in dir(attractor)


def test_cost_grows_linearly_with_time() -> None:
    """The backward pass touches each step once: no tensor as long as the sequence per step."""
    layer = Recurrent("gru", 1, 2)

    def saved(steps: int) -> int:
        sizes: list[int] = []

        def keep(tensor: Tensor) -> Tensor:
            sizes.append(tensor.untyped_storage().nbytes())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            layer(torch.zeros(steps, 1, 1))
        return sum(sizes)

    assert saved(40) < 2.2 * saved(20)


@pytest.mark.parametrize("return_states", [False, True])
def test_inference_forgets_each_state_after_its_step(return_states: bool) -> None:
    living: weakref.WeakSet[Tensor] = weakref.WeakSet()
    most = 0

    class Counting(GRUCell):
        def step(self, prepared: Tensor, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
            nonlocal most
            output, state = super().step(prepared, state, tap)
            state = state.clone()
            living.add(state)
            most = max(most, len(living))
            return output, state

    layer = Recurrent(Counting, 3, 4, num_layers=2)
    with torch.no_grad():
        layer(torch.zeros(20, 2, 3), return_states=return_states)
    assert most >= 20 if return_states else most <= 3


def test_cells_are_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Cell(3, 4)  # type: ignore[abstract]


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_cell_takes_sizes_of_numpy(name: str) -> None:
    sizes: Any = np.array([3, 8])
    cell: Any = CELLS[name](*sizes)
    assert json.dumps([cell.input_size, cell.hidden_size])
    assert list(map(torch.numel, cell.parameters())) == [
        one.numel() for one in CELLS[name](3, 8).parameters()
    ]


def test_sizes_and_options_of_numpy_are_taken_as_pythons_own() -> None:
    layer = Recurrent(
        "nru",
        np.int64(3),  # type: ignore[arg-type]
        np.int32(8),  # type: ignore[arg-type]
        num_layers=np.int64(2),  # type: ignore[arg-type]
        dropout=np.float32(0.5),  # type: ignore[arg-type]
        bias=np.bool_(True),  # type: ignore[arg-type]
        bidirectional=np.bool_(True),  # type: ignore[arg-type]
        memory_size=np.int64(64),
        heads=np.int64(4),
    )
    plain = Recurrent("nru", 3, 8, 2, dropout=0.5, bidirectional=True, memory_size=64, heads=4)
    assert repr(layer) == repr(plain)
    sizes = [layer.input_size, *layer.hidden_sizes, layer.num_layers, layer.output_size]
    cell: Any = layer.cells[2]
    assert json.dumps([*sizes, layer.bidirectional, cell.input_size, cell.memory_size, cell.heads])
    assert layer(torch.zeros(4, 2, 3))[0].shape == (4, 2, 16)
    with pytest.raises(InputError, match="heads to be a whole number, but got 2.5"):
        Recurrent("nru", 3, 8, heads=np.float64(2.5))
