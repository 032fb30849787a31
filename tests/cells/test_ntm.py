"""The neural Turing machine against its NumPy reference, and what must hold of it."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor
from torch.utils._pytree import tree_map

from attractor.cells import NTMCell, Recurrent, unroll
from attractor.errors import InputError
from cells.against import agree, array
from cells.memory_weights import check_gradients, controller_weights, head_weights, scatter
from reference import ntm
from reference.result import Array

OPTIONS: list[dict[str, Any]] = [
    {},
    {"controller": "ff"},
    {"controller": "gru", "write_heads": 3},
    {"read_heads": 3, "write_heads": 2},
    {"controller": "ff", "read_heads": 2, "shift_width": 5},
    {"shift_width": 1},
    {"shift_width": 2},
    {"controller": "rnn", "read_heads": 2},
    {"write_address": "before", "write_heads": 2},
    {"write_address": "before", "controller": "rnn"},
]


def reference_weights(cell: NTMCell) -> dict[str, Array]:
    address = {"k": cell.cell_size, "beta": 1, "g": 1, "s": cell.shift_width, "gamma": 1}
    write = address | {"e": cell.cell_size, "a": cell.cell_size}
    named = controller_weights(cell.controller)
    for kind, heads, sizes in (
        ("read", cell.read_heads, address),
        ("write", cell.write_heads, write),
    ):
        stacked = [getattr(cell, f"{kind}_{part}").chunk(heads) for part in ("ih", "hh", "bias")]
        for n, (ih, hh, bias) in enumerate(zip(*stacked, strict=True)):
            named |= head_weights(sizes, f"{kind[0]}{n}", ih, hh, bias)
    return named


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_reference(options: dict[str, Any]) -> None:
    cell = scatter(NTMCell(3, 7, cells=6, cell_size=4, dtype=torch.float64, **options))
    x = torch.randn(15, 2, 3, generator=Generator().manual_seed(1), dtype=torch.float64)
    output, last, states = unroll(cell, cell.prepare(x), cell.initial_state(2), return_states=True)
    weights = reference_weights(cell)
    heads = {"read_heads": cell.read_heads, "write_heads": cell.write_heads}
    start = ntm.initial_state(7, cells=6, cell_size=4, **heads)
    for row in range(2):
        theirs = ntm.run(
            weights,
            array(x[:, row]),
            state=start,
            controller=options.get("controller", "lstm"),
            write_address=options.get("write_address", "after"),
        )
        agree(output[:, row], theirs.outputs)
        names = {"h": "h", "c": "c", "memory": "M", "read": "w_r", "write": "w_w"}
        for ours, name in names.items():
            agree(getattr(states, ours)[:, row], theirs.steps[name])
            agree(getattr(last, ours)[row], theirs.state[name])


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(options: dict[str, Any]) -> None:
    layer = Recurrent("ntm", 3, 5, cells=5, cell_size=3, dtype=torch.float64, **options)
    check_gradients(scatter(layer), 3)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), heads=st.integers(1, 3), cells=st.integers(3, 9))
def test_weights_sum_to_one(seed: int, heads: int, cells: int) -> None:
    g = Generator().manual_seed(seed)
    cell = NTMCell(2, 5, cells=cells, cell_size=3, read_heads=heads, generator=g)
    x = 5 * torch.randn(8, 2, 2, generator=g)
    _, _, states = unroll(cell, cell.prepare(x), cell.initial_state(2), return_states=True)
    for weights in (states.read, states.write):
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(8, 2, weights.shape[2]))


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_head_walks_round_the_memory(shift: int) -> None:
    """With the gate shut and one shift chosen, only the location counts."""
    cell: Any = NTMCell(2, 5, cells=4, cell_size=3)
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            if name.startswith(("read", "write")):
                parameter.zero_()
        for bias in (cell.read_bias, cell.write_bias):
            bias[4] = -1e4
            bias[5:8] = -1e4
            bias[6 + shift] = 0
    x = torch.randn(6, 1, 2)
    _, _, states = unroll(cell, cell.prepare(x), cell.initial_state(1), return_states=True)
    expected = torch.stack([torch.eye(4)[(shift * (t + 1)) % 4] for t in range(6)])
    torch.testing.assert_close(states.read[:, 0, 0], expected)
    torch.testing.assert_close(states.write[:, 0, 0], expected)


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("controller", ["lstm", "ff"])
def test_no_nan(scale: float, controller: Any) -> None:
    """An empty memory, keys of zero and gates shut fast leave values and gradients finite."""
    cell = NTMCell(2, 5, cells=128, cell_size=3, controller=controller)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(scale)
    state = cell.initial_state(2)
    state = state._replace(memory=torch.zeros_like(state.memory))
    x = (scale * torch.randn(20, 2, 2)).requires_grad_()
    output, last, _ = unroll(cell, cell.prepare(x), state)
    (output.sum() + last.memory.sum()).backward()
    found: list[Tensor] = [output, last.memory, last.read, last.write]
    found += [p.grad for p in cell.parameters() if p.grad is not None]
    assert all(tensor.isfinite().all() for tensor in found)


def test_two_sequences_interleaved() -> None:
    """The memory is in the state, so one cell serves two sequences in turn."""
    cell = NTMCell(2, 5, cells=4, cell_size=3)
    one, two = torch.randn(2, 6, 1, 2)
    states = [cell.initial_state(1), cell.initial_state(1)]
    outputs: list[list[Tensor]] = [[], []]
    for t in range(6):
        for n, x in enumerate((one, two)):
            output, states[n] = cell(x[t], states[n])
            outputs[n].append(output)
    for n, x in enumerate((one, two)):
        alone, last, _ = unroll(cell, cell.prepare(x), cell.initial_state(1))
        torch.testing.assert_close(torch.stack(outputs[n]), alone)
        torch.testing.assert_close(states[n], last)


def test_rows_at_different_times_share_a_batch() -> None:
    cell = NTMCell(2, 5, cells=4, cell_size=3)
    x = torch.randn(7, 2, 2)
    _, early, _ = unroll(cell, cell.prepare(x[:2, :1]), cell.initial_state(1))
    _, late, _ = unroll(cell, cell.prepare(x[:6, 1:]), cell.initial_state(1))
    both = tree_map(lambda a, b: torch.cat([a, b]), early, late)
    together, _ = cell(torch.cat([x[2, :1], x[6, 1:]]), both)
    torch.testing.assert_close(together[:1], cell(x[2, :1], early)[0])
    torch.testing.assert_close(together[1:], cell(x[6, 1:], late)[0])


def test_bfloat16_keeps_its_type() -> None:
    layer = Recurrent("ntm", 3, 4, cells=5, cell_size=3).to(torch.bfloat16)
    output, state = layer(torch.zeros(4, 2, 3, dtype=torch.bfloat16))
    assert {output.dtype, *(leaf.dtype for leaf in state)} == {torch.bfloat16}


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="shift_width of at most cells=2, .* but got 3"):
        NTMCell(3, 4, cells=2)
    with pytest.raises(InputError, match="known controller .* got 'lsmt'. Did you mean 'lstm'"):
        NTMCell(3, 4, controller="lsmt")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="write_address 'before' or 'after', but got 'now'"):
        NTMCell(3, 4, write_address="now")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="NTMCell expects read_heads to be a whole number"):
        NTMCell(3, 4, read_heads=0)


@pytest.mark.parametrize("controller", ["lstm", "gru", "rnn", "ff"])
def test_only_the_forget_gate_of_the_controller_starts_open(controller: Any) -> None:
    bias = NTMCell(3, 4, controller=controller).controller.bias
    assert bias is not None
    expected = [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    assert bias.tolist() == (expected if controller == "lstm" else [0.0] * len(bias))
