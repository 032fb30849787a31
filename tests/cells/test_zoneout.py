from typing import Any

import pytest
import torch

from attractor.cells import LSTMState, Recurrent, compose, layer_norm, unroll, zoneout
from attractor.cells.wrap.noise import MaskedInput
from attractor.errors import InputError
from cells.against import BATCH, TIME, agree, array, blocks, normal, random_cell
from contracts.cells import seeded
from reference import normalised


def weights_of(lstm: Any) -> Any:
    weights = blocks("W_", "IFAO", lstm.weight_ih) | blocks("U_", "IFAO", lstm.weight_hh)
    return weights | blocks("b_", "IFAO", lstm.bias)


@pytest.mark.parametrize("rates", [(0.5, 0.05), (0.0, 0.3), (0.3, 0.0)])
@pytest.mark.parametrize("training", [True, False])
def test_equals_the_reference(rates: tuple[float, float], training: bool) -> None:
    cell = random_cell(zoneout("lstm", *rates), 3, 5).train(training)
    x = normal(TIME, BATCH, 3)
    g = seeded(8)
    start = LSTMState(normal(BATCH, 5, generator=g), normal(BATCH, 5, generator=g))
    prepared = cell.prepare(x)
    output, last, _ = unroll(cell, prepared, start)
    # the state is (h, c), so the mask of h comes first
    drawn = iter(prepared.masks)
    masks = {n: next(drawn) for n, r in (("h", rates[1]), ("c", rates[0])) if r}
    none = torch.zeros(TIME, BATCH, 5, dtype=torch.float64)
    for row in range(BATCH):
        options: dict[str, Any] = {"z_c": rates[0], "z_h": rates[1]}
        if training:
            options = {f"d_{n}": array(masks.get(n, none)[:, row]) for n in "ch"}
        expected, end, _ = normalised.zoneout(
            weights_of(cell.cell),
            array(x[:, row]),
            training=training,
            state={"h": array(start.h[row]), "c": array(start.c[row])},
            **options,
        )
        agree(output[:, row], expected)
        agree(last.h[row], end["h"])
        agree(last.c[row], end["c"])


def test_masks_are_drawn_at_the_rates() -> None:
    cell: Any = zoneout("lstm", 0.5, 0.1)(3, 40)
    hidden, memory = cell.prepare(torch.zeros(50, 20, 3)).masks
    for mask, rate in ((hidden, 0.1), (memory, 0.5)):
        assert set(mask.unique().tolist()) == {0.0, 1.0}
        assert mask.mean().item() == pytest.approx(rate, abs=0.01)
    assert not torch.equal(hidden[0], hidden[1])


def test_steps_are_repeatable_and_calls_are_not() -> None:
    cell: Any = zoneout("gru", 0.0, 0.5)(3, 8)
    x = torch.randn(5, 2, 3)
    prepared = cell.prepare(x)
    assert isinstance(prepared, MaskedInput)
    once = unroll(cell, prepared, cell.initial_state(2)).output
    assert torch.equal(once, unroll(cell, prepared, cell.initial_state(2)).output)
    assert not torch.equal(once, unroll(cell, cell.prepare(x), cell.initial_state(2)).output)


def test_evaluation_is_the_expectation_over_one_step() -> None:
    layer = Recurrent(zoneout("gru", 0.0, 0.3), 3, 4).eval()
    cell: Any = layer.cells[0]
    x, h = torch.randn(1, 2, 3), torch.randn(1, 2, 4)
    plain, _ = cell.cell(x[0], h[0])
    torch.testing.assert_close(layer(x, h)[0][0], 0.3 * h[0] + 0.7 * plain)
    torch.testing.assert_close(layer(x, h)[1][0], 0.3 * h[0] + 0.7 * plain)


def test_output_that_is_no_part_of_the_state_is_left_alone() -> None:
    cell: Any = zoneout("sru", 0.3, 0.0)(4, 4).eval()
    x, c = torch.randn(2, 4), torch.randn(2, 4)
    plain, new = cell.cell(x, c)
    output, mixed = cell(x, c)
    torch.testing.assert_close(output, plain)
    torch.testing.assert_close(mixed, 0.3 * c + 0.7 * new)


@pytest.mark.parametrize("key", ["decaynet", "irc_lstm", "irc_sru", "janet", "nru"])
def test_goes_on_any_cell_with_a_hidden_state(key: str) -> None:
    layer = Recurrent(zoneout(key, 0.0, 0.2), 3, 4)
    output, _ = layer(torch.randn(5, 2, 3))
    output.sum().backward()
    assert output.shape[:2] == (5, 2)


def test_with_a_normaliser_whose_state_counts_steps() -> None:
    for key, rates in (("lstm", (0.5, 0.05)), ("rnn", (0.0, 0.1))):
        layer = Recurrent(compose(key, batch_norm=5, zoneout=rates), 3, 4)
        _, state = layer(torch.randn(5, 2, 3))
        assert state.steps.tolist() == [[5, 5]]


def test_rates_for_memories_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"cell_rate=0 for GRUCell, whose state \(h\) has no c"):
        Recurrent(zoneout("gru", 0.5, 0.05), 3, 4)
    with pytest.raises(InputError, match=r"hidden_rate=0 for TLSTMCell, whose state \(c, u\)"):
        Recurrent(zoneout("tlstm", 0.5, 0.05), 3, 4)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2, True])
def test_rates_are_checked(rate: float) -> None:
    with pytest.raises(InputError, match="cell_rate to be from 0 to below 1, but got"):
        Recurrent(zoneout("lstm", rate, 0.0), 3, 4)


def test_twice_is_refused() -> None:
    with pytest.raises(InputError, match="one zoneout on LSTMCell, but it has one already"):
        zoneout(layer_norm(zoneout("lstm", 0.5, 0.05)), 0.1, 0.1)


@pytest.mark.parametrize("rates", [0.1, (0.1,), "ab"])
def test_composed_zoneout_has_two_rates(rates: Any) -> None:
    with pytest.raises(InputError, match=r"to be two rates, .* but got .*\. Try zoneout=\("):
        compose("lstm", zoneout=rates)
    assert compose("lstm", zoneout=[0.5, 0.05])(3, 4)  # type: ignore[arg-type]


def test_a_rate_that_is_no_number() -> None:
    with pytest.raises(InputError, match="cell_rate to be from 0 to below 1, but got 'a'"):
        Recurrent(zoneout("lstm", "a", 0.0), 3, 4)  # type: ignore[arg-type]
