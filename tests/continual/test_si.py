"""Synaptic intelligence, by hand."""

import pytest
import torch
from torch import nn

from attractor.continual import SI
from continual.helpers import digits, seeded


def test_a_weight_whose_way_raised_the_loss_has_no_importance() -> None:
    model, strategy = nn.Linear(2, 1, bias=False), SI(3.0, damping=0.1)
    nn.init.ones_(model.weight)
    strategy.start(model, digits(), generator=seeded())
    model.weight.grad = torch.tensor([[2.0, 2.0]])
    strategy.after_backward(model)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.5, 1.5]]))  # the first falls, the second climbs
    strategy.end_task(model, digits()[0])
    fell = 2 * 0.5 / (0.5**2 + 0.1)
    assert strategy.anchor.fisher.tolist() == pytest.approx([fell, 0.0])
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 9.0]]))
    assert strategy.penalty().item() == pytest.approx(3.0 * fell * 0.5**2)
