"""A state is carried from batch to batch where the sequences go on, and nowhere else."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from torch.optim import SGD

from attractor.tasks import Batch, Drawn, Sampler, Split, Task
from attractor.tasks.batch import joined
from attractor.training import Plan, Supervised, evaluate
from attractor.training.carried import Carried


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


class Summing(nn.Module):
    """Scores two classes by a weight times all that was read so far."""

    carries_state = True

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.7, -0.3]))
        self.befores: list[Tensor] = []

    def initial_state(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size)

    def forward(self, x: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        self.befores.append(state)
        if isinstance(x, PackedSequence):
            x = pad_packed_sequence(x, batch_first=True)[0]
        pieces = x if isinstance(x, tuple) else (x,)
        state = state + sum(one.flatten(1).sum(1) for one in pieces)
        return state[:, None] * self.weight, state


class Independent(Task):
    """Samples that have nothing to do with each other, five of them held out."""

    reference = "none"
    input_size, output_size, answers = 3, 2, "once"

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        x = torch.randn(batch_size, 3, generator=generator)
        return Batch(x, (x.sum(1) > 0).long())

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return Drawn(self, size, generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        every = self.draw(5, generator=seeded(9))
        return (every[start : start + size] for start in range(0, 5, size))


def test_independent_batches_inherit_nothing() -> None:
    model = Summing()
    whole, pieces = (evaluate(model, Independent(), "valid", size) for size in (5, 2))
    assert pieces == pytest.approx(whole)
    training = Supervised(
        model, Independent(), SGD(model.parameters(), 0.1), Plan(3, 4), generator=seeded()
    )
    while not training.done:
        training.advance()
    assert all(not before.any() for before in model.befores)


def test_batches_that_go_on_keep_the_state_and_parts_of_them_do_not() -> None:
    batch = Batch(torch.ones(4, 2), torch.zeros(4), continues=True)
    assert batch.map(lambda t: t * 2).continues
    assert not batch[:2].continues
    assert not joined([batch, batch]).continues
    assert joined([batch]).continues


def test_ragged_sequences_and_pairs_are_counted_right() -> None:
    batch = Batch(torch.ones(3, 5, 1), torch.zeros(3), lengths=torch.tensor([2, 5, 1]))
    model = Carried(Summing())
    assert model(batch.inputs)[:, 0].tolist() == pytest.approx([1.4, 3.5, 0.7])
    model.reset()
    assert model((torch.ones(3, 2), torch.ones(3, 4))).shape == (3, 2)


def test_a_model_may_begin_anew_with_each_batch() -> None:
    model = Summing()
    model.carry = False  # type: ignore[assignment]
    reader = Carried(model)
    for _ in range(2):
        reader(torch.full((3, 2), 0.5))
    assert [float(before.sum()) for before in model.befores] == [0.0, 0.0]
    assert reader.leaves() is None
