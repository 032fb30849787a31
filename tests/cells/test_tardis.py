"""TARDIS against its NumPy reference, and what must hold of it."""

import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor
from torch.utils._pytree import tree_map

from attractor.cells import Recurrent, TARDISCell, TARDISState, unroll
from attractor.cells.tardis import TARDISInput, sparse_addresses
from attractor.errors import InputError
from cells.against import agree, array
from cells.memory_weights import check_gradients, scatter
from reference import tardis
from reference.result import Array

STEPS = 17
SIZES: dict[str, Any] = {"cells": 5, "address_size": 3, "content_size": 4, "attention_size": 6}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"reset_gates": False},
    {"estimator": "reinforce"},
    {"estimator": "reinforce", "reset_gates": False},
    {"growing": True},
    {"growing": True, "estimator": "reinforce"},
]


def make(**options: Any) -> TARDISCell:
    cell: TARDISCell = scatter(TARDISCell(3, 7, dtype=torch.float64, **SIZES, **options))
    return cell


def reference_weights(cell: Any) -> dict[str, Array]:
    n = cell.hidden_size
    named = {
        "A": cell.address,
        "a": cell.attention_out[0],
        "W_gamma_h": cell.attention_hh,
        "W_gamma_x": cell.attention_ih,
        "W_gamma_m": cell.attention_mh,
        "W_gamma_u": cell.attention_uh,
        "b_gamma": cell.attention_bias,
        "w_tau": torch.zeros(n),
        "b_tau": torch.zeros(()),
        "W_m": cell.content_hh,
        "b_m": cell.content_bias,
        "W_g_h": cell.output_hh,
        "W_g_r": cell.output_rh,
        "b_g": cell.output_bias,
    }
    if cell.inverse_temperature_hh is not None and cell.inverse_temperature_bias is not None:
        named["w_tau"] = cell.inverse_temperature_hh[0]
        named["b_tau"] = cell.inverse_temperature_bias[0]
    for g, gate in enumerate("ifco"):
        rows = slice(g * n, (g + 1) * n)
        named[f"W_{gate}_x"] = cell.weight_ih[rows]
        named[f"W_{gate}_h"] = cell.weight_hh[rows]
        named[f"W_{gate}_r"] = cell.weight_rh[rows]
        named[f"b_{gate}"] = cell.bias[rows]
    if cell.reset_gates:
        for g, gate in enumerate(("alpha", "beta")):
            named[f"w_{gate}_x"] = cell.weight_ih[4 * n + g]
            named[f"w_{gate}_h"] = cell.weight_hh[4 * n + g]
            named[f"w_{gate}_r"] = cell.weight_rh[4 * n + g]
            named[f"b_{gate}"] = cell.bias[4 * n + g]
    return {name: array(weight) for name, weight in named.items()}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_reference(options: dict[str, Any], training: bool) -> None:
    """Over more steps than there are cells, with the same noise on both sides."""
    torch.manual_seed(0)
    cell = make(**options).train(training)
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    prepared = cell.prepare(x)
    assert isinstance(prepared.gumbel, Tensor) == training
    assert isinstance(prepared.logistic, Tensor) == (training and cell.reset_gates)
    output, last, states = unroll(cell, prepared, cell.initial_state(2), return_states=True)
    weights = reference_weights(cell)
    for row in range(2):
        given: dict[str, Any] = {}
        if isinstance(prepared.logistic, Tensor):
            given["gate_noise"] = array(prepared.logistic[:, row])
        if isinstance(prepared.gumbel, Tensor) and cell.estimator == "gumbel":
            given["xi"] = array(prepared.gumbel[:, row])
        if cell.estimator == "reinforce":
            given["read_index"] = array(states.read[:, row].argmax(-1))
        theirs = tardis.run(
            weights,
            array(x[:, row]),
            state=tardis.initial_state(7, cells=5, content_size=4),
            reset_gates=cell.reset_gates,
            growing=cell.growing,
            **given,
        )
        names = {"h": "h", "c": "c", "content": "C", "r": "r", "read": "w", "log_prob": "log_prob"}
        for ours, name in names.items():
            agree(getattr(states, ours)[:, row], theirs.steps[name])
        for ours, name in {"h": "h", "c": "c", "content": "C", "usage": "usage"}.items():
            agree(getattr(last, ours)[row], theirs.state[name])
        assert last.filled[row] == min(STEPS, 5)
        fused = [
            tardis.fuse(weights, h, r)
            for h, r in zip(theirs.steps["h"], theirs.steps["r"], strict=True)
        ]
        for t in range(STEPS):
            agree(output[t, row], fused[t])


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(options: dict[str, Any]) -> None:
    """In evaluation, where reads are not random and their gradient needs no estimate."""
    layer = Recurrent("tardis", 3, 5, dtype=torch.float64, **SIZES, **options)
    check_gradients(scatter(layer).eval(), 3)


