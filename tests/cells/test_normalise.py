"""Layer and batch normalisation against the references, and in the situations they meet."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from attractor.cells import (
    BatchNormCell,
    BatchNormState,
    LSTMState,
    Recurrent,
    batch_norm,
    layer_norm,
    unroll,
)
from attractor.cells.wrap.normalise import UnitNorm
from attractor.errors import InputError
from cells.against import Array, agree, array, blocks, check, normal, random_cell
from contracts.cells import perturb, seeded
from reference import normalised

ORDER = "IFAO"  # of torch, in the references' letters
SITES = [("x", "norm_x"), ("h", "norm_h")]


def weights_of(cell: Any) -> dict[str, Array]:
    lstm = cell.cell
    weights = blocks("W_", ORDER, lstm.weight_ih) | blocks("U_", ORDER, lstm.weight_hh)
    return weights | blocks("b_", ORDER, lstm.bias)


def test_layer_norm_equals_the_reference() -> None:
    cell = random_cell(layer_norm("lstm"), 3, 5)
    weights = weights_of(cell)
    for number, norm in (("1", cell.norm_h), ("2", cell.norm_x)):
        weights |= blocks(f"alpha_{number}_", ORDER, norm.weight)
        weights |= blocks(f"beta_{number}_", ORDER, norm.bias)
    weights |= {"alpha_3": array(cell.norm_c.weight), "beta_3": array(cell.norm_c.bias)}
    check(cell, normalised.lstm_layer_norm, weights, {"h": 5, "c": 5}, LSTMState)


def batch_norm_cell(max_steps: int = 7, momentum: float = 0.25) -> Any:
    return random_cell(batch_norm("lstm", max_steps=max_steps, momentum=momentum), 3, 5)


def batch_norm_weights(cell: Any) -> dict[str, Array]:
    weights = weights_of(cell)
    for site, name in SITES:
        weights |= blocks(f"gamma_{site}_", ORDER, getattr(cell, name).weight)
    return weights | {"gamma_c": array(cell.norm_c.weight), "beta_c": array(cell.norm_c.bias)}


def stored(cell: Any) -> dict[str, Array]:
    """The kept statistics, by the reference's names."""
    kept = {"mean_c": array(cell.norm_c.mean), "var_c": array(cell.norm_c.var)}
    for site, name in SITES:
        for statistic in ("mean", "var"):
            parts = getattr(getattr(cell, name), statistic).chunk(4, dim=1)
            kept |= {f"{statistic}_{site}_{k}": array(p) for k, p in zip(ORDER, parts, strict=True)}
    return {name: values.copy() for name, values in kept.items()}


def run(cell: Any, x: Tensor, state: Any = None) -> Any:
    state = cell.initial_state(x.shape[1]) if state is None else state
    return unroll(cell, cell.prepare(x), state)


@pytest.mark.parametrize("steps", [7, 4, 9])
def test_batch_norm_equals_the_reference_in_training_and_after(steps: int) -> None:
    """Also where sequences are longer or shorter than the statistics."""
    cell = batch_norm_cell(max_steps=7)
    weights = batch_norm_weights(cell)
    x = normal(steps, 6, 3)
    before = stored(cell)
    output, state, _ = run(cell, x)
    expected, end, taken = normalised.lstm_batch_norm(
        weights, array(x), stored=before, momentum=0.25
    )
    agree(output, expected)
    agree(state.cell.h, end["h"])
    agree(state.cell.c, end["c"])
    assert state.steps.tolist() == [steps] * 6
    for name, values in stored(cell).items():
        agree(torch.as_tensor(values), taken[f"stored_{name}"])
    cell.eval()
    after = stored(cell)
    output, state, _ = run(cell, x)
    expected, end, _ = normalised.lstm_batch_norm(weights, array(x), training=False, stored=after)
    agree(output, expected)
    agree(state.cell.c, end["c"])
    assert all((stored(cell)[name] == values).all() for name, values in after.items())


def trained(layer: Any, time: int = 7) -> Any:
    """A layer whose statistics are those of some data."""
    g = seeded(5)
    for _ in range(3):
        layer(torch.randn(time, 6, 3, generator=g, dtype=torch.float64))
    return layer.eval()


def test_batch_norm_counts_on_where_a_sequence_is_cut() -> None:
    cell: Any = trained(Recurrent(batch_norm("lstm", 7), 3, 5, dtype=torch.float64)).cells[0]
    x = normal(9, 2, 3)
    whole, last, _ = run(cell, x)
    first, state, _ = run(cell, x[:4])
    second, end, _ = run(cell, x[4:], state)
    torch.testing.assert_close(whole, torch.cat([first, second]))
    torch.testing.assert_close(last, end)
    fresh, _, _ = run(cell, x[4:], BatchNormState(state.cell, torch.zeros(2)))
    assert not torch.allclose(second, fresh)


def test_batch_norm_rows_may_be_at_different_steps() -> None:
    cell: Any = trained(Recurrent(batch_norm("lstm", 7), 3, 5, dtype=torch.float64)).cells[0]
    x, steps = normal(1, 2, 3), torch.tensor([2.0, 5.0])
    inner = cell.cell.initial_state(2)
    both, _, _ = run(cell, x, BatchNormState(inner, steps))
    for row in range(2):
        one = BatchNormState(LSTMState(inner.h[:1], inner.c[:1]), steps[row : row + 1])
        alone, _, _ = run(cell, x[:, row : row + 1], one)
        torch.testing.assert_close(both[:, row], alone[:, 0])


