"""Columns of progressive networks where an answer is asked at each step."""

import torch
from torch import nn

from attractor.continual.columns import Columns
from attractor.tasks import Batch


def test_each_sample_of_a_mixed_batch_is_answered_by_the_column_of_its_task() -> None:
    g = torch.Generator().manual_seed(0)
    shown = Batch(torch.randn(2, 4, 3, generator=g), torch.zeros(2))
    model = Columns(
        nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)), shown, 2, generator=g
    )
    x = torch.randn(4, 4, 3, generator=g)  # as many steps as samples: no shape tells them apart
    mixed = model(x, torch.tensor([0, 1, 1, 0]))
    first, second = (model(x, torch.full((4,), task)) for task in (0, 1))
    assert mixed.shape == (4, 4, 2)
    assert torch.equal(mixed, torch.stack([first[0], second[1], second[2], first[3]]))
    assert not torch.allclose(first, second)
