"""The shipped weights of Anytime do what they are shipped for."""

from functools import partial
from typing import Any

import numpy as np
import torch

from attractor.experiments.table import EXPERIMENTS
from attractor.meta import Problem, compare
from attractor.models import MLP
from attractor.optimisers import Anytime, View
from attractor.optimisers.files import about, shipped_file
from attractor.tasks import Digits
from cells.against import agree, array, normal
from optimisers import weights
from optimisers.references import random
from reference import rules


def test_shipped_weights_beat_common_optimisers_untuned() -> None:
    """On small data of the kind it was trained on, at two horizons."""
    problem = Problem(lambda g: MLP([64, 24, 10], generator=g), Digits(order="flat"), 32)
    optimisers: dict[str, Any] = {
        "anytime": Anytime.pretrained("default"),
        "untrained": Anytime(),
        "adam": partial(torch.optim.Adam, lr=1e-3),
        "momentum": partial(torch.optim.SGD, lr=0.01, momentum=0.9),
    }
    curves = compare(optimisers, problem, steps=300, seeds=[0], evaluate_every=100)
    for at in (0, 2):
        found = {curve.optimiser: curve.loss[at] for curve in curves}
        assert min(found, key=lambda name: found[name]) == "anytime", found


def test_the_card_says_what_made_the_weights_and_which_configuration_did_not() -> None:
    told = about(shipped_file("anytime", "default"))
    assert "no longer part of attractor" in told["made by"]
    config = EXPERIMENTS[told["configuration"]].read_text()
    assert 'name = "anytime"' in config
    assert "[meta.random]" in config


def test_each_tensor_has_a_size_of_its_own_whatever_the_other_learners() -> None:
    """Against NumPy, with fan-ins that make a difference, and learners and tensors of any scale."""
    rule = random(Anytime())
    view = View.of([torch.zeros(2, 300), torch.zeros(3), torch.zeros(1, 50)])
    scales = torch.tensor([[0.01], [1.0], [30.0]]).double()
    theta = normal(3, 653) * scales * torch.linspace(0.1, 3.0, 653).double()
    state, own, expected = rule.init(theta, view), [None] * 3, list(array(theta))
    tensors = ((600, 300), (3, None), (50, 50))
    for _ in range(4):
        steps, state = rule.update(theta - scales, state, theta, view)
        theta = theta + steps
        for k, named in enumerate([weights.anytime(rule)] * 3):
            gradient = expected[k] - float(scales[k, 0])
            expected[k], own[k] = rules.anytime(
                named, expected[k], gradient, own[k], tensors=tensors
            )
            agree(theta[k], np.asarray(expected[k]))