def test_batch_norm_in_training_of_rows_at_different_steps() -> None:
    """Each step's averages move as far as its share of the batch."""
    cell = batch_norm_cell(max_steps=7, momentum=0.6)
    x = normal(1, 3, 3)
    start = BatchNormState(cell.cell.initial_state(3), torch.tensor([2.0, 2.0, 5.0]))
    run(cell, x, start)
    batch = (x[0] @ cell.cell.weight_ih.T).mean(0)
    kept = cell.norm_x.mean
    torch.testing.assert_close(kept[2], 0.4 * batch)
    torch.testing.assert_close(kept[5], 0.2 * batch)
    assert not kept[[0, 1, 3, 4, 6]].any()


def test_batch_norm_over_a_packed_batch_in_training() -> None:
    """The statistics of a step are those of the sequences that are still running."""
    layer: Any = Recurrent(batch_norm("lstm", 9, momentum=1.0), 3, 5, dtype=torch.float64)
    perturb(layer, seeded(1))
    sequences = [normal(n, 3, generator=seeded(n)) for n in (6, 4, 4, 1)]
    output = unpack_sequence(layer(pack_sequence(sequences))[0])
    norm = layer.cells[0].norm_x
    x = torch.stack([s[3] for s in sequences[:3]]) @ layer.cells[0].cell.weight_ih.T
    torch.testing.assert_close(norm.mean[3], x.mean(0))
    torch.testing.assert_close(norm.var[3], x.var(0, correction=0))
    assert (norm.var[5] == 1).all()  # one sequence alone has no statistics to keep
    assert all(y.isfinite().all() for y in output)
    again = perturb(
        Recurrent(batch_norm("lstm", 9, momentum=1.0), 3, 5, dtype=torch.float64), seeded(1)
    )
    again.load_state_dict(layer.state_dict())
    first, _ = again(torch.stack([s[:1] for s in sequences], dim=1))
    torch.testing.assert_close(first[0], torch.stack([y[0] for y in output]))


def test_batch_norm_trains_through_the_statistics() -> None:
    cell = batch_norm_cell()
    x = normal(3, 4, 3).requires_grad_()
    names, weights = zip(*cell.named_parameters(), strict=True)

    def outputs(x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        state = cell.initial_state(4)
        output = []
        for t in range(3):
            y, state = torch.func.functional_call(cell, given, (x[t], state))
            output.append(y)
        return torch.stack(output)

    arguments = (x, *(w.detach().requires_grad_() for w in weights))
    assert torch.autograd.gradcheck(outputs, arguments, fast_mode=True)


def test_batch_norm_of_one_sequence_is_refused_in_training_only() -> None:
    layer = Recurrent(batch_norm("gru", 5), 3, 4, reset="after")
    with pytest.raises(InputError, match=r"at least 2 sequences .* \(5, 1, 3\) .* larger batch"):
        layer(torch.zeros(5, 1, 3))
    assert layer.eval()(torch.zeros(5, 1, 3))[0].shape == (5, 1, 4)


@pytest.mark.filterwarnings("ignore")
def test_batch_norm_is_not_compiled_in_training() -> None:
    layer = Recurrent(batch_norm("lstm", 5), 3, 4)
    torch.compiler.reset()
    with pytest.raises(Exception, match="evaluation only, .* Try attractor.cells.compile_steps"):
        torch.compile(layer, fullgraph=True, backend="eager")(torch.randn(5, 2, 3))


@pytest.mark.parametrize("key", ["eurnn", "nru", "stat_ru"])
def test_cells_without_sums_are_refused(key: str) -> None:
    with pytest.raises(InputError, match=r"gates read sums .* but got \w+Cell. Try the cell with"):
        Recurrent(layer_norm(key), 4, 4)


def test_wrong_number_of_steps() -> None:
    with pytest.raises(InputError, match="max_steps to be a whole number of at least 1, but got 0"):
        BatchNormCell(Recurrent("lstm", 3, 4).cells[0], 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["rnn", "lstm", "janet", "decaynet", "tlstm", "fastgrnn"])
def test_layer_norm_does_not_see_the_scale_of_the_input(key: str) -> None:
    layer = Recurrent(layer_norm(key), 3, 8, dtype=torch.float64)
    x = normal(5, 2, 3)
    torch.testing.assert_close(layer(1e3 * x)[0], layer(2e3 * x)[0], atol=1e-5, rtol=0)


def test_bias_of_a_normalised_cell_is_not_normalised() -> None:
    """A shift that is the same for all gates would be invisible within the normalisation."""
    layer: Any = Recurrent(layer_norm("lstm"), 3, 8)
    x = torch.randn(5, 2, 3)
    before = layer(x)[0]
    with torch.no_grad():
        layer.cells[0].cell.bias += 1
    assert not torch.allclose(layer(x)[0], before)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("parts", [(5,), (3, 2)])
def test_each_part_is_normalised_on_its_own_then_scaled(parts: tuple[int, ...], bias: bool) -> None:
    norm = perturb(UnitNorm(*parts, bias=bias, dtype=torch.float64), seeded())
    z = 3 * normal(4, 5) + 2
    wanted = []
    for part in torch.split(z, list(parts), dim=-1):
        centred = part - part.mean(-1, keepdim=True)
        wanted.append(centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt())
    shift = 0 if norm.bias is None else norm.bias
    torch.testing.assert_close(norm(z), torch.cat(wanted, -1) * norm.weight + shift)
