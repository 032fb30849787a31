"""The shipped weights of Anytime do what they are shipped for."""

from functools import partial
from pathlib import Path
from typing import Any

import torch

from attractor.meta import Problem, compare
from attractor.models import MLP
from attractor.optimisers import Anytime
from attractor.optimisers.files import about, shipped_file
from attractor.tasks import Digits


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


def test_the_card_names_the_script_that_made_the_weights() -> None:
    name = about(shipped_file("anytime", "default"))["made by"].partition(":")[0]
    script = Path(__file__).parents[2] / name
    assert '"choose"' in script.read_text()
