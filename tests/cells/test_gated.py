"""Cells with normalisers and noise on them keep the promises of every cell."""

import inspect
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import (
    CELLS,
    Composed,
    DecayNetCell,
    GatedCell,
    GRUCell,
    IHCLSTMCell,
    LSTMCell,
    NTMCell,
    Recurrent,
    Taps,
    batch_norm,
    compose,
    layer_norm,
    recurrent_dropout,
    unroll,
    zoneout,
)
from attractor.cells.base import map_steps
from attractor.errors import InputError
from cells.against import noting
from contracts import test_cells as contract
from contracts import test_traced as traced
from contracts.cells import OPTIONS, inputs, make_cell, make_layer, seeded
from contracts.test_exported import exported

GATED = sorted(key for key, cell in CELLS.items() if issubclass(cell, GatedCell))

ALL = zoneout(recurrent_dropout(layer_norm("lstm"), 0.2), 0.5, 0.05)
COMPOSED = {
    "all": ALL,
    "batch norm": compose("lstm", batch_norm=4, zoneout=(0.3, 0.1)),
    "batch norm of decaynet": batch_norm(partial(DecayNetCell, length=8), 6),
    "batch norm of gru": batch_norm("gru", 6),
    "layer norm of ihc_lstm": layer_norm(partial(IHCLSTMCell, gate_reads_input=False)),
    "layer norm of gru": layer_norm(partial(GRUCell, reset="after")),
    "layer norm of ntm": layer_norm(partial(NTMCell, cells=5, cell_size=4)),
    "zoneout of irc_sru": zoneout("irc_sru", 0.3, 0.1),
}
PROMISES = [
    contract.test_batch_rows_are_independent,
    contract.test_bidirectional_is_two_runs,
    contract.test_stacked_is_one_after_the_other,
    contract.test_shapes_are_those_of_torch,
    contract.test_states_of_every_step_end_in_the_last,
    contract.test_gradcheck_twice,
    contract.test_vmap_over_networks_and_grad,
    contract.test_autocast,
    partial(contract.test_autocast_leaves_the_type_of_the_output, training=False),
    contract.test_copies_answer_alike,
    partial(contract.test_packed_is_each_sequence_alone, bidirectional=True, enforce_sorted=False),
]
composed = pytest.mark.parametrize("cell", COMPOSED.values(), ids=COMPOSED.keys())


@composed
@pytest.mark.parametrize("promise", PROMISES)
def test_composed_cells_keep_the_contract(cell: Any, promise: Any) -> None:
    promise(cell)


