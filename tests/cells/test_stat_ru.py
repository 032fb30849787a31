from typing import Any

import pytest
import torch

from attractor.cells import StatRUCell, unroll
from attractor.errors import InputError
from cells.against import agree
from reference import stat_ru
from reference.result import Weights

NAMES = {
    "W_r": "weight_r",
    "b_r": "bias_r",
    "W_m": "weight_m",
    "W_x": "weight_ih",
    "b_m": "bias",
    "W_h": "weight_h",
    "b_h": "bias_h",
}


def to_reference(cell: StatRUCell) -> Weights:
    return {theirs: getattr(cell, ours).detach().numpy() for theirs, ours in NAMES.items()}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"statistics": 5, "recurrent_size": 3},
        {"statistics": 4, "recurrent_size": 6, "alphas": (0.0, 0.25, 0.5, 0.9, 0.99)},
        {"alphas": [0.3]},
    ],
    ids=str,
)
def test_equals_the_reference(options: dict[str, Any]) -> None:
    g = torch.Generator().manual_seed(0)
    cell = StatRUCell(3, 8, generator=g, dtype=torch.float64, **options)
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=g)
    x = torch.randn(7, 4, 3, generator=g, dtype=torch.float64)
    start = torch.rand(cell.initial_state(4).shape, generator=g, dtype=torch.float64)
    for state in (cell.initial_state(4), start):
        output, last, _ = unroll(cell, cell.prepare(x), state)
        for row in range(4):
            expected = stat_ru.run(
                to_reference(cell),
                x[:, row].numpy(),
                alphas=cell.alphas,
                state={"m": state[row].view(len(cell.alphas), -1).numpy()},
            )
            agree(output[:, row], expected.outputs)
            agree(last[row], expected.state["m"].flatten())


@pytest.mark.parametrize(
    ("sizes", "outputs", "options", "count"),
    [
        # the thesis's runs, with the output layer: "~23.5k" for copying, "~165k" for psMNIST
        ((10, 60), 9, {"statistics": 55, "recurrent_size": 16}, 23_010),
        ((1, 150), 10, {"statistics": 155, "recurrent_size": 50}, 164_770),
    ],
)
def test_parameter_counts(
    sizes: tuple[int, int], outputs: int, options: dict[str, Any], count: int
) -> None:
    cell = StatRUCell(*sizes, **options)
    assert sum(p.numel() for p in cell.parameters()) + outputs * (sizes[1] + 1) == count


def test_default_sizes_and_initial_weights() -> None:
    cell: Any = StatRUCell(3, 64)
    assert (cell.statistics, cell.recurrent_size) == (64, 16)
    assert StatRUCell(3, 2).recurrent_size == 1
    assert 0.099 < cell.weight_h.abs().max() <= 0.1
    assert not any(bias.any() for bias in (cell.bias, cell.bias_r, cell.bias_h))


def test_a_constant_statistic_is_its_own_average() -> None:
    """Averages of a constant converge to it, each at the speed of its alpha."""
    cell = StatRUCell(1, 1, alphas=(0.0, 0.5, 0.9), dtype=torch.float64)
    with torch.no_grad():
        cell.weight_m.zero_()
        cell.weight_ih.fill_(2.0)
    _, m, _ = unroll(cell, cell.prepare(torch.ones(4, 1, 1).double()), cell.initial_state(1))
    expected = [2 * (1 - alpha**4) for alpha in cell.alphas]
    torch.testing.assert_close(m[0].tolist(), expected)


@pytest.mark.parametrize("alphas", [(), (0.5, 1.0), (-0.1,)])
def test_alphas_are_checked(alphas: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="numbers from 0 to below 1, but got .* Try"):
        StatRUCell(3, 4, alphas=alphas)


@pytest.mark.parametrize("name", ["statistics", "recurrent_size"])
def test_sizes_are_checked(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(InputError, match=f"expects {name} to be a whole number .* got 0"):
        StatRUCell(3, 4, **options)
