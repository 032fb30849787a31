"""Celo beside its equations with losses and unequal tensors, and its published weights."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attractor.bench.optimisers.trial import Case, kept_in, train
from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import Celo, View, attach, load_celo, save_rule
from attractor.tasks import Digits
from attractor.training import Plan, Supervised
from cells.against import agree, array, normal
from contracts.cells import seeded
from contracts.optimisers import make_rule
from optimisers import weights
from optimisers.references import random
from reference import scheduled

SHAPES = ((2, 40), (3,), (3, 2, 5, 4), (), (6, 3))
LOSSES = [3.0, 2.0, 90.0, 0.5, -1.0, 0.7, 0.6]
"""One of them counts as no more than twice the largest average."""


def followed(
    rule: Any,
    reference: Any,
    given: Any,
    shapes: tuple[tuple[int, ...], ...],
    *,
    told: bool,
    steep: float,
) -> None:
    """Hold a rule to its reference, update by update, on tensors of these shapes."""
    count = sum(map(math.prod, shapes))
    view = View.of(torch.zeros(shape) for shape in shapes)
    theta = normal(1, count) * torch.linspace(0.01, 30.0, count).double()
    slope = normal(count, generator=seeded(8)).exp() * steep
    state, own, expected = rule.init(theta, view), None, array(theta)[0]
    for step, loss in enumerate(LOSSES):
        seen = view._replace(loss=torch.tensor([loss]).double() if told else None)
        steps, state = rule.update(slope * (theta - 1), state, theta, seen)
        theta = theta + steps
        gradient = array(slope) * (expected - 1.0)
        losses = LOSSES[: step + 1] if told else None
        expected, own = reference(given, expected, gradient, own, tensors=shapes, losses=losses)
        agree(theta[0], expected)


@pytest.mark.parametrize("told", [True, False])
def test_unequal_tensors_against_numpy(told: bool) -> None:
    """Fan-ins, filters, gradients beyond the limit, and a loss that bursts."""
    rule: Any = random(Celo(horizon=9, hidden_size=3, scheduler_size=5))
    for value in rule.parameters():
        value.data *= 0.5
    followed(rule, scheduled.celo, weights.celo(rule), SHAPES, told=told, steep=50.0)


def test_the_loss_of_a_closure_or_a_training_is_heeded() -> None:
    rule = make_rule("celo")

    def after(*losses: float | None) -> Tensor:
        weight = nn.Parameter(torch.linspace(-1, 2, 6).reshape(2, 3))
        optimiser = rule([weight])
        for loss in losses:
            weight.grad = weight.detach().sin()
            optimiser.step(None if loss is None else partial(torch.tensor, loss))
        return weight.detach()

    assert torch.equal(after(None, None, None, None), after(1.0, 1.0, 1.0, 1.0))
    assert not torch.equal(after(4.0, 3.0, 2.0, 5.0), after(1.0, 1.0, 1.0, 1.0))
    assert torch.equal(after(4.0, 3.0), after(1.0, 1.0))  # nothing is read of the first two

    model = MLP([64, 4, 10], generator=seeded(0))
    optimiser = attach(rule, model)
    plan = Plan(3, 8, log_every=1, eval_every=None)
    training = Supervised(model, Digits(order="flat"), optimiser, plan, generator=seeded(1))
    (row,) = training.advance()
    kept = optimiser.state[next(model.parameters())]["loss"]
    span = torch.logspace(1, torch.log10(torch.tensor(9.0)).item(), 10)
    torch.testing.assert_close(kept[0, 0], float(row["loss"]) * (1 - torch.exp(-1 / span)))


class Published:
    """Weights as the authors name and keep them."""

    def __init__(self, units: int = 4, memory: int = 6, count: int = 1) -> None:
        g = seeded(4)

        def drawn(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=g)

        widths = (1, 1, 1, 3, 1, 3, 1, 3, 1, 3, 3, 3, 3, 3)
        self.parts = [drawn(count, width, units) for width in widths]
        self.file = {f"ff_mod_stack/~/w0__{i}": part for i, part in enumerate(self.parts)}
        sizes = {"w1": (units, units), "w2": (units, 3), "b0": (units,), "b1": (units,), "b2": (3,)}
        self.file |= {f"ff_mod_stack/~/{k}": drawn(count, *size) for k, size in sizes.items()}
        for name in ("linear", "linear_1", "linear_2"):
            self.file[f"rnn_params/{name}/w"] = drawn(18, memory)
            self.file[f"rnn_params/{name}/b"] = drawn(memory)
        self.file["rnn_params/rnn/linear/w"] = drawn(2 * memory, 4 * memory)
        self.file["rnn_params/rnn/linear/b"] = drawn(4 * memory)
        for name in ("rnn_to_controls", "step_size"):
            self.file[f"rnn_params/{name}/w"] = drawn(memory, 1)
            self.file[f"rnn_params/{name}/b"] = drawn(1)
        self.file |= {f"lstm_init_state/{name}": drawn(1, memory) for name in ("hidden", "cell")}

    def save(self, folder: Path) -> Path:
        save_file(self.file, folder / "theta.safetensors")
        return folder / "theta.safetensors"


def test_published_weights_are_loaded(tmp_path: Path) -> None:
    of = Published()
    rule = load_celo(of.save(tmp_path), horizon=70)
    assert (rule.horizon, rule.options["horizon"]) == (70, 70)
    first: Any = rule.layers[0]
    torch.testing.assert_close(first.weight, torch.cat([part[0] for part in of.parts]).mT)
    last: Any = rule.layers[2]
    torch.testing.assert_close(last.weight, of.file["ff_mod_stack/~/w2"][0, :, :2].mT)
    torch.testing.assert_close(rule.read.weight, of.file["rnn_params/linear_2/w"].mT)
    torch.testing.assert_close(rule.mix.bias, of.file["rnn_params/linear_1/b"])
    torch.testing.assert_close(rule.rate.weight, of.file["rnn_params/step_size/w"].mT)
    torch.testing.assert_close(rule.cell, of.file["lstm_init_state/cell"][0])


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 perceptrons"):
        load_celo(Published(count=2).save(tmp_path), horizon=9)
    of = Published()
    del of.file["rnn_params/step_size/w"]
    with pytest.raises(InputError, match=r"expected the weights of Celo.*step_size"):
        load_celo(of.save(tmp_path), horizon=9)
    with pytest.raises(InputError, match="Write what is kept otherwise as safetensors"):
        load_celo(tmp_path / "missing", horizon=9)


def test_the_benchmark_takes_a_file_and_tells_it_the_horizon(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    losses = []
    for horizon in (9, 20):
        save_rule(make_rule("celo", horizon=horizon), path)
        case = Case("quadratic", 9, str(path), (0,), True)
        losses.append(train(case, None, 0, "test").loss)
    assert losses[0] == losses[1]
    kept = kept_in(tmp_path, case)
    assert kept.path == tmp_path / "trials" / "quadratic-9-mine.json"
    assert kept.key["weights"]
