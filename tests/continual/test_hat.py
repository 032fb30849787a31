"""HAT against its equations, and its promise that what is used is not changed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from attractor import InputError
from attractor.continual import HAT, Connection, Learner, Masked
from attractor.continual.strategies.masks import wiring
from attractor.models import HCN, MLP, MultiHead, ResMLP
from attractor.tasks import cross_entropy
from continual.helpers import batch, digits, mlp, seeded

told = replace(digits(), identity=True)
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: mlp(12, 12),
    "hcn": lambda: HCN([64, 12, 12, 12, 10], generator=seeded()),
    "res_mlp": lambda: ResMLP([64, 12, 12, 10], generator=seeded()),
    "tanh": lambda: MLP([64, 12, 12, 10], activation="tanh", generator=seeded()),
}
networks = pytest.mark.parametrize("name", NETWORKS)


def test_masks_multiply_the_hidden_units() -> None:
    body = mlp(5, 4)
    model = Masked(body, 2, sharpness=3.0, generator=seeded())
    x = torch.randn(3, 64, generator=seeded())
    a, b = (torch.sigmoid(3.0 * e) for e in model.embedding(1))
    first, second, last = body.layers
    h = a * torch.relu(first(x))
    h = b * torch.relu(second(h))
    torch.testing.assert_close(model(x, torch.ones(3, dtype=torch.long)), last(h))


def test_each_sample_has_the_masks_of_its_task() -> None:
    model = Masked(mlp(5, 4), 3, generator=seeded())
    x = torch.randn(4, 64, generator=seeded())
    tasks = torch.tensor([2, 0, 0, 1])
    mixed = model(x, tasks)
    for row in range(4):
        torch.testing.assert_close(mixed[row], model(x[row : row + 1], tasks[row : row + 1])[0])


@networks
def test_a_unit_that_nobody_uses_can_be_changed_without_harm(name: str) -> None:
    """With hard masks, weights that the masks set free have no influence at all."""
    model = Masked(NETWORKS[name](), 2, generator=seeded())
    g = seeded(3)
    with torch.no_grad():
        for e in model.embedding(0):
            e.copy_(torch.where(torch.rand(e.shape, generator=g) < 0.5, -6.0, 6.0))
    strategy = HAT()
    strategy.start(NETWORKS[name](), told, generator=seeded())
    strategy.model = model
    strategy.end_task(model, told[0])
    x, tasks = told.arrays()[0].test_samples.x[:20], torch.zeros(20, dtype=torch.long)
    model.eval()
    before = model(x, tasks)
    # the factors by which gradients are multiplied, as seen from a gradient of ones
    for parameter in model.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for weights, free in strategy._freedom():
        assert weights.grad is not None
        weights.grad *= free
    with torch.no_grad():
        for part, parameter in model.model.named_parameters():
            if not part.startswith("last") and part not in ("layers.2.weight", "layers.2.bias"):
                assert parameter.grad is not None
                noise = torch.randn(parameter.shape, generator=g)
                parameter.add_(parameter.grad * noise)
    torch.testing.assert_close(model(x, tasks), before, atol=1e-4, rtol=1e-4)
    assert any(float(p.grad.mean()) > 0.1 for p in model.model.parameters() if p.grad is not None)


def test_a_protected_head_keeps_the_first_task_exactly() -> None:
    model = mlp(40, 40)
    strategy = HAT(0.05, protect_head=True)
    learner = Learner(model, told, strategy, optimiser=lambda p: SGD(p, lr=0.05), iterations=100)
    while learner.task == 0:
        learner.advance()
    with torch.no_grad():  # masks that are quite hard
        for e in strategy.model.embedding(0):
            e.copy_(6 * e.sign())
    strategy.end_task(learner.model, told[0])
    layer = strategy.model.layer("layers.2")
    bias = layer.bias.detach().clone()
    x = told.arrays()[0].test_samples
    learner.model.eval()
    before = learner.model(x.x, x.task)
    learner.model.train()
    while not learner.done:
        learner.advance()
    learner.model.eval()
    with torch.no_grad():
        layer.bias.copy_(bias)  # which all tasks share
    torch.testing.assert_close(learner.model(x.x, x.task), before, atol=1e-3, rtol=1e-3)


def test_sharpness_grows_within_each_epoch() -> None:
    strategy = HAT(sharpness=100.0)
    learner = Learner(mlp(), told, strategy, iterations=11, batch_size=8)
    found = []
    for _ in range(11):
        learner.advance()
        found.append(strategy.model.s)
    assert found[0] == pytest.approx(0.01)
    assert found[10] == pytest.approx(100)
    assert found[5] == pytest.approx(0.01 + (100 - 0.01) / 2)
    epochs = Learner(mlp(), told[:1], HAT(), epochs=2, batch_size=400)  # 4 updates each
    strategy = epochs.strategy  # type: ignore[assignment]
    found = []
    while not epochs.done:
        epochs.advance()
        found.append(strategy.model.s)
    assert found[:4] == found[4:]


def test_the_loss_and_the_gradients_are_those_of_the_paper() -> None:
    strategy = HAT(0.6, sharpness=50.0)
    model = strategy.start(mlp(6, 5), told, generator=seeded())
    optimiser = SGD(model.parameters(), lr=0.1)
    strategy.start_task(model, told[1], optimiser, 10)
    g = seeded(1)
    strategy.used = [torch.rand(6, generator=g), torch.rand(5, generator=g)]
    strategy.count = 4
    strategy.epoch = 10
    some = batch(told[1])
    loss = strategy.loss(model, some)
    s = 1 / 50 + (50 - 1 / 50) * 4 / 9
    assert strategy.model.s == pytest.approx(s)
    masks = [torch.sigmoid(s * e.detach()) for e in strategy.model.embedding(1)]
    top = sum(float((a * (1 - u)).sum()) for a, u in zip(masks, strategy.used, strict=True))
    bottom = sum(float((1 - u).sum()) for u in strategy.used)
    torch.testing.assert_close(loss, cross_entropy(model, some) + 0.6 * top / bottom)

    loss.backward()  # type: ignore[no-untyped-call]
    layer = strategy.model.layer("layers.1")
    e = strategy.model.embedding(1)[0]
    assert layer.weight.grad is not None
    assert layer.bias.grad is not None
    assert e.grad is not None
    raw = [t.clone() for t in (layer.weight.grad, layer.bias.grad, e.grad)]
    strategy.after_backward(model)
    below, out = strategy.used
    factor: Tensor = 1 - torch.minimum(out[:, None], below[None, :])
    torch.testing.assert_close(layer.weight.grad, raw[0] * factor)
    torch.testing.assert_close(layer.bias.grad, raw[1] * (1 - out))
    steep = torch.cosh((s * e.detach()).clamp(-50, 50)) + 1
    made_up = raw[2] * 50 / s * steep / (torch.cosh(e.detach()) + 1)
    torch.testing.assert_close(e.grad, made_up)


def test_embeddings_stay_within_reach() -> None:
    strategy = HAT()
    learner = Learner(mlp(), told, strategy, optimiser=lambda p: SGD(p, lr=50.0), iterations=5)
    for _ in range(5):
        learner.advance()
    assert max(float(e.detach().abs().max()) for e in strategy.model.embedding(0)) <= 6


def test_only_the_present_tasks_masks_are_learnt() -> None:
    strategy = HAT()
    learner = Learner(
        mlp(), told, strategy, optimiser=lambda p: SGD(p, lr=0.1, momentum=0.9), iterations=5
    )
    while learner.task < 1:
        learner.advance()
    before = [e.detach().clone() for e in strategy.model.embedding(0)]
    while not learner.done:
        learner.advance()
    assert all(torch.equal(a, b) for a, b in zip(strategy.model.embedding(0), before, strict=True))


def test_wiring() -> None:
    assert wiring(mlp(3, 4)) == [
        Connection("layers.0", None, (0,)),
        Connection("layers.1", 0, (1,)),
        Connection("layers.2", 1, ()),
    ]
    assert wiring(HCN([4, 3, 3, 2])) == [
        Connection("first", None, (0, 1)),
        Connection("layers.0", 0, (1,)),
        Connection("gates.0", None, (1,)),
        Connection("last", 1, ()),
    ]
    assert wiring(MultiHead(mlp(3), [(0, 1)]))[0] == Connection("body.layers.0", None, (0,))
    with pytest.raises(InputError, match="but got Linear. Say how its layers"):
        wiring(nn.Linear(2, 2))


def test_a_network_of_ones_own_can_say_how_it_is_wired() -> None:
    body = nn.Sequential(nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 10))
    strategy = HAT(wires=[Connection("0", None, (0,)), Connection("2", 0, ())])
    learner = Learner(body, told, strategy, iterations=3)
    learner.advance()
    assert [len(e) for e in strategy.model.embedding(0)] == [6]


@pytest.mark.parametrize(
    "optimiser",
    [
        partial(SGD, lr=0.05, momentum=0.9),
        partial(SGD, lr=0.05, weight_decay=0.1),
        partial(Adam, lr=0.01),
    ],
)
def test_used_weights_stay_whatever_the_optimiser_remembers(optimiser: Any) -> None:
    strategy = HAT(protect_head=True)
    learner = Learner(mlp(), told, strategy, optimiser=optimiser, iterations=10)
    while learner.task == 0:
        learner.advance()
    strategy.used = [torch.ones_like(used) for used in strategy.used]
    before = [layer.weight.detach().clone() for layer in linear(learner.model)]
    learner.advance()
    for layer, weight in zip(linear(learner.model), before, strict=True):
        assert torch.equal(layer.weight, weight)
    strategy.used = [torch.zeros_like(used) for used in strategy.used]
    learner.advance()
    assert not torch.equal(next(linear(learner.model)).weight, before[0])


def linear(model: nn.Module) -> Iterator[nn.Linear]:
    return (one for one in model.modules() if isinstance(one, nn.Linear))


def test_masks_are_as_sharp_as_they_should_be() -> None:
    """In training as sharp as the moment is, in evaluation and for what is used, at the end."""
    strategy = HAT(sharpness=7.0)
    model: Any = strategy.start(mlp(5, 4), told, generator=seeded())
    strategy.start_task(model, told[0], SGD(model.parameters(), lr=0.1), 10)
    strategy.count, some = 3, batch(told[0])
    strategy.loss(model, some)
    s = 1 / 7 + (7 - 1 / 7) * 3 / 9
    for training, sharp in ((True, s), (False, 7.0)):
        model.train(training)
        a, b = (torch.sigmoid(sharp * e) for e in model.embedding(0))
        first, second, last = model.model.layers
        h = b * torch.relu(second(a * torch.relu(first(some.x))))
        torch.testing.assert_close(model(some.x, some.task), last(h))
    strategy.end_task(model, told[0])
    for used, e in zip(strategy.used, model.embedding(0), strict=True):
        torch.testing.assert_close(used, torch.sigmoid(7.0 * e))


def test_in_an_hcn_a_unit_is_carried_past_the_layer_unmasked() -> None:
    body = HCN([64, 5, 5, 10], generator=seeded())
    model = Masked(body, 1, sharpness=2.0, generator=seeded())
    x = torch.randn(3, 64, generator=seeded())
    a, b = (torch.sigmoid(2.0 * e) for e in model.embedding(0))
    k = torch.relu(body.first(x))
    gate = torch.sigmoid(body.gates[0](x))
    k = (1 - gate) * k + gate * torch.relu(body.layers[0](a * k))
    torch.testing.assert_close(model(x, torch.zeros(3, dtype=torch.long)), body.last(b * k))


@pytest.mark.parametrize("sharpness", [0, 0.5, -3.0])
def test_bad_settings_are_refused(sharpness: float) -> None:
    with pytest.raises(
        InputError, match=f"expected sharpness to be at least 1, but got {sharpness}"
    ):
        HAT(sharpness=sharpness)
    with pytest.raises(InputError, match="expected strength to be at least 0, but got -1"):
        HAT(-1)
