"""Optimisers side by side: what diverges is told apart from what has no held-out data."""

import math
from functools import partial

import pytest
import torch

from attractor.errors import InputError
from attractor.estimates import estimate
from attractor.experiments.comparison import rows
from attractor.meta import Problem, compare
from attractor.models import MLP, Point
from attractor.tasks import Digits, Quadratic, Rosenbrock

SGD = torch.optim.SGD


def problem() -> Problem:
    return Problem(lambda g: MLP([64, 8, 10], generator=g), Digits(order="flat"), 8)


@pytest.mark.parametrize(("task", "size"), [(Quadratic(), 10), (Rosenbrock(), 2)])
def test_an_objective_is_its_own_held_out_loss(task: Quadratic | Rosenbrock, size: int) -> None:
    found = Problem(lambda g: Point(size, generator=g), task, 1)
    [curve] = compare({"a": partial(SGD, lr=1e-4)}, found, steps=3, seeds=[0], evaluate_every=1)
    assert curve.loss[:2] == curve.train[1:]  # after an update, and before the next
    assert curve.loss[2] < curve.loss[1] < curve.loss[0]
    assert all(map(math.isnan, curve.accuracy))
    assert not curve.diverged
    [row] = rows([curve])
    assert (row["loss"], row["accuracy"], row["diverged"]) == (curve.loss[2], None, 0)


def test_what_diverges_is_counted_and_the_rest_is_kept() -> None:
    factories = {"wild": partial(SGD, lr=1e30), "tame": partial(SGD, lr=0.1)}
    curves = compare(factories, problem(), steps=3, seeds=[0, 1])
    first, second = rows(curves)
    assert (first["optimiser"], first["seeds"], first["diverged"]) == ("tame", 2, 0)
    assert first["± loss"] > 0
    assert (second["optimiser"], second["seeds"], second["diverged"]) == ("wild", 2, 2)
    assert second["loss"] is second["± accuracy"] is None
    lost = next(curve for curve in curves if curve.optimiser == "wild")
    assert (lost.loss, lost.accuracy) == ([math.inf], [0.0])
    curves[0].loss, curves[0].accuracy = [2.0], [0.5]  # had this one been spared
    assert {row["optimiser"]: row["loss"] for row in rows(curves)}["wild"] == 2.0


def test_an_estimate_of_infinities() -> None:
    found = estimate([math.inf, 1.0])
    assert (found.mean, found.half_width, found.n) == (math.inf, None, 2)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="evaluate_every to be at least 1, but got 0. Leave it"):
        compare({"a": partial(SGD, lr=1.0)}, problem(), steps=2, seeds=[0], evaluate_every=0)
