"""A watched model shows its optimiser each batch once, and its copies show nobody anything."""

import copy
import gc
import io
import weakref

import pytest
import torch
from torch import nn

from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import Learned
from contracts.cells import seeded
from contracts.optimisers import exact, make_rule, values

MISSING = "but got no context.*shows it each training pass of the model"


def watched() -> tuple[nn.Module, Learned]:
    model = MLP([6, 3, 2], generator=seeded())
    return model, make_rule("mtl2l", context_size=6)(model.parameters())


def shown(model: nn.Module, seed: int = 0) -> None:
    model(torch.randn(4, 6, generator=seeded(seed))).square().sum().backward()


def test_a_step_without_a_pass_before_it_says_what_it_lacks() -> None:
    model, optimiser = watched()
    optimiser.watch(model)
    shown(model)
    optimiser.step()
    before = values(model)
    with pytest.raises(InputError, match=MISSING):
        optimiser.step()
    exact(values(model), before)
    shown(model)
    optimiser.step()


@pytest.mark.parametrize("passes", [0, 1])
def test_what_was_seen_is_forgotten_with_the_watching(passes: int) -> None:
    model, optimiser = watched()
    watch = optimiser.watch(model)
    shown(model)
    if not passes:
        optimiser.step()
    watch.remove()
    watch.remove()
    shown(model)
    with pytest.raises(InputError, match=MISSING):
        optimiser.step()


def test_a_closure_makes_the_pass() -> None:
    model, optimiser = watched()
    optimiser.watch(model)

    def closure() -> None:
        optimiser.zero_grad()
        shown(model)

    before = values(model)
    for _ in range(2):
        optimiser.step(closure)
    assert any(not torch.equal(a, b) for a, b in zip(before, values(model), strict=True))


def test_copies_of_a_watched_model_show_nobody_anything() -> None:
    model, optimiser = watched()
    optimiser.watch(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        shown(other, seed=1)
        assert optimiser._seen is None
    shown(model)
    assert optimiser._seen is not None


def test_a_model_does_not_keep_its_optimiser_alive() -> None:
    model, optimiser = watched()
    optimiser.watch(model)
    gone = weakref.ref(optimiser)
    del optimiser
    gc.collect()
    assert gone() is None
    shown(model)
