"""Sums of bits, and how much the memory of a network changes while it copies."""

import torch

from attractor.cells import NRUCell
from attractor.models import SequenceTagger
from attractor.reproduction.computed.adding import additions, memory_changes
from attractor.tasks import CopyMemory


def test_the_answer_is_the_sum_of_both_numbers_bit_by_bit() -> None:
    x, y = additions(50, torch.Generator().manual_seed(0))
    assert (x.shape, y.shape) == ((50, 16, 2), (50, 16, 1))
    assert {*x.flatten().tolist(), *y.flatten().tolist()} == {0.0, 1.0}
    worth = 2.0 ** torch.arange(16)
    first, second = (x[..., place] @ worth for place in (0, 1))
    assert torch.equal(first + second, y[..., 0] @ worth)
    assert 0.2 < float(x.mean()) < 0.6


def test_changes_of_a_memory_are_from_step_to_step() -> None:
    task = CopyMemory(3)
    g = torch.Generator().manual_seed(0)
    model = SequenceTagger("nru", task.input_size, 6, task.output_size, generator=g)
    (cell,) = (one for one in model.modules() if isinstance(one, NRUCell))
    x = task.batches(20, generator=torch.Generator().manual_seed(1)).draw().x
    state = cell.initial_state(20)
    expected = []
    with torch.no_grad():
        for step in x.movedim(1, 0):
            before = state.m
            _, state = cell(step, state)
            expected.append((state.m - before).abs())
    found = memory_changes(model, task)
    assert torch.allclose(found, torch.stack(expected).double(), atol=1e-6)
    assert float(found.max()) > 0.01