def run(cell: TARDISCell, x: Tensor) -> TARDISState:
    """The states after every step."""
    states: TARDISState = unroll(
        cell, cell.prepare(x), cell.initial_state(x.shape[1]), return_states=True
    ).states
    return states


sizes = given(
    seed=st.integers(0, 10_000),
    cells=st.integers(2, 7),
    estimator=st.sampled_from(["gumbel", "reinforce"]),
    training=st.booleans(),
)


@settings(deadline=None, max_examples=25)
@sizes
def test_fills_in_order_and_then_writes_where_it_read(
    seed: int, cells: int, estimator: Any, training: bool
) -> None:
    torch.manual_seed(seed)
    cell = TARDISCell(2, 6, cells=cells, content_size=5, estimator=estimator).train(training)
    states = run(cell, torch.randn(3 * cells, 2, 2))
    before = torch.cat([torch.zeros_like(states.content[:1]), states.content[:-1]])
    changed = (states.content != before).any(-1)
    filling = torch.eye(cells, dtype=torch.bool).unsqueeze(1).expand(-1, 2, -1)
    assert torch.equal(changed[:cells], filling)
    assert torch.equal(changed[cells:], states.read[cells:].bool())
    steps = torch.arange(1, 3 * cells + 1).clamp(max=cells)
    assert torch.equal(states.filled, steps.float().unsqueeze(1).expand(-1, 2))


@settings(deadline=None, max_examples=25)
@sizes
def test_reads_one_cell_and_never_the_last_again(
    seed: int, cells: int, estimator: Any, training: bool
) -> None:
    torch.manual_seed(seed)
    cell = TARDISCell(2, 6, cells=cells, content_size=5, estimator=estimator).train(training)
    states = run(cell, 3 * torch.randn(12, 2, 2))
    assert ((states.read == 0) | (states.read == 1)).all()
    assert (states.read.sum(-1) == 1).all()
    assert (states.read[1:] * states.read[:-1]).sum() == 0
    assert torch.equal(states.usage, states.read.cumsum(0))
    assert torch.equal(states.usage.sum(-1), torch.arange(1.0, 13.0).unsqueeze(1).expand(-1, 2))
    assert (states.log_prob <= 0).all()
    memory = torch.cat([torch.zeros_like(states.content[:1]), states.content[:-1]])
    addresses = cell.address.expand(12, 2, -1, -1)
    row = torch.cat([addresses, memory], -1)[states.read.bool()].reshape(12, 2, -1)
    assert torch.equal(states.r, row), "a read is one cell, bit by bit"


def test_the_surrogate_gradient_is_that_of_the_soft_weights() -> None:
    """Straight through: take the slope at the hard read, and the soft weights' way to it."""
    torch.manual_seed(3)
    cell = make()
    x = torch.randn(9, 2, 3, dtype=torch.float64)
    prepared = cell.prepare(x)
    earlier = tree_map(lambda p: p[:8], prepared)
    state = tree_map(Tensor.detach, unroll(cell, earlier, cell.initial_state(2)).state)
    slices: TARDISInput = tree_map(lambda p: p[8], prepared)
    direction = torch.randn(2, 7, dtype=torch.float64)
    attention = [p for n, p in cell.named_parameters() if n.startswith(("attention", "inverse"))]

    output, _ = cell.step(slices, state)
    found = torch.autograd.grad((output * direction).sum(), attention, retain_graph=True)

    def answer(w: Tensor) -> Tensor:
        """The output of the step for given weights of the read."""
        memory = torch.cat([cell.address.expand(2, -1, -1), state.content], -1)
        r = (w.unsqueeze(-1) * memory).sum(-2)
        h, _ = cell._controller(slices, r, state)
        y = torch.tanh(F.linear(h, cell.output_hh, cell.output_bias) + F.linear(r, cell.output_rh))
        return (y * direction).sum()

    pi = cell._logits(slices.attention, state)
    assert isinstance(slices.gumbel, Tensor)
    assert cell.inverse_temperature_hh is not None
    tau = 1 + F.softplus(
        F.linear(state.h, cell.inverse_temperature_hh, cell.inverse_temperature_bias)
    )
    soft = torch.softmax((pi + slices.gumbel) * tau, -1)
    hard = F.one_hot((pi + slices.gumbel).argmax(-1), 5).double().requires_grad_()
    (slope,) = torch.autograd.grad(answer(hard), hard)
    expected = torch.autograd.grad((soft * slope).sum(), attention)
    torch.testing.assert_close(found, expected)
    assert all(gradient.any() for gradient in found)


