"""Rules that see whole tensors, unequal and in groups, and published weights of one of them."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.meta import Problem, compare
from attractor.models import MLP
from attractor.optimisers import Anytime, Pacer, Rule, SmallFC, View, load_published
from attractor.optimisers.files import about, shipped_file
from attractor.tasks import Digits
from cells.against import agree, array, normal
from contracts.cells import seeded
from contracts.optimisers import make_rule
from optimisers import weights
from optimisers.references import random
from reference import shaped

SHAPES = ((2, 40), (3,), (3, 2, 5, 4), (), (6, 3))
COUNT = 80 + 3 + 120 + 1 + 18


@pytest.mark.parametrize("make", [Pacer, lambda: Pacer(hidden_size=3), lambda: SmallFC(scale=0.1)])
def test_unequal_tensors_against_numpy(make: Callable[[], Rule]) -> None:
    """Fan-ins that make a difference, filters, other numbers of rows and columns, any scales."""
    rule: Any = random(make())
    for key, value in rule.named_parameters():
        if key.endswith(("decays", "log_gain", "log_gamma")):
            value.data *= 0.1
    view = View.of(torch.zeros(shape) for shape in SHAPES)
    scales = torch.tensor([[0.01], [1.0], [30.0]]).double()
    theta = normal(3, COUNT) * scales * torch.linspace(0.1, 3.0, COUNT).double()
    state, own, expected = rule.init(theta, view), [None] * 3, list(array(theta))
    named, reference = getattr(weights, rule.key)(rule), getattr(shaped, rule.key)
    slope = normal(COUNT, generator=seeded(8)).exp()
    for _ in range(4):
        steps, state = rule.update(slope * (theta - scales), state, theta, view)
        theta = theta + steps
        for k in range(3):
            gradient = array(slope) * (expected[k] - float(scales[k, 0]))
            expected[k], own[k] = reference(named, expected[k], gradient, own[k], tensors=SHAPES)
            agree(theta[k], np.asarray(expected[k]))


def test_without_its_networks_and_pace_it_is_anytime() -> None:
    rule, plain = Pacer(hidden_size=4).double(), Anytime().double()
    rule.log_gain.data.fill_(-60.0)
    rule.log_limit.data.fill_(60.0)
    plain.load_state_dict({k: v for k, v in rule.state_dict().items() if k in plain.state_dict()})
    view = View.of([torch.zeros(2, 60), torch.zeros(3)], [0])
    params = [normal(2, 123)] * 2
    states = [one.init(params[0], view) for one in (rule, plain)]
    for number in range(5):
        grads = normal(2, 123, generator=seeded(number))
        for k, one in enumerate((rule, plain)):
            steps, states[k] = one.update(grads, states[k], params[k], view)
            params[k] = params[k] + steps
    torch.testing.assert_close(params[0], params[1], rtol=0, atol=1e-12)


def network() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv1d(9, 3, 4), nn.Flatten(), nn.Linear(6, 5), nn.Linear(5, 2))
    return made.double()


def trained(optimiser: Any, model: nn.Module, updates: int = 4, skip: int | None = None) -> Tensor:
    """The parameters after some updates; one of them has no gradient in the second."""
    g = seeded(3)
    for update in range(updates):
        optimiser.zero_grad()
        model(torch.randn(6, 9, 5, generator=g, dtype=torch.float64)).square().mean().backward()
        if skip is not None and update == 1:
            list(model.parameters())[skip].grad = None
        optimiser.step()
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


@pytest.mark.parametrize("name", ["pacer", "small_fc"])
@pytest.mark.parametrize("skip", [None, 2])
def test_a_group_at_once_is_its_tensors_one_by_one(name: str, skip: int | None) -> None:
    """Each tensor has its own clock, which stands while it has no gradient."""
    rule = make_rule(name).double()
    together, alone = network(), network()
    groups = [{"params": [p]} for p in alone.parameters()]
    found = trained(rule(together.parameters()), together, skip=skip)
    expected = trained(rule(groups), alone, skip=skip)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    assert (found - nn.utils.parameters_to_vector(network().parameters())).abs().max() > 1e-3


def test_groups_have_their_own_rate_decay_and_tables() -> None:
    rule = make_rule("pacer").double()

    def after(**options: Any) -> Tensor:
        model = network()
        first, *rest = model.parameters()
        return trained(rule([{"params": [first], **options}, {"params": rest}]), model, 1)

    usual = after()
    count = next(network().parameters()).numel()
    for options in ({"lr": 0.5}, {"weight_decay": 3.0}, {"tables": True}, {"maximize": True}):
        changed = after(**options)
        assert not torch.allclose(changed[:count], usual[:count], atol=1e-6), options
        assert torch.equal(changed[count:], usual[count:]), options


def test_a_copy_goes_on_bit_for_bit() -> None:
    model = network()
    optimiser = Pacer()(model.parameters())
    trained(optimiser, model)
    other, twin = copy.deepcopy((optimiser, model))
    assert torch.equal(trained(other, twin), trained(optimiser, model))


def test_the_pace_grows_where_steps_are_too_small_and_not_where_gradients_turn() -> None:
    rule = Pacer()
    for direction, grows in ((1.0, True), (-1.0, False)):
        weight = nn.Parameter(torch.ones(8))
        optimiser = rule([weight])
        for update in range(40):
            weight.grad = torch.full((8,), direction**update)
            optimiser.step()
        pace = optimiser.state[weight]["pace"].item()
        assert optimiser.state[weight]["factors"].numel() == 0  # which networks alone would read
        assert (pace > 2) == grows, (direction, pace)
        assert pace > -1


class Published:
    """Weights as PyLO and as learned_optimization name them, in the published shapes."""

    def __init__(self, units: int, inner: int) -> None:
        g = seeded(2)
        sizes = [(units, 39), *[(units, units)] * inner, (2, units)]
        self.layers = [(torch.randn(s, generator=g), torch.randn(s[0], generator=g)) for s in sizes]

    def pylo(self) -> dict[str, Tensor]:
        names = ["input", *(f"linear_{i}" for i in range(len(self.layers) - 2)), "output"]
        parts = zip(names, self.layers, strict=True)
        return {
            f"network.{n}.{k}": v for n, (w, b) in parts for k, v in (("weight", w), ("bias", b))
        }

    def jax(self) -> dict[str, Tensor]:
        named = {f"nn/~/w{i}": w.mT.contiguous() for i, (w, _) in enumerate(self.layers)}
        named |= {f"nn/~/b{i}": b for i, (_, b) in enumerate(self.layers)}
        decays = {"momentum_decays": 3, "rms_decays": 1, "adafactor_decays": 3}
        return named | {k: torch.full((n,), 0.02) for k, n in decays.items()}


def test_published_weights_are_loaded_by_either_naming(tmp_path: Path) -> None:
    mulo = Published(32, 1)
    save_file(mulo.pylo(), tmp_path / "mulo.safetensors")
    rule = load_published(tmp_path / "mulo.safetensors")
    assert (rule.scale, rule.exponent, len(rule.layers)) == (0.01, 0.001, 3)
    # (1 - 0.9) exp(10 b) is forgotten by the first momentum, and so on
    forgets = 1 - np.array([0.9, 0.99, 0.999])
    forgets = forgets * np.exp(10 * np.array([0.15216392, 0.14245212, 0.06812963]))
    model = nn.Linear(2, 2)
    optimiser = rule(model.parameters())
    model.weight.grad, model.bias.grad = torch.full((2, 2), 3.0), None
    optimiser.step()
    kept = optimiser.state[model.weight]["m"][0, 0]
    torch.testing.assert_close(kept, torch.tensor(3 * forgets).float())
    small = Published(4, 1)
    save_file(small.jax(), tmp_path / "small.safetensors")
    other = load_published(tmp_path / "small.safetensors", scale=0.001)
    for layer, (weight, bias) in zip(other.layers, small.layers, strict=True):
        torch.testing.assert_close([*layer.parameters()], [weight, bias], rtol=0, atol=0)
    assert other.rms_decays.item() == pytest.approx(0.02)
    assert isinstance(other, Rule)


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(2)}, tmp_path / "velo.safetensors")
    with pytest.raises(InputError, match="reads 39 numbers.*Try load_celo"):
        load_published(tmp_path / "velo.safetensors")
    (tmp_path / "theta.state").write_bytes(pickle.dumps({"nn": 1}))
    for name in ("theta.state", "missing"):
        with pytest.raises(InputError, match="Write what is kept otherwise as safetensors"):
            load_published(tmp_path / name)
    short = Published(32, 1).pylo()
    short["network.output.bias"] = torch.zeros(3)
    save_file(short, tmp_path / "short.safetensors")
    with pytest.raises(InputError, match="biases and decays that fit"):
        load_published(tmp_path / "short.safetensors")


def test_shipped_weights_gain_on_those_of_anytime_and_their_card_says_whence() -> None:
    """Where the steps of anytime are too small it gains, and on a perceptron it loses nothing."""
    told = about(shipped_file("pacer", "default"))
    assert "pacer-numbers" in told["made by"]
    assert min(told["validation"]) < 0.8 * told["validation"][0]
    shallow = Problem(lambda g: MLP([64, 10], generator=g), Digits(order="flat"), 32)
    deep = Problem(lambda g: MLP([64, 24, 10], generator=g), Digits(order="flat"), 32)
    rivals: dict[str, Any] = {"pacer": Pacer.pretrained(), "anytime": Anytime.pretrained()}
    for problem, factor in ((shallow, 0.8), (deep, 1.1)):
        curves = compare(rivals, problem, steps=100, seeds=[0], evaluate_every=100)
        found = {curve.optimiser: curve.loss[-1] for curve in curves}
        assert found["pacer"] < factor * found["anytime"], found
