"""What the contract tests need to know about a learned optimiser."""

from typing import Any

import torch
from torch import Tensor, nn

from attractor.optimisers import OPTIMISERS, Learned, Rule
from attractor.optimisers.view import count
from contracts.cells import perturb, seeded

NAMES = sorted(name for name, entry in OPTIMISERS.items() if entry.learned)
"""The rules of the table."""
SIZED = ("global", "m2sgd_global", "meta_sgd")
"""Rules that go on one network only."""
FREE = sorted(set(NAMES) - set(SIZED))
LENGTH = 7
"""Tokens in an input of `Net`."""

OPTIONS: dict[str, dict[str, Any]] = {
    "lstm": {"hidden_size": 4},
    "decaynet": {"hidden_size": 4},
    "global": {"hidden_size": 4, "reduced_size": 3},
    "ihc_lstm": {"hidden_size": 4},
    "mtl2l": {"hidden_size": 4, "hyper_size": 3, "context_size": LENGTH},
    "dmsgd": {"hidden_size": 4},
    "m2sgd": {"hidden_size": 4},
    "m2sgd_global": {"hidden_size": 4},
    "rnnprop": {"hidden_size": 4},
    "hierarchical": {"hidden_size": 4, "tensor_size": 5, "network_size": 3},
    "small_fc": {"hidden_size": 3, "scale": 0.1, "exponent": 0.2},
    "pacer": {"hidden_size": 3},
    "celo": {"hidden_size": 3, "scheduler_size": 4, "horizon": 9},
    "velo": {"hidden_size": 3, "scheduler_size": 4, "perceptrons": 5, "horizon": 9},
}


def make_rule(name: str, size: int | None = None, *, seed: int = 0, **options: Any) -> Rule:
    """A small rule none of whose weights is at its initial value."""
    options = OPTIONS.get(name, {}) | options
    g = seeded(seed)
    if name in SIZED:
        options["size"] = size
    if name not in ("meta_sgd", "anytime"):
        options["generator"] = g
    rule = perturb(OPTIMISERS[name].kind(**options), g)
    for key, value in rule.named_parameters():
        if key.endswith("static"):  # so that some coordinates move and others do not
            value.data.fill_(0.3)
    assert isinstance(rule, Rule)
    return rule


class Net(nn.Module):
    """An embedding, a convolution, a batch norm and a scalar, some of them nested."""

    def __init__(self, seed: int = 0, width: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.features = nn.Sequential(nn.Conv1d(3, width, 3), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.ModuleDict({"out": nn.Linear(width, 2)})
        self.scale = nn.Parameter(torch.tensor(1.0))
        g = seeded(seed)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=g)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.features(self.embedding(tokens).mT)
        y: Tensor = self.scale * self.head["out"](h.mean(-1))
        return y


def batch(seed: int, size: int = 6) -> tuple[Tensor, Tensor]:
    g = seeded(seed)
    shape = (size, LENGTH)
    return torch.randint(5, shape, generator=g), torch.randint(2, (size,), generator=g)


def backward(model: nn.Module, seed: int) -> Tensor:
    """Fresh gradients of a batch; what the model was shown."""
    x, y = batch(seed)
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()  # type: ignore[no-untyped-call]
    return x


def train(model: nn.Module, optimiser: Learned, seeds: range) -> list[Tensor]:
    """Some steps; the parameters after them."""
    for seed in seeds:
        optimiser.step(context=backward(model, seed))
    return values(model)


def values(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def rule_for(name: str, model: nn.Module, **options: Any) -> Rule:
    return make_rule(name, count(model.parameters()), **options)


def exact(found: list[Tensor], expected: list[Tensor]) -> None:
    torch.testing.assert_close(found, expected, atol=0, rtol=0)
