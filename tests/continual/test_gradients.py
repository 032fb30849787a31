"""Gradients of many groups at once are those that autograd gives one by one."""

from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.continual import GroupGradients
from attractor.continual.flat import Flat
from attractor.continual.rows import GroupMatrix
from attractor.models import HCN, MLP, MultiHead, ResMLP, SequenceClassifier
from attractor.tasks import Batch, cross_entropy

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: MLP([6, 5, 4, 3]),
    "hcn": lambda: HCN([6, 5, 5, 3]),
    "deep hcn": lambda: HCN([6, 5, 5, 5, 3]),
    "res_mlp": lambda: ResMLP([6, 5, 5, 3]),
    "without biases": lambda: nn.Sequential(
        nn.Linear(6, 4, bias=False), nn.Tanh(), nn.Linear(4, 3, bias=False)
    ),
    "heads": lambda: MultiHead(MLP([6, 5, 3]), [(0, 1, 2)]),
}
networks = pytest.mark.parametrize("name", NETWORKS)


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[name]().double()


def batch(count: int, shape: Sequence[int] = (6,)) -> Batch:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(count, *shape, generator=g, dtype=torch.float64)
    y = torch.randint(3, (count,), generator=g)
    return Batch(x, y, task=torch.zeros(count, dtype=torch.long))


def by_autograd(model: nn.Module, samples: Batch, sizes: Sequence[int]) -> Tensor:
    rows, start = [], 0
    for size in sizes:
        model.zero_grad()
        some = samples[start : start + size]
        output = model(some.x, some.task) if isinstance(model, MultiHead) else model(some.x)
        F.cross_entropy(output, some.y).backward()  # type: ignore[no-untyped-call]
        rows.append(Flat(model).gradient())
        start += size
    return torch.stack(rows)


@networks
@pytest.mark.parametrize("sizes", [[4, 4, 4], [1, 7, 3], [5]])
def test_groups(name: str, sizes: list[int]) -> None:
    model, samples = made(name), batch(sum(sizes))
    gradients = GroupGradients(model)
    for _ in range(2):  # the first time it is verified
        found = gradients.of_groups(samples, sizes, cross_entropy).matrix()
        torch.testing.assert_close(found, by_autograd(model, samples, sizes))
    assert gradients.is_fast(samples, cross_entropy) == (sum(sizes) > 1)


@networks
def test_squares(name: str) -> None:
    model, samples = made(name), batch(9)
    gradients = GroupGradients(model)
    each = by_autograd(model, samples, [1] * 9)
    for _ in range(2):
        found = gradients.squares(samples, cross_entropy)
        torch.testing.assert_close(found, each.square().mean(0))


@networks
def test_the_slow_way_does_the_same(name: str) -> None:
    model, samples = made(name), batch(9)
    gradients = GroupGradients(model)
    gradients._layers = None
    each = by_autograd(model, samples, [1] * 9)
    torch.testing.assert_close(gradients.squares(samples, cross_entropy), each.square().mean(0))
    torch.testing.assert_close(
        gradients.of_groups(samples, [2, 7], cross_entropy).matrix(),
        by_autograd(model, samples, [2, 7]),
    )


def test_frozen_layers_have_none() -> None:
    model, samples = made("hcn"), batch(8)
    everything = by_autograd(model, samples, [4, 4])
    for part in (model.gates, model.last):
        part.requires_grad_(False)
    found = GroupGradients(model).of_groups(samples, [4, 4], cross_entropy).matrix()
    for row, expected in zip(found, everything, strict=True):
        parts = Flat(model).named(row, model)
        for part_name, wanted in Flat(model).named(expected, model).items():
            frozen = part_name.startswith(("gates", "last"))
            zero = torch.zeros_like(wanted)
            torch.testing.assert_close(parts[part_name], zero if frozen else wanted)


