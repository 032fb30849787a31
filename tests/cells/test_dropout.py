"""Recurrent dropout and weight drop."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from attractor.cells import (
    LSTMCell,
    LSTMState,
    Recurrent,
    recurrent_dropout,
    unroll,
    weight_drop,
    zoneout,
)
from attractor.errors import InputError
from cells.against import BATCH, TIME, agree, array, blocks, normal, random_cell
from reference import normalised


@pytest.mark.parametrize("per", ["step", "sequence"])
@pytest.mark.parametrize("training", [True, False])
def test_recurrent_dropout_equals_the_reference(per: Any, training: bool) -> None:
    cell = random_cell(recurrent_dropout("lstm", 0.3, per=per), 3, 5).train(training)
    lstm = cell.cell
    weights = blocks("W_", "IFAO", lstm.weight_ih) | blocks("U_", "IFAO", lstm.weight_hh)
    weights |= blocks("b_", "IFAO", lstm.bias)
    x = normal(TIME, BATCH, 3)
    prepared = cell.prepare(x)
    output, last, _ = unroll(cell, prepared, cell.initial_state(BATCH))
    for row in range(BATCH):
        options: dict[str, Any] = {}
        if training:
            kept = (prepared.masks[0][:, row] > 0).double()
            options["mask"] = array(kept if per == "step" else kept[0])
        expected, end, _ = normalised.recurrent_dropout(
            weights, array(x[:, row]), training=training, p=0.3, inverted=True, **options
        )
        agree(output[:, row], expected)
        agree(last.c[row], end["c"])


def test_recurrent_dropout_draws_at_the_rate() -> None:
    x = torch.zeros(50, 20, 3)
    step: Any = recurrent_dropout("lstm", 0.25)(3, 40)
    mask = step.prepare(x).masks[0]
    assert mask.unique().tolist() == pytest.approx([0, 4 / 3])
    assert mask.mean().item() == pytest.approx(1, abs=0.02)
    assert not torch.equal(mask[0], mask[1])
    sequence: Any = recurrent_dropout("lstm", 0.25, per="sequence")(3, 40)
    mask = sequence.prepare(x).masks[0]
    assert torch.equal(mask[0], mask[49])
    assert not torch.equal(mask[0, 0], mask[0, 1])


@pytest.mark.parametrize("key", ["rnn", "gru", "janet", "decaynet", "sru", "tlstm", "fastgrnn"])
def test_what_is_never_written_is_never_there(key: str) -> None:
    """All candidates dropped: the state decays from where it was, free of the input's candidate."""
    cell: Any = recurrent_dropout(key, 0.5)(4, 4)
    x = torch.randn(1, 2, 4)
    prepared = cell.prepare(x)
    none = prepared._replace(masks=(torch.zeros_like(prepared.masks[0]),))
    _, state, _ = unroll(cell, none, cell.initial_state(2))
    memory = getattr(state, "c", state)
    assert not memory.any()


def test_recurrent_dropout_in_all_forms_of_input() -> None:
    layer = Recurrent(recurrent_dropout("irc_lstm", 0.5), 3, 4, num_layers=2, bidirectional=True)
    output, _ = layer(pack_sequence([torch.randn(4, 3), torch.randn(2, 3)]))
    output.data.sum().backward()
    assert layer(torch.randn(4, 3))[0].shape == (4, 8)


def test_recurrent_dropout_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="writes a candidate, .* got NRUCell. Try zoneout"):
        Recurrent(recurrent_dropout("nru", 0.5), 3, 4)
    with pytest.raises(InputError, match="rate to be from 0 to below 1, but got 1.0"):
        Recurrent(recurrent_dropout("lstm", 1.0), 3, 4)
    per: Any = "batch"
    with pytest.raises(InputError, match="'step' or 'sequence', but got 'batch'"):
        Recurrent(recurrent_dropout("lstm", 0.5, per=per), 3, 4)
    with pytest.raises(InputError, match="one dropout on LSTMCell"):
        recurrent_dropout(recurrent_dropout("lstm", 0.1), 0.1)


