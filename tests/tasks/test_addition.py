"""Adding binary numbers."""

import math

import pytest
import torch

from attractor.errors import InputError
from attractor.tasks import Batch, BinaryAddition, Penalised
from tasks.models import saying


def test_the_digits_are_those_of_the_sum() -> None:
    batch = BinaryAddition(16).draw(500, generator=torch.Generator().manual_seed(0))
    powers = 2 ** torch.arange(16)
    one, other = (batch.x[..., n].long() @ powers for n in (0, 1))
    assert torch.equal(one + other, batch.y @ powers)
    assert int(one.max()) <= 2**15
    assert int(other.max()) <= 2**15 - 1
    assert int(one.max()) > 32_000
    assert int(other.max()) > 32_000


def test_only_the_first_number_reaches_half_of_the_largest_sum() -> None:
    batch = BinaryAddition(2).draw(200, generator=torch.Generator().manual_seed(0))
    one, other = (batch.x[..., n].long() @ torch.tensor([1, 2]) for n in (0, 1))
    assert {*one.tolist()} == {0, 1, 2}
    assert {*other.tolist()} == {0, 1}


def test_digits_are_the_rounded_tanh() -> None:
    task = BinaryAddition(2)
    batch = Batch(torch.zeros(2, 2, 2), torch.tensor([[1, 0], [1, 1]]))
    output = torch.tensor([[[0.6], [0.4]], [[0.5], [2.0]]])
    found = task.measure(saying(output), batch)
    assert found["accuracy"] == (3.0, 4)  # tanh(0.5) is 0.46, a zero
    assert found["sums"] == (1.0, 2)
    errors = [(math.tanh(s) - y) ** 2 for s, y in ((0.6, 1), (0.4, 0), (0.5, 1), (2.0, 1))]
    assert found["loss"][0] == pytest.approx(sum(errors))
    assert found["loss"][1] == 4
    assert float(task.loss(saying(output), batch)) == pytest.approx(sum(errors) / 4)
    batch.weight = torch.tensor([0.9, 0.1])
    weighted = 0.9 * sum(errors[:2]) / 2 + 0.1 * sum(errors[2:]) / 2
    assert float(task.loss(saying(output), batch)) == pytest.approx(weighted)


def test_bad_options_and_models() -> None:
    with pytest.raises(InputError, match="expected at most 60 digits"):
        BinaryAddition(64)
    task = BinaryAddition(4)
    batch = task.draw(3, generator=torch.Generator())
    with pytest.raises(InputError, match="expected one number at each of 4 steps"):
        task.loss(saying(torch.zeros(3, 4, 2)), batch)


def test_what_a_model_charges_is_on_top_of_the_loss() -> None:
    task, batch = BinaryAddition(2), Batch(torch.zeros(1, 2, 2), torch.tensor([[1, 0]]))
    output = torch.tensor([[[0.6], [0.4]]])
    free = float(task.loss(saying(output), batch))
    priced = saying(Penalised(output, torch.tensor(7.0)))
    assert float(task.loss(priced, batch)) == pytest.approx(free + 7)