def test_reinforce_has_no_gradient_through_a_draw_but_through_its_log_probability() -> None:
    torch.manual_seed(0)
    cell = make(estimator="reinforce")
    x = torch.randn(9, 2, 3, dtype=torch.float64)
    output, _, states = unroll(cell, cell.prepare(x), cell.initial_state(2), return_states=True)
    attention = [p for n, p in cell.named_parameters() if n.startswith("attention")]
    grads = torch.autograd.grad(output.sum(), attention, retain_graph=True, allow_unused=True)
    assert all(gradient is None for gradient in grads)
    assert all(g.any() for g in torch.autograd.grad(states.log_prob.sum(), attention))


def test_the_likelihood_ratio_is_the_gradient_of_the_expected_reward() -> None:
    """Every read of one step is forced in turn; weighed by probability, REINFORCE is exact."""
    cell = make(estimator="reinforce")
    x = torch.randn(1, 1, 3, dtype=torch.float64)
    rewards = torch.tensor([0.3, -1.0, 2.0, 0.7, 0.1], dtype=torch.float64)
    prepared = cell.prepare(x)
    state = cell.initial_state(1)
    pi = cell._logits(prepared.attention[0], state)[0]
    attention = [p for n, p in cell.named_parameters() if n.startswith("attention")]
    expected = torch.autograd.grad(
        (torch.softmax(pi, -1) * rewards).sum(), attention, retain_graph=True
    )
    total: Any = 0.0
    for index in range(5):
        noise = 1e4 * F.one_hot(torch.tensor([index]), 5).double()
        slices = TARDISInput(prepared.attention[0], prepared.controller[0], noise, ())
        _, after = cell.step(slices, state)
        assert after.read[0, index] == 1
        total = total + after.log_prob.exp().detach() * rewards[index] * after.log_prob
    torch.testing.assert_close(torch.autograd.grad(total.sum(), attention), expected)


def test_a_wormhole_carries_a_gradient_past_the_controller() -> None:
    """With every gate of the LSTM shut to the past, a read still reaches the step that wrote."""
    torch.manual_seed(0)
    cell: Any = make().eval()
    with torch.no_grad():
        cell.weight_hh.zero_()
        cell.attention_hh.zero_()
        cell.bias[7:14] = -1e4  # forget everything
    x = torch.randn(6, 1, 3, dtype=torch.float64, requires_grad=True)
    output, _, states = unroll(cell, cell.prepare(x), cell.initial_state(1), return_states=True)
    assert states.read[5, 0].argmax() != 4
    (gradient,) = torch.autograd.grad(output[5].sum(), x)
    writer = int(states.read[5, 0].argmax())  # during the fill, cell n is written at step n
    reached = gradient.abs().sum((1, 2)) > 0
    assert reached[writer]
    assert not reached[4]


def test_two_sequences_interleaved_and_saved() -> None:
    """The memory is in the state, so one cell serves two sequences in turn, also from a file."""
    cell = TARDISCell(2, 5, cells=3, content_size=4).eval()
    one, two = torch.randn(2, 8, 1, 2)
    states = [cell.initial_state(1), cell.initial_state(1)]
    outputs: list[list[Tensor]] = [[], []]
    for t in range(8):
        for n, x in enumerate((one, two)):
            output, state = cell(x[t], states[n])
            saved = io.BytesIO()
            torch.save(state._asdict(), saved)
            saved.seek(0)
            states[n] = TARDISState(**torch.load(saved))
            outputs[n].append(output)
    for n, x in enumerate((one, two)):
        alone, last, _ = unroll(cell, cell.prepare(x), cell.initial_state(1))
        torch.testing.assert_close(torch.stack(outputs[n]), alone)
        torch.testing.assert_close(states[n], last)


