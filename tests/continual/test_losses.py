"""The contract of a loss, and what strategies do with one that does not heed weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from attractor.continual import (
    AGEM,
    ER,
    EWC,
    GEM,
    Freeze,
    GroupGradients,
    Joint,
    Learner,
    Loss,
    MetaSGDCL,
    OnlineEWC,
    Strategy,
    combine,
    train,
)
from attractor.continual.flat import Flat
from attractor.continual.weighting import Balanced, heeds_weights
from attractor.models import MLP
from attractor.tasks import Batch, cross_entropy, joined
from continual.helpers import batch, digits, mlp, parameters, seeded


def smooth(model: nn.Module, some: Batch) -> Tensor:
    """Label smoothing as one would write it, without a thought of weights."""
    return F.cross_entropy(model(some.x), some.y, label_smoothing=0.2)


def smooth_weighted(model: nn.Module, some: Batch) -> Tensor:
    if some.weight is None:
        return smooth(model, some)
    each = F.cross_entropy(model(some.x), some.y, label_smoothing=0.2, reduction="none")
    return each @ some.weight.to(each.dtype)


def averaging(model: nn.Module, some: Batch) -> Tensor:
    """Weights that are made to sum to one."""
    if some.weight is None:
        return cross_entropy(model, some)
    share = some.weight / some.weight.sum()
    return cross_entropy(model, Batch(some.x, some.y, task=some.task, weight=share))


def half(model: nn.Module, some: Batch) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return cross_entropy(model, some)


@pytest.mark.parametrize(
    "make",
    [
        partial(GEM, 15),
        partial(MetaSGDCL, size=15, replay=5, kappa=0.1),
        partial(ER, size=15, replay=5, balanced=True),
        partial(ER, "ring", 40, replay=5, each=False, balanced=True),
        Joint,
        partial(EWC, 5.0, samples=60),
        partial(OnlineEWC, 5.0, samples=60),
        partial(AGEM, 3, reference_batch=20),
    ],
)
def test_a_loss_that_heeds_no_weights_gives_the_same(make: Callable[[], Strategy]) -> None:
    ends = []
    for loss in (smooth, smooth_weighted):
        faster = partial(SGD, lr=0.05)
        result = train(mlp(), digits(4), make(), iterations=20, optimiser=faster, loss=loss)
        ends.append(parameters(result.model))
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", [smooth, averaging])
@pytest.mark.parametrize("sizes", [[7], [2, 7], [3, 3, 3]])
def test_rows_are_right_from_the_first_group_on(loss: Loss, sizes: list[int]) -> None:
    model = mlp().double()
    gradients = GroupGradients(model)
    for count in range(1, len(sizes) + 1):  # one group first, as in the second task
        some = batch(digits()[0], sum(sizes[:count]))
        some = Batch(some.x.double(), some.y, task=some.task)
        found = gradients.of_groups(some, sizes[:count], loss).matrix()
        start = 0
        for row, size in zip(found, sizes, strict=False):
            group = some[start : start + size]
            torch.testing.assert_close(row, Flat(model).gradient_of(loss(model, group)))
            start += size


def test_what_each_loss_is_found_to_heed() -> None:
    some = batch(digits()[0], 20)
    found = {loss: heeds_weights(mlp(), some, loss) for loss in (cross_entropy, smooth, averaging)}
    assert found == {cross_entropy: True, smooth: False, averaging: False}
    assert heeds_weights(mlp(), some, smooth_weighted)
    assert heeds_weights(mlp(), some[:1], cross_entropy) is None  # one sample does not tell


def hinge(model: nn.Module, some: Batch) -> Tensor:
    """Nothing for samples that are learnt well enough, and it heeds no weights."""
    return F.multi_margin_loss(model(some.x), some.y, margin=0.5)


def test_samples_without_a_loss_do_not_tell_whether_weights_are_heeded() -> None:
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(2))
    y = torch.tensor([0, 1]).repeat(5)
    learnt = Batch(F.one_hot(y).float(), y, task=torch.zeros(10))
    new = Batch(F.one_hot(1 - y).float() * torch.arange(1, 11)[:, None] / 3, y, task=learnt.task)
    assert hinge(model, learnt).item() == 0
    gradients = GroupGradients(model)
    assert not gradients.of_groups(learnt, [3, 7], hinge).matrix().any()
    found = gradients.of_groups(new, [3, 7], hinge).matrix()
    by_hand = [Flat(model).gradient_of(hinge(model, some)) for some in (new[:3], new[3:])]
    torch.testing.assert_close(found, torch.stack(by_hand))
    mean = Balanced()
    assert mean(model, learnt, learnt, [3, 7], hinge).item() == 0
    total = mean(model, new, new, [3, 7], hinge)
    parts = (hinge(model, new[:3]) + hinge(model, new[3:])) / 2
    torch.testing.assert_close(total, hinge(model, new) + parts)


@pytest.mark.parametrize("loss", [cross_entropy, smooth, averaging])
def test_balanced_means(loss: Loss) -> None:
    model, mean = mlp(), Balanced()
    new, one, other = batch(digits()[2], 10), batch(digits()[0], 3), batch(digits()[1], 8)
    found = mean(model, new, joined([one, other]), [3, 8], loss)
    expected = loss(model, new) + (loss(model, one) + loss(model, other)) / 2
    torch.testing.assert_close(found, expected)
    # another loss is tried anew
    again = mean(model, new, joined([one, other]), [3, 8], averaging)
    by_hand = (cross_entropy(model, some) for some in (one, other))
    torch.testing.assert_close(again, cross_entropy(model, new) + sum(by_hand) / 2)


def test_to_try_a_loss_leaves_no_trace() -> None:
    model = MLP([64, 8, 10], dropout=0.5, generator=seeded())
    model.layers[0].eval()
    state = torch.get_rng_state()
    heeds_weights(model, batch(digits()[0]), cross_entropy)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert not model.layers[0].training


@pytest.mark.parametrize("keep", [["layers.0.bias"], ["layers.1.weight"], ["layers.2"]])
def test_gradients_follow_what_is_trained(keep: list[str]) -> None:
    model, some = mlp().double(), batch(digits()[0], 9)
    some = Batch(some.x.double(), some.y, task=some.task)
    gradients = GroupGradients(model)
    for _ in range(2):
        for frozen in (False, True):
            for name, p in model.named_parameters():
                p.requires_grad_(not frozen or name.startswith(tuple(keep)))
            found = gradients.of_groups(some, [2, 7], cross_entropy).matrix()
            flat = Flat(model)
            for row, group in zip(found, (some[:2], some[2:]), strict=True):
                torch.testing.assert_close(row, flat.gradient_of(cross_entropy(model, group)))
            assert found.abs().max() > 0
            squares = gradients.squares(some, cross_entropy)
            rows = [cross_entropy(model, some[i : i + 1]) for i in range(9)]
            each = torch.stack([flat.gradient_of(loss) for loss in rows])
            torch.testing.assert_close(squares, each.square().mean(0))
            assert gradients.is_fast(some, cross_entropy)


def test_gem_goes_on_when_but_a_bias_is_trained() -> None:
    strategy = combine(GEM(20), Freeze(keep=["layers.0.bias"], after=2))
    model = mlp()
    learner = Learner(model, digits(), strategy, iterations=10, optimiser=partial(SGD, lr=0.1))
    while learner.task < 2:
        learner.advance()
    before = parameters(model)
    while not learner.done:
        learner.advance()
    gem = strategy.strategies[0]  # type: ignore[attr-defined]
    old = gem.episodes.all_of([0, 1])
    found = gem.gradients.of_groups(old, [20, 20], cross_entropy).matrix()
    assert (found.abs().amax(1) > 0).all()
    changed = parameters(model) != before
    assert changed[64 * 8 : 64 * 8 + 8].all()
    assert changed.sum() == 8


@pytest.mark.parametrize(
    "make",
    [
        partial(GEM, 15),
        partial(MetaSGDCL, size=15, replay=5),
        partial(EWC, samples=30),
        partial(OnlineEWC, samples=30),
        partial(AGEM, 3),
        partial(ER, balanced=True, replay=5),
        Joint,
    ],
)
def test_autocast_in_the_loss(make: Callable[[], Strategy]) -> None:
    result = train(mlp(), digits(3), make(), iterations=6, loss=half)
    exact = train(mlp(), digits(3), make(), iterations=6)
    torch.testing.assert_close(
        parameters(result.model), parameters(exact.model), rtol=0.1, atol=5e-3
    )


class Skipping(nn.Module):
    """Stochastic depth: in training a layer is left out now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(64, 8), nn.Linear(8, 8), nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        if not self.training or float(torch.rand(())) < 0.5:
            h = h + torch.relu(self.middle(h))
        answer: Tensor = self.last(h)
        return answer