def test_dropped_weights_are_zero_in_the_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = weight_drop(Recurrent("lstm", 4, 8), 0.5)
    weight = layer.layer.get_parameter("cells.0.weight_hh")
    whole = weight.detach().clone()
    used: list[Tensor] = []
    step = LSTMCell.step

    def spy(cell: LSTMCell, prepared: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        used.append(cell.weight_hh.detach().clone())
        return step(cell, prepared, state)

    monkeypatch.setattr(LSTMCell, "step", spy)
    x = torch.randn(5, 2, 4)
    layer(x)[0].square().sum().backward()
    gone = used[0] == 0
    assert 0.3 < gone.float().mean() < 0.7
    torch.testing.assert_close(used[0][~gone], 2 * whole[~gone])
    assert all(torch.equal(weights, used[0]) for weights in used[:5])  # the same at each step
    assert torch.equal(weight, whole)
    assert weight.grad is not None
    assert not weight.grad[gone].any()
    assert weight.grad[~gone].all()
    layer(x)
    assert not torch.equal(used[5], used[0])  # and another in the next call
    layer.eval()(x)
    assert torch.equal(used[10], whole)


def test_forward_pass_uses_the_dropped_weights() -> None:
    layer = weight_drop(Recurrent("lstm", 4, 8), 0.5)
    torch.manual_seed(1)
    x = torch.randn(5, 2, 4)
    plain = Recurrent("lstm", 4, 8)
    plain.load_state_dict(layer.layer.state_dict())
    torch.manual_seed(2)
    found, _ = layer(x)
    torch.manual_seed(2)
    dropped = layer.drop()["cells.0.weight_hh"]
    assert not torch.equal(found, plain(x)[0])
    with torch.no_grad():
        plain.get_parameter("cells.0.weight_hh").copy_(dropped)
    torch.testing.assert_close(found, plain(x)[0])


def test_weights_are_whole_in_evaluation() -> None:
    layer = weight_drop(Recurrent("lstm", 4, 8), 0.5)
    x = torch.randn(5, 2, 4)
    layer(x)
    layer.eval()
    assert torch.equal(layer(x)[0], layer.layer(x)[0])
    layer.train()
    assert not torch.equal(layer(x)[0], layer(x)[0])


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("gru", ("weight_hh",)),
        ("goru", ("weight_hh",)),
        ("nru", ("weight_mh", "weight_hh")),
        ("sru", ("omega",)),
        ("tlstm", ("weight_previous",)),
        ("irc_gru", ("connection.weight",)),
        ("ihc_lstm", ("connection.weight",)),
        (zoneout("lstm", 0.5, 0.05), ("cell.weight_hh",)),
    ],
)
def test_recurrent_weights_of_each_layer_and_direction_are_found(cell: Any, names: Any) -> None:
    layer = weight_drop(Recurrent(cell, 4, 8, num_layers=2, bidirectional=True), 0.5)
    assert layer.dropped == tuple(f"cells.{n}.{name}" for n in range(4) for name in names)
    output, _, _ = layer(torch.randn(5, 2, 4), return_states=True)
    output.sum().backward()
    assert (layer.input_size, layer.output_size) == (4, 16)


def test_weights_by_name() -> None:
    layer = weight_drop(Recurrent("sru", 4, 8), 0.5, names=("weight_ih",))
    assert layer.dropped == ("cells.0.weight_ih",)


def test_weight_drop_that_would_never_happen_is_refused() -> None:
    with pytest.raises(InputError, match="recurrent weights match none of cells.0.weight_gates"):
        weight_drop(Recurrent("irc_sru", 4, 8), 0.5)
    with pytest.raises(InputError, match="the names weight_hx match none of cells.0.weight_ih"):
        weight_drop(Recurrent("lstm", 4, 8), 0.5, names=["weight_hx"])
    theirs: Any = nn.LSTM(4, 8)
    with pytest.raises(InputError, match="layer of attractor's, but got LSTM"):
        weight_drop(theirs, 0.5)
    with pytest.raises(InputError, match="weight_drop expects rate to be from 0 to below 1"):
        weight_drop(Recurrent("lstm", 4, 8), 1.5)