def test_rows_at_different_times_share_a_batch() -> None:
    """One still fills its memory, the other is full."""
    cell = TARDISCell(2, 5, cells=3, content_size=4).eval()
    x = torch.randn(7, 2, 2)
    _, early, _ = unroll(cell, cell.prepare(x[:2, :1]), cell.initial_state(1))
    _, late, _ = unroll(cell, cell.prepare(x[:6, 1:]), cell.initial_state(1))
    both = tree_map(lambda a, b: torch.cat([a, b]), early, late)
    _, together = cell(torch.cat([x[2, :1], x[6, 1:]]), both)
    for row, (step, state) in enumerate(((2, early), (6, late))):
        _, alone = cell(x[step, row : row + 1], state)
        torch.testing.assert_close(tree_map(lambda s, r=row: s[r : r + 1], together), alone)


def test_evaluation_is_repeatable_and_training_is_random() -> None:
    layer = Recurrent("tardis", 2, 8, cells=6)
    x = torch.randn(9, 2, 2)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves
def test_training_compiles() -> None:
    layer = Recurrent("tardis", 2, 4, cells=3, content_size=3, attention_size=3)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    for length in (4, 7):
        output, _, states = compiled(torch.randn(length, 2, 2), return_states=True)
        assert (states.read.sum(-1) == 1).all()
        output.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_bfloat16_keeps_its_type() -> None:
    layer = Recurrent("tardis", 3, 4, cells=5, content_size=3).to(torch.bfloat16)
    output, state = layer(torch.zeros(4, 2, 3, dtype=torch.bfloat16))
    counts = {"usage", "filled"}  # these stay exact
    kept = [leaf.dtype for name, leaf in state._asdict().items() if name not in counts]
    assert {output.dtype, *kept} == {torch.bfloat16}
    output.sum().backward()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), cells=st.integers(1, 20), size=st.integers(1, 9))
def test_addresses_are_sparse_and_differ(seed: int, cells: int, size: int) -> None:
    g = Generator().manual_seed(seed)
    addresses = sparse_addresses(cells, size, g, {"device": None, "dtype": None})
    assert (addresses.count_nonzero(-1) == (size + 1) // 2).all()
    assert len({tuple(row) for row in addresses.tolist()}) == cells


def test_addresses_are_not_trained() -> None:
    cell = TARDISCell(2, 3)
    assert "address" not in dict(cell.named_parameters())
    assert "address" in cell.state_dict()


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="estimator of TARDISCell .* Did you mean 'gumbel'"):
        TARDISCell(3, 4, estimator="gumble")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="TARDISCell expects cells to be a whole number"):
        TARDISCell(3, 4, cells=0)


def test_counts_stay_exact_in_half_precision() -> None:
    layer = Recurrent("tardis", 2, 4, cells=300, dtype=torch.bfloat16).eval()
    _, state = layer(torch.zeros(320, 1, 2, dtype=torch.bfloat16))
    assert state.filled.item() == 300
    assert state.usage.sum().item() == 320


def test_a_growing_memory_with_room_for_all_is_never_written_over() -> None:
    """And how much room there is makes no difference."""
    small = scatter(TARDISCell(3, 7, growing=True, dtype=torch.float64, **(SIZES | {"cells": 9})))
    large = TARDISCell(3, 7, growing=True, dtype=torch.float64, **(SIZES | {"cells": 20}))
    state = large.state_dict()
    for name, value in small.state_dict().items():
        if name in ("address", "attention_uh"):
            state[name].zero_()
            state[name][tuple(slice(size) for size in value.shape)] = value
        else:
            state[name] = value
    large.load_state_dict(state)
    x = torch.randn(9, 2, 3, dtype=torch.float64)
    a, b = run(small.eval(), x), run(large.eval(), x)
    torch.testing.assert_close(a.h, b.h)
    torch.testing.assert_close(a.content, b.content[:, :, :9])
    assert not a.r[0].any()
    assert not a.read[0].any()
    for t in range(1, 9):
        torch.testing.assert_close(a.content[t, :, :t], a.content[t - 1, :, :t])
        assert (a.read[t].argmax(-1) < t).all()