UNUSUAL = [partial(GEM, 15), partial(MetaSGDCL, size=15, replay=5), partial(EWC, samples=30)]


@pytest.mark.parametrize("make", UNUSUAL)
def test_stochastic_depth_is_learnt_and_goes_on_bit_by_bit(make: Callable[[], Strategy]) -> None:
    def learner() -> Learner:
        torch.manual_seed(0)
        return Learner(Skipping(), digits(3), make(), iterations=12)

    one, other = learner(), learner()
    for _ in range(20):
        one.advance()
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == other.advance()
    assert torch.equal(parameters(one.model), parameters(other.model))
    assert torch.isfinite(parameters(one.model)).all()


@pytest.mark.parametrize("make", UNUSUAL)
@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_models_learn_as_others_do(make: Callable[[], Strategy], in_place: bool) -> None:
    torch._dynamo.reset()
    model = mlp()
    if in_place:
        model.compile(backend="eager")
    compiled: Any = model if in_place else torch.compile(model, backend="eager")
    result = train(compiled, digits(2), make(), iterations=4)
    expected = train(mlp(), digits(2), make(), iterations=4)
    torch.testing.assert_close(
        parameters(result.model), parameters(expected.model), rtol=1e-4, atol=1e-5
    )


class Tied(nn.Module):
    """Whose first weights are used a second time, which matters only while they are trained."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 8), nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x)) + F.linear(x.flip(1), self.first.weight)
        answer: Tensor = self.last(h)
        return answer


def test_another_loss_and_other_frozen_weights_are_tried_anew() -> None:
    torch.manual_seed(0)
    model, some = Tied(), batch(digits()[0], 9)
    gradients = GroupGradients(model)
    assert not gradients.is_fast(some, cross_entropy)
    model.first.requires_grad_(False)
    assert gradients.is_fast(some, cross_entropy)
    assert not gradients.is_fast(some, smooth)
    assert gradients.is_fast(some, cross_entropy)
    model.first.requires_grad_(True)
    assert not gradients.is_fast(some, cross_entropy)
