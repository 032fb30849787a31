import math
from typing import Any

import pytest
import torch

from attractor.cells import (
    CELLS,
    GRUCell,
    JANETCell,
    LSTMCell,
    Recurrent,
    RNNCell,
)
from attractor.cells.init import weights_
from attractor.cells.layer.options import cell_options
from attractor.errors import InputError
from contracts.cells import seeded


def test_chrono_keeps_memory_for_up_to_t_max_steps() -> None:
    g = torch.Generator().manual_seed(0)
    cell = LSTMCell(2, 4000, t_max=50, generator=g)
    assert cell.bias is not None
    i, f, candidate, o = cell.bias.detach().chunk(4)
    assert torch.equal(i, -f)
    assert not candidate.any()
    assert not o.any()
    # b = log U, so exp(b) is uniform on [1, 49]: mean 25
    uniform = f.exp()
    assert 1 <= uniform.min() < 1.2
    assert 48.8 < uniform.max() <= 49
    assert uniform.mean().item() == pytest.approx(25, rel=0.03)


def test_chrono_on_gru_and_janet() -> None:
    gru, janet = GRUCell(2, 100, t_max=50), JANETCell(2, 100, t_max=50)
    assert gru.bias is not None
    assert janet.bias is not None
    z = gru.bias.detach()[100:200]
    assert (z <= 0).all()
    assert (z >= -math.log(49)).all()
    assert not gru.bias.detach()[:100].any()
    assert (janet.bias.detach()[:100] >= 0).all()
    assert not janet.bias.detach()[100:].any()


def test_chrono_needs_two_steps() -> None:
    with pytest.raises(InputError, match="at least 2 steps, but got 1. Try the length"):
        LSTMCell(2, 3, t_max=1)


def test_forget_bias() -> None:
    cell = LSTMCell(2, 3, forget_bias=2.5)
    assert cell.bias is not None
    assert cell.bias.tolist() == [0.0] * 3 + [2.5] * 3 + [0.0] * 6


def test_recurrent_init_is_per_gate() -> None:
    cell = LSTMCell(2, 6, recurrent_init="orthogonal")
    for block in cell.weight_hh.detach().chunk(4):
        torch.testing.assert_close(block @ block.T, torch.eye(6))
    assert torch.equal(RNNCell(2, 6, recurrent_init="identity").weight_hh, torch.eye(6))
    assert RNNCell(2, 64).weight_hh.abs().max() <= 1 / 8


@pytest.mark.parametrize(
    "key", sorted(k for k, c in CELLS.items() if "input_init" in cell_options(c))
)
def test_gated_cells_can_start_orthogonal(key: str) -> None:
    made: Any = CELLS[key]
    known = cell_options(made)
    kinds = [k for k in ("input_init", "recurrent_init") if k in known]
    cell = made(4, 4, generator=seeded(), **dict.fromkeys(kinds, "orthogonal"))
    for name, parameter in cell.named_parameters():
        if parameter.dim() == 2 and name != "connection.weight_gate":
            for block in parameter.detach().split(4):
                torch.testing.assert_close(block @ block.T, torch.eye(4), msg=name)


def test_unknown_initialiser() -> None:
    with pytest.raises(
        InputError, match="uniform, unit, orthogonal, identity, xavier .* got 'magic'"
    ):
        RNNCell(2, 3, recurrent_init="magic")  # type: ignore[arg-type]


def test_unknown_choices() -> None:
    with pytest.raises(InputError, match="'tanh' or 'relu', but got 'gelu'"):
        RNNCell(2, 3, nonlinearity="gelu")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'before' or 'after', but got 'never'"):
        GRUCell(2, 3, reset="never")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="proj_size from 0"):
        LSTMCell(2, 3, proj_size=3)


@pytest.mark.parametrize("key", ["fastgrnn", "gru", "janet", "lstm", "sru", "tlstm"])
def test_chrono_needs_a_bias(key: str) -> None:
    with pytest.raises(InputError, match="expects a bias, but got t_max=9 with bias=False"):
        Recurrent(key, 2, 3, t_max=9, bias=False)


def test_uniform_weights_reach_one_over_the_root_of_the_units() -> None:
    weight = weights_(torch.empty(64, 50), "uniform", 16, seeded())
    assert 0.245 < weight.max() <= 0.25
    assert -0.245 > weight.min() >= -0.25
    unit = weights_(torch.empty(64, 50), "unit", 16, seeded())
    assert 0.98 < unit.abs().max() <= 1


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        ("lstm", {"forget_bias": float("nan")}, "forget_bias to be a finite number, but got nan"),
        ("janet", {"beta": float("inf")}, "beta to be a finite number, but got inf"),
        ("lstm", {"t_max": "784"}, r"t_max to be int \| None, but got '784'"),
        ("gru", {"t_max": 2.5}, r"t_max to be int \| None, but got 2\.5"),
        ("rnn", {"margin": "a"}, r"margin to be float \| None, but got 'a'"),
        ("clockwork", {"periods": 3}, "periods to be .*Sequence.*int.*, but got 3"),
        ("lstm", {"t_max": 9, "forget_bias": 1.0}, "t_max or forget_bias, as both .* 9 and 1.0"),
    ],
)
def test_values_that_a_cell_cannot_use_are_told(
    key: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Recurrent(key, 2, 8, **options)
