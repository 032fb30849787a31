"""Gates by name: each must satisfy the equation of its own cell."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attractor
from attractor.cells import CELLS, Cell, DecayNetCell, LSTMCell, Recurrent, zoneout
from attractor.dynamics import Gates, decay_claims, gates, phases, system
from attractor.dynamics.gates import NAMES
from attractor.errors import InputError

X = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def made(name: str) -> Cell[Any, Any]:
    make: Callable[..., Cell[Any, Any]] = CELLS[name]
    return make(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).eval()


Equation = Callable[[Gates], tuple[Tensor, Tensor]]


def lstm(g: Gates) -> tuple[Tensor, Tensor]:
    c = g.gates["f"] * g.before["c"] + g.gates["i"] * g.gates["a"]
    h = g.gates["o"] * torch.tanh(c)
    return torch.cat([c, h]), torch.cat([g.states["c"], g.states["h"]])


def output_gate(g: Gates) -> tuple[Tensor, Tensor]:
    return g.gates["o"] * torch.tanh(g.states["c"]), g.states["h"]


def gru(g: Gates) -> tuple[Tensor, Tensor]:
    z = g.gates["z"]
    return (1 - z) * g.before["h"] + z * g.gates["a"], g.states["h"]


def janet(g: Gates) -> tuple[Tensor, Tensor]:
    h = g.gates["f"] * g.before["h"] + (1 - g.gates["j"]) * g.gates["a"]
    return h, g.states["h"]


EQUATIONS: dict[str, Equation] = {
    "lstm": lstm,
    "decaynet": lstm,
    "tardis": lstm,
    "irc_lstm": output_gate,
    "ihc_lstm": output_gate,
    "gru": gru,
    "janet": janet,
}


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_the_gates_are_those_of_the_equation(name: str) -> None:
    cell = made(name)
    computed, state = EQUATIONS[name](gates(cell, X))
    torch.testing.assert_close(computed, state)


@pytest.mark.parametrize("name", sorted(CELLS))
def test_every_cell_is_recorded_and_unchanged(name: str) -> None:
    cell = made(name)
    before = {key: value.clone() for key, value in cell.state_dict().items()}
    found = gates(cell, X)
    wanted = {gate for names in NAMES.get(type(cell), ()) for gate in names}
    assert wanted <= set(found.gates)
    for value in found.gates.values():
        assert value.shape[:2] == (6, 2)
    assert all(torch.equal(value, before[key]) for key, value in cell.state_dict().items())
    assert "step" not in vars(cell)
    states = Recurrent(lambda *sizes, **options: cell, 4, 4)(X, return_states=True)[2]
    for name_, value in zip(
        found.states, states if isinstance(states, tuple) else (states,), strict=True
    ):
        torch.testing.assert_close(
            found.states[name_], value.flatten(1, 2).reshape(value.shape)[:, 0]
        )


@pytest.mark.parametrize("name", ["irc_gru", "ihc_gru"])
def test_the_write_gate_of_a_connected_gru(name: str) -> None:
    cell = made(name)
    found = gates(cell, X)
    i, r = found.gate("i"), found.gate("r")
    a = cell.candidate(X)  # type: ignore[operator]
    torch.testing.assert_close((1 - i) * found.before["h"] + i * r * a, found.states["h"])


def test_torchs_lstm_by_hand_and_by_layer() -> None:
    torch.manual_seed(0)
    model = nn.LSTM(4, 3, num_layers=2)
    found = gates(model, X)
    weights = dict(model.named_parameters())
    bias = weights["bias_ih_l0"] + weights["bias_hh_l0"]
    sums = X[0].float() @ weights["weight_ih_l0"].T + bias
    i, f, a, o = sums.chunk(4, -1)
    assert {"f1", "i1", "a1", "o1", "f2"} <= set(found.gates)
    for name, value in (
        ("i1", i.sigmoid()),
        ("f1", f.sigmoid()),
        ("a1", a.tanh()),
        ("o1", o.sigmoid()),
    ):
        torch.testing.assert_close(found.gates[name][0].float(), value.detach())


def test_a_wrapped_cell_shows_the_gates_within() -> None:
    cell = zoneout("lstm", 0.3, 0.1)(4, 5)
    assert {"f", "i", "o"} <= set(gates(cell.eval(), X).gates)


def test_a_cell_of_ones_own_has_its_activations_numbered() -> None:
    class Mine(attractor.cells.RNNCell):
        pass

    assert set(gates(Mine(4, 5), X).gates) == {"tanh1"}


def test_saturation_and_time_scale() -> None:
    f = torch.tensor([0.05, 0.5, 0.95, 0.99]).reshape(4, 1, 1).double()
    a = torch.tensor([-0.95, -0.5, 0.5, 0.95]).reshape(4, 1, 1).double()
    found = Gates({"f": f, "a": a}, {}, {})
    assert found.saturation("f") == (0.25, 0.5)
    assert found.saturation("a") == (0.25, 0.25)
    constant = Gates({"f": torch.full((9, 2, 1), 0.9)}, {}, {})
    assert constant.time_scale().item() == pytest.approx(9.4912, rel=1e-4)
    open_ = Gates({"f": torch.ones(9, 2, 1).double()}, {}, {})
    assert 1e9 < open_.time_scale().item() < float("inf")
    with pytest.raises(InputError, match=r"name of a gate \(f, a\), but got 'o'"):
        found.gate("o")


def test_phases_are_told_by_the_slope_at_the_origin() -> None:
    f = torch.tensor([0.9, 0.5, 0.9]).reshape(3, 1, 1)
    i = torch.tensor([0.2, 0.3, 0.05]).reshape(3, 1, 1)
    before = torch.tensor([1.0, -2.0, 1.0]).reshape(3, 1, 1)
    after = torch.tensor([-1.5, 1.0, 1.2]).reshape(3, 1, 1)
    told = phases(Gates({"f": f, "i": i}, {"c": after}, {"c": before}))
    assert told.release.flatten().tolist() == [True, False, False]
    assert told.released == pytest.approx(1 / 3)
    assert told.grows.flatten().tolist() == [True, False, True]
    assert (told.grows_in_release, told.grows_in_catch, told.reversals) == (1.0, 0.5, 0.5)


def test_the_claims_about_decaynet_on_sparse_pixels() -> None:
    """As printed they do not hold before training: sums leave [-3, 3], and most gates rise."""
    g = torch.Generator().manual_seed(0)
    pixels = torch.rand(784, 20, 1, generator=g) * (torch.rand(784, 20, 1, generator=g) < 0.19)
    told = decay_claims(DecayNetCell(1, 100, length=784, generator=g), pixels)
    assert 0.2 < told.outside < 0.45
    assert told.rising > 0.9
    assert told.large > told.small


def test_without_recurrence_and_with_small_inputs_the_gate_never_rises() -> None:
    cell = DecayNetCell(2, 8, length=50, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        cell.weight_hh.zero_()
    told = decay_claims(cell, torch.rand(50, 3, 2))
    assert (told.outside, told.rising) == (0.0, 0.0)


def test_an_lstm_without_a_forget_gate_saturates() -> None:
    """The cell of 1997 never forgets: tanh(c) ends at its bounds; with f = 0.9 it does not."""
    cell = LSTMCell(1, 16, generator=torch.Generator().manual_seed(0))
    ends = []
    for bias in (50.0, 2.2):  # sigmoid(50) is 1, sigmoid(2.2) is 0.9
        with torch.no_grad():
            cell.weight_ih[16:32].zero_()
            cell.weight_hh[16:32].zero_()
            cell.bias[16:32].fill_(bias)  # type: ignore[index]
            cell.bias[32:48].fill_(1.0)  # type: ignore[index]
        found = gates(cell, torch.rand(500, 4, 1))
        ends.append(float((found.states["c"][-1].tanh().abs() > 0.9999).double().mean()))
    assert ends[0] > 0.95
    assert ends[1] < 0.1


def test_a_learnt_initial_state_is_where_it_begins() -> None:
    layer = Recurrent(
        "lstm", 3, 5, learn_initial_state=True, generator=torch.Generator().manual_seed(0)
    )
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in layer.initial.parameters():  # type: ignore[union-attr]
            parameter.normal_(0, 2, generator=g)
    x = torch.randn(6, 2, 3, generator=g)
    found = gates(layer, x)
    h, c = layer.initial_state(2)
    before = {name: value[0] for name, value in found.before.items()}
    assert torch.allclose(before["h"], h[0].double(), atol=1e-6)
    assert torch.allclose(before["c"], c[0].double(), atol=1e-6)
    start = system(layer).start
    assert torch.allclose(start, torch.cat([h[0, 0], c[0, 0]]).double(), atol=1e-6)