@pytest.mark.parametrize("name", ["all", "batch norm of decaynet"])
@pytest.mark.filterwarnings("ignore")
def test_composed_cells_compile(name: str) -> None:
    layer = Recurrent(COMPOSED[name], 3, 8).eval()
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    x = inputs(5, 2)
    torch.testing.assert_close(compiled(x), layer(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all", "batch norm", "layer norm of ihc_lstm"])
@pytest.mark.filterwarnings("ignore")
def test_composed_cells_compile_and_export_in_layers(name: str) -> None:
    traced.test_compile_whole_graph(COMPOSED[name])  # type: ignore[arg-type]
    exported(make_layer(COMPOSED[name]).eval())  # type: ignore[arg-type]


@composed
def test_composed_cells_train_with_gradients_for_every_parameter(cell: Any) -> None:
    contract.test_gradients_reach_every_parameter_and_the_first_input(cell)


@composed
def test_composed_cells_go_to_other_devices(cell: Any) -> None:
    layer = Recurrent(cell, 3, 8, device="meta", generator=seeded())
    assert all(t.is_meta for t in layer.state_dict().values())
    assert layer(inputs(3, 2).to("meta"))[0].is_meta
    assert layer.eval()(inputs(3, 2).to("meta"))[0].is_meta


@pytest.mark.filterwarnings("ignore")
def test_noise_is_drawn_outside_a_compiled_loop() -> None:
    layer = Recurrent(ALL, 3, 8)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="eager", dynamic=True)
    x = inputs(5, 2)
    one, other = compiled(x)[0], compiled(x)[0]
    assert one.shape == (5, 2, 8)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("key", GATED)
def test_taps_are_where_the_cell_says(key: str) -> None:
    cell: Any = make_cell(key)
    prepared = map_steps(lambda p: p[0], cell.prepare(inputs(2, 2)))
    seen: dict[str, list[Tensor]] = {name: [] for name in Taps._fields}
    taps = Taps(**{name: noting(passed) for name, passed in seen.items()})
    torch.testing.assert_close(
        cell.step(prepared, cell.initial_state(2), taps),
        cell.step(prepared, cell.initial_state(2)),
    )
    x, h, inner, memory, read = cell.sites()
    widths = {"x": sum(x), "h": sum(h), "inner": sum(inner), "candidate": 8, "memory": memory}
    widths["read"] = sum(read)
    for name, passed in seen.items():
        assert [value.shape[-1] for value in passed] == ([widths[name]] if widths[name] else [])


@pytest.mark.parametrize("key", GATED)
def test_all_that_the_gates_read_of_the_input_comes_from_linear(key: str) -> None:
    cell: Any = make_cell(key).eval()  # in which no noise is drawn
    products: list[Any] = []

    def linear(x: Any, weight: Any, bias: Any) -> Any:
        products.append(torch.nn.functional.linear(x, weight))
        return products[-1] if bias is None else products[-1] + bias

    found = cell.prepare(inputs(2, 2), linear)
    assert [product.shape[-1] for product in products] == [sum(cell.sites().x)]
    torch.testing.assert_close(found, cell.prepare(inputs(2, 2)))
    ragged = cell.prepare_ragged(inputs(2, 2), torch.tensor([2, 2]), linear)
    torch.testing.assert_close(ragged, found)
    assert len(products) == 2


@pytest.mark.parametrize("key", GATED)
def test_every_gated_cell_takes_everything_at_once(key: str) -> None:
    options = OPTIONS.get(key, {})
    has_cell_state = key == "sru" or hasattr(make_cell(key).initial_state(1), "c")
    has_hidden_state = key not in ("sru", "tlstm")
    rates = (0.3 * has_cell_state, 0.1 * has_hidden_state)
    for made in (
        compose(key, layer_norm=True, zoneout=rates, recurrent_dropout=0.1),
        compose(key, batch_norm=4, zoneout=rates, recurrent_dropout=0.1),
    ):
        layer = Recurrent(made, 3, 8, num_layers=2, bidirectional=True, **options)
        output, _ = layer(inputs(5, 2))
        output.sum().backward()
        assert output.shape == (5, 2, 16)
        assert output.isfinite().all()


def test_order_does_not_matter() -> None:
    other = layer_norm(zoneout(recurrent_dropout("lstm", 0.2), 0.5, 0.05))
    third = compose("lstm", layer_norm=True, zoneout=(0.5, 0.05), recurrent_dropout=0.2)
    x = inputs(5, 2)
    answers = []
    for made in (ALL, other, third):
        layer = Recurrent(made, 3, 8, generator=seeded())
        torch.manual_seed(0)
        answers.append((list(layer.state_dict()), layer(x)[0]))
    assert answers[0][0] == answers[1][0] == answers[2][0]
    torch.testing.assert_close(answers[0][1], answers[1][1])
    torch.testing.assert_close(answers[0][1], answers[2][1])


def test_nothing_asked_for_is_the_cell_itself() -> None:
    cell = compose("lstm", batch_norm=0, zoneout=None)(3, 8, peepholes=True)
    assert type(cell) is LSTMCell
    assert cell.peephole is not None


def test_options_go_to_the_cell_and_are_checked() -> None:
    layer: Any = Recurrent(layer_norm("lstm"), 3, 8, forget_bias=2.0, proj_size=4)
    assert layer.cells[0].cell.bias[8].item() == 2.0
    assert layer(inputs(5, 2))[0].shape == (5, 2, 4)
    assert layer.output_size == 4
    with pytest.raises(InputError, match="option of LSTMCell .* Did you mean 'forget_bias'"):
        Recurrent(ALL, 3, 8, forgetbias=2.0)
    assert "peepholes" in inspect.signature(ALL).parameters


def test_any_function_that_makes_a_cell_will_do() -> None:
    x = inputs(5, 2)
    layer = Recurrent(partial(LSTMCell, peepholes=True), 3, 8)
    assert layer(x)[0].shape == (5, 2, 8)

    def make(*sizes: int, **options: Any) -> LSTMCell:
        return LSTMCell(*sizes, **options)

    assert Recurrent(make, 3, 8, peepholes=True)(x)[0].shape == (5, 2, 8)
    with pytest.raises(InputError, match="expected <lambda> to make a Cell, but it made"):
        Recurrent(lambda *sizes, **options: torch.nn.Linear(*sizes), 3, 8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a key of CELLS or a Cell class, but got 3"):
        Recurrent(3, 3, 8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="known cell .* Did you mean 'lstm'"):
        layer_norm("lsmt")
    with pytest.raises(InputError, match="a key of CELLS or a Cell class"):
        zoneout(torch.nn.LSTM, 0.5, 0.5)  # type: ignore[arg-type]


def test_two_normalisers_are_refused() -> None:
    with pytest.raises(InputError, match="one normaliser on GRUCell, but it has one already"):
        layer_norm(batch_norm("gru", 5))
    with pytest.raises(InputError, match="one normaliser on LSTMCell"):
        compose("lstm", layer_norm=True, batch_norm=5)


def test_state_is_that_of_the_cell() -> None:
    layer = Recurrent(ALL, 3, 8)
    _, (h, c) = layer(inputs(5, 2))
    assert h.shape == c.shape == (1, 2, 8)
    plain: Any = Recurrent("lstm", 3, 8)
    plain(inputs(5, 2), (h, c))


def test_composed_is_hashable_and_equal_to_itself() -> None:
    assert isinstance(ALL, Composed)
    assert ALL == ALL
    assert {ALL: 1}[ALL] == 1


def test_split_sequence_gives_same_output_in_evaluation() -> None:
    cell = ALL(3, 8, generator=seeded()).eval()
    x = inputs(7, 2)
    whole, _, _ = unroll(cell, cell.prepare(x), cell.initial_state(2))
    first, state, _ = unroll(cell, cell.prepare(x[:4]), cell.initial_state(2))
    second, _, _ = unroll(cell, cell.prepare(x[4:]), state)
    torch.testing.assert_close(whole, torch.cat([first, second]))