class Tied(nn.Module):
    """An autoencoder whose weights are used twice, which no hook can see."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        code = torch.tanh(self.encoder(x))
        return F.linear(code, self.encoder.weight.T)[:, :3]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(6, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.again(torch.tanh(self.again(self.first(x))))
        return answer


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.used(x)
        return answer


@pytest.mark.parametrize("kind", [Tied, Twice, Unused])
def test_unusual_networks_are_noticed(kind: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model, samples = kind().double(), batch(8)
    gradients = GroupGradients(model)
    for _ in range(2):
        found = gradients.of_groups(samples, [3, 5], cross_entropy).matrix()
        torch.testing.assert_close(found, by_autograd(model, samples, [3, 5]))
    assert not gradients.is_fast(samples, cross_entropy)


def test_networks_that_mix_samples_take_a_pass_per_group() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 4), nn.BatchNorm1d(4, affine=False), nn.ReLU(), nn.Linear(4, 3)
    ).double()
    samples = batch(8)
    found = GroupGradients(model).of_groups(samples, [4, 4], cross_entropy).matrix()
    torch.testing.assert_close(found, by_autograd(model, samples, [4, 4]))


def test_recurrent_networks_take_a_pass_per_group() -> None:
    torch.manual_seed(0)
    model = SequenceClassifier("gru", 2, 4, 3).double()
    samples = batch(8, (5, 2))
    found = GroupGradients(model).of_groups(samples, [4, 4], cross_entropy).matrix()
    torch.testing.assert_close(found, by_autograd(model, samples, [4, 4]))


def test_dropout_is_no_reason_to_be_slow() -> None:
    torch.manual_seed(0)
    model = MLP([6, 50, 50, 3], dropout=0.5).double()
    gradients = GroupGradients(model)
    assert model.training
    before = torch.get_rng_state()
    first = gradients.of_groups(batch(8), [4, 4], cross_entropy).matrix()
    assert gradients.is_fast(batch(8), cross_entropy)
    after = torch.get_rng_state()
    torch.set_rng_state(before)  # to verify costs no random numbers
    assert torch.equal(gradients.of_groups(batch(8), [4, 4], cross_entropy).matrix(), first)
    assert torch.equal(torch.get_rng_state(), after)
    assert model.training


def test_the_gradients_of_the_parameters_are_left_alone() -> None:
    model = made("mlp")
    model(batch(2).x).sum().backward()
    before = Flat(model).gradient()
    gradients = GroupGradients(model)
    for _ in range(2):
        gradients.of_groups(batch(8), [4, 4], cross_entropy).matrix()
        assert torch.equal(Flat(model).gradient(), before)


def test_rows_compute_what_their_matrix_does() -> None:
    g = torch.Generator().manual_seed(0)
    rows = GroupMatrix([torch.randn(3, n, generator=g, dtype=torch.float64) for n in (4, 1, 6)])
    matrix, vector = rows.matrix(), torch.randn(11, generator=g, dtype=torch.float64)
    factors = torch.randn(3, generator=g, dtype=torch.float64)
    entries = torch.randn(3, 11, generator=g, dtype=torch.float64)
    torch.testing.assert_close(rows.gram(), matrix @ matrix.T)
    torch.testing.assert_close(rows.dot(vector), matrix @ vector)
    torch.testing.assert_close(rows.combine(factors), factors @ matrix)
    torch.testing.assert_close(rows.blend(entries), (entries * matrix).sum(0))


def test_a_loss_that_knows_no_weights_takes_a_pass_per_group() -> None:
    def mean(model: nn.Module, some: Batch) -> Tensor:
        return F.cross_entropy(model(some.x), some.y)

    model, samples = made("mlp"), batch(9)
    gradients = GroupGradients(model)
    for _ in range(2):
        found = gradients.of_groups(samples, [2, 7], mean).matrix()
        torch.testing.assert_close(found, by_autograd(model, samples, [2, 7]))


class Doubled(nn.Module):
    """Whose weights are used a second time, by which all gradients are twice as large."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        once: Tensor = self.layer(x)
        return once + F.linear(x, self.layer.weight)


def test_gradients_that_are_too_small_throughout_are_noticed() -> None:
    def output(model: nn.Module, some: Batch) -> Tensor:
        assert some.weight is not None
        answer: Tensor = some.weight @ model(some.x)[:, 0]
        return answer

    model, samples = Doubled().double(), batch(9)
    samples = Batch(samples.x.abs(), samples.y, task=samples.task)
    gradients = GroupGradients(model)
    assert not gradients.is_fast(samples, output)
    found = gradients.of_groups(samples, [2, 7], output).matrix()
    means = [some.mean(0) for some in samples.x.split([2, 7])]
    torch.testing.assert_close(found, 2 * torch.stack(means))
