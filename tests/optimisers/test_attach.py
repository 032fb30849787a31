"""Every optimiser of the table on every kind of network, in a loop that just calls step()."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.models import MLP, ConvNet, SequenceClassifier
from attractor.optimisers import MTL2L, OPTIMISERS, Learned, attach, sizes
from attractor.references import year
from contracts.cells import seeded
from contracts.optimisers import OPTIONS, exact, make_rule, values


class Words(nn.Module):
    """An embedding and what reads it."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.readout = MLP([4, 3], generator=generator)

    def forward(self, tokens: Tensor) -> Tensor:
        y: Tensor = self.readout(self.embedding(tokens).mean(1))
        return y


def network(kind: str) -> tuple[nn.Module, Tensor]:
    """A network of three classes and a batch of what it reads."""
    g = seeded(3)
    match kind:
        case "mlp":
            return MLP([6, 5, 3], generator=g), torch.randn(4, 6, generator=g)
        case "convnet":
            made = ConvNet((1, 12, 12), 3, channels=[2], hidden_size=3, kernel_size=3, generator=g)
            return made, torch.randn(4, 1, 12, 12, generator=g)
        case "recurrent":
            read = SequenceClassifier("gru", 2, 3, 3, generator=g)
            return read, torch.randn(4, 5, 2, generator=g)
        case _:
            return Words(g), torch.randint(7, (4, 5), generator=g)


def options(name: str) -> dict[str, Any]:
    small = OPTIONS.get(name, {})
    return {key: value for key, value in small.items() if key != "context_size"}


@pytest.mark.parametrize("kind", ["mlp", "convnet", "recurrent", "embedding"])
@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_any_optimiser_on_any_network(name: str, kind: str) -> None:
    model, x = network(kind)
    y = torch.arange(4) % 3
    entry = OPTIMISERS[name]
    make = entry(**sizes(entry, model, x), **options(name))
    if isinstance(make, nn.Module):  # so that rules that start by moving nothing move
        for parameter in make.parameters():
            parameter.data.add_(0.05)
    optimiser = attach(make, model)
    before = values(model)
    for _ in range(3):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            model.eval()(x[:1])
        model.train()
    after = values(model)
    assert all(p.isfinite().all() for p in after)
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_attached_is_what_is_made_by_hand() -> None:
    rule = make_rule("mtl2l", context_size=6)
    (one, x), (two, _) = network("mlp"), network("mlp")
    attached, by_hand = attach(rule, one), rule(two.parameters())
    for scale in (1.0, -2.0):
        for model in (one, two):
            model.zero_grad()
            model(scale * x).square().sum().backward()
        attached.step()
        by_hand.step(context=scale * x)
    exact(values(one), values(two))


def test_some_of_the_parameters() -> None:
    model, x = network("mlp")
    first, *rest = model.parameters()
    groups = [{"params": [first], "lr": 0.5}]
    optimiser = attach(partial(torch.optim.SGD, lr=0.1), model, groups)
    assert optimiser.param_groups[0]["lr"] == 0.5
    kept = [p.detach().clone() for p in rest]
    model(x).sum().backward()
    optimiser.step()
    exact([p.detach() for p in rest], kept)


def test_the_rule_that_is_too_small_for_a_context_says_so() -> None:
    model, x = network("mlp")
    optimiser = attach(MTL2L(context_size=5), model)
    model(x).sum().backward()
    with pytest.raises(InputError, match="but got 6. Make the rule with context_size=6"):
        optimiser.step()


@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_entries(name: str) -> None:
    """Each says how it is made, with which options, and where it comes from."""
    entry = OPTIMISERS[name]
    assert 1951 <= year(entry.reference) <= 2026
    assert not {"params", "generator", "self"} & {*entry.options}
    model, x = network("mlp")
    optimiser = entry(**sizes(entry, model, x))(model.parameters())
    assert isinstance(optimiser, Learned) == entry.learned
    assert entry.learned or isinstance(optimiser, entry.kind)


def test_torchs_own_have_torchs_defaults() -> None:
    (parameter,) = nn.Linear(1, 1, bias=False).parameters()
    assert OPTIMISERS["rmsprop"]()([parameter]).defaults["alpha"] == 0.99
    assert OPTIMISERS["rmsprop"](alpha=0.9)([parameter]).defaults["alpha"] == 0.9
    assert OPTIMISERS["amsgrad"](lr=0.1)([parameter]).defaults["amsgrad"]
    assert not OPTIMISERS["adam"]()([parameter]).defaults["amsgrad"]
    assert "amsgrad" not in OPTIMISERS["amsgrad"].options
    assert OPTIMISERS["sgd"].options["lr"] == 1e-3


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("sgd", {"rate": 0.1}, "known option of SGD .* but got 'rate'"),
        ("sgd", {"params": []}, "known option of SGD .* but got 'params'"),
        ("amsgrad", {"amsgrad": False}, "known option of Adam .* but got 'amsgrad'"),
        ("adam", {"lr": -1.0}, "options that Adam can use, but got {'lr': -1.0}: .*learning rate"),
        ("dmsgd", {"gama": 1.0}, "known option of DMSGD .* Did you mean 'gamma'"),
        ("meta_sgd", {"generator": seeded()}, "known option of MetaSGD"),
        ("meta_sgd", {}, "options that MetaSGD can use, but got {}: .*size"),
        ("m2sgd", {"size": 0}, "size to be a whole number"),
    ],
)
def test_options_are_checked(name: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        OPTIMISERS[name](**given)
