"""The measures against values worked out by hand and against the formulas, term by term."""

from statistics import stdev

import pytest
import torch
from torch import Tensor

from attractor import InputError
from attractor.continual.metrics import METRICS, measure, over_seeds

HAND = torch.tensor(
    [
        [0.10, 0.08, 0.12],  # untrained
        [0.90, 0.20, 0.15],
        [0.80, 0.85, 0.25],
        [0.70, 0.65, 0.95],
    ]
)


def test_a_hand_worked_stream_of_three_tasks() -> None:
    expected = {
        "acc": (0.70 + 0.65 + 0.95) / 3,
        "bwt": ((0.70 - 0.90) + (0.65 - 0.85)) / 2,
        "fwt": ((0.20 - 0.08) + (0.25 - 0.12)) / 2,
        "fa1": 0.70,
        "forgetting": ((0.90 - 0.70) + (0.85 - 0.65)) / 2,
        "aia": (0.90 + (0.80 + 0.85) / 2 + (0.70 + 0.65 + 0.95) / 3) / 3,
        "spread": 1.96 * 0.160728,  # squares .00444, .01361, .03361 over 2
    }
    assert measure(HAND) == pytest.approx(expected, abs=1e-6)


def as_printed(R: Tensor) -> dict[str, float]:
    """Section 6.2.5 of the thesis with its indices, which start at 1."""
    n = R.shape[1]

    def r(row: int, column: int) -> float:
        return float(R[row - 1, column - 1])

    return {
        "acc": sum(r(n + 1, i) for i in range(1, n + 1)) / n,
        "bwt": sum(r(n + 1, i) - r(i + 1, i) for i in range(1, n)) / (n - 1),
        "fwt": sum(r(i, i) - r(1, i) for i in range(2, n + 1)) / (n - 1),
        "fa1": r(n + 1, 1),
        "forgetting": sum(
            max(r(row, i) for row in range(i + 1, n + 1)) - r(n + 1, i) for i in range(1, n)
        )
        / (n - 1),
        "aia": sum(sum(r(row + 1, i) for i in range(1, row + 1)) / row for row in range(1, n + 1))
        / n,
        "spread": 1.96 * stdev(r(n + 1, i) for i in range(1, n + 1)),
    }


@pytest.mark.parametrize("tasks", [2, 3, 10, 20])
def test_random_matrices_agree_with_the_formulas(tasks: int) -> None:
    R = torch.rand(tasks + 1, tasks, generator=torch.Generator().manual_seed(tasks))
    assert measure(R) == pytest.approx(as_printed(R), abs=1e-6)
    assert set(measure(R)) == set(METRICS)


def test_a_learner_that_keeps_everything() -> None:
    R = torch.tensor([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]])
    found = measure(R)
    assert found["bwt"] == found["forgetting"] == found["fwt"] == 0
    assert found["acc"] == found["fa1"] == pytest.approx(0.9)


def test_forgetting_counts_from_the_best_and_backward_transfer_from_the_first() -> None:
    R = torch.tensor([[0.1, 0.1, 0.1], [0.5, 0.1, 0.1], [0.7, 0.6, 0.1], [0.6, 0.6, 0.6]])
    assert measure(R)["forgetting"] == pytest.approx(0.05)
    assert measure(R)["bwt"] == pytest.approx(0.05)


def test_one_task_has_nothing_to_forget() -> None:
    assert set(measure(torch.rand(2, 1))) == {"acc", "aia", "fa1"}
    with pytest.raises(InputError, match=r"n of at least 2.*got \(2, 1\)"):
        METRICS["bwt"](torch.rand(2, 1))


@pytest.mark.parametrize("shape", [(3, 3), (3,), (1, 0)])
def test_a_matrix_without_the_untrained_row_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="the untrained network first"):
        METRICS["acc"](torch.rand(shape))


def test_intervals_over_seeds() -> None:
    found = over_seeds([HAND, HAND + 0.01, HAND + 0.02])
    assert found["acc"].n == 3
    assert found["acc"].mean == pytest.approx(2.3 / 3 + 0.01, abs=1e-6)
    assert found["acc"].half_width == pytest.approx(4.303 * 0.01 / 3**0.5, rel=1e-3)
    assert found["bwt"].half_width == pytest.approx(0, abs=1e-5)
