"""Weights between -1 and 1, as DecayNet (2018) prints them, over the 784 steps of its images."""

import pytest
import torch
from torch import nn

from attractor.models import SequenceClassifier
from attractor.models.table import redraw
from contracts.cells import seeded


@pytest.mark.parametrize(("cell", "least"), [("lstm", 1e40), ("decaynet", 1e20)])
def test_the_printed_start_has_gradients_beyond_single_precision(cell: str, least: float) -> None:
    x, where = torch.rand(2, 8, 784, 1, generator=seeded(1)).double()
    model = SequenceClassifier(cell, 1, 100, 10, generator=seeded(0)).double()
    redraw(model, 1.0, seeded(0))
    loss = nn.functional.cross_entropy(model(x * (where < 0.2)), torch.arange(8))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    assert nn.utils.get_total_norm(gradients) > least
