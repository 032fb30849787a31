"""Language models grow between their embedding and their readout."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor import InputError
from attractor.continual import grow, grown
from attractor.models import LanguageModel


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def made(cell: str, hidden: list[int], **options: Any) -> LanguageModel:
    """In double precision, with weights of scales other than those of the start."""
    model = LanguageModel(cell, 13, 5, hidden, generator=seeded(), **options).double()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=seeded(p.numel())).double())
    return model


def tokens(count: int, seed: int = 0) -> Tensor:
    return torch.randint(13, (3, count), generator=seeded(seed))


CASES: list[tuple[str, list[int], dict[str, Any]]] = [
    ("lstm", [6, 9, 4], {}),
    ("gru", [4, 16], {"weight_dropout": 0.4}),
    ("janet", [7], {"input_dropout": 0.3}),
]


@pytest.mark.parametrize(("cell", "hidden", "options"), CASES)
def test_a_wider_language_model_says_the_same_piece_after_piece(
    cell: str, hidden: list[int], options: dict[str, Any]
) -> None:
    model = made(cell, hidden, **options).eval()
    wide = grow(grow(model, 11, generator=seeded(1)), 14, generator=seeded(2))
    assert isinstance(wide, LanguageModel)
    layers: list[Any] = [getattr(layer, "layer", layer) for layer in wide.layers]
    assert [layer.hidden_size for layer in layers] == [max(14, n) for n in hidden]
    assert torch.equal(wide.embedding.weight, model.embedding.weight)
    state = other = None
    for piece in range(3):
        x = tokens(20, piece)
        said, state = model(x, state)
        again, other = wide(x, other)
        assert (said - again).abs().max().item() < 1e-12
    assert wide.train()(tokens(4))[0].isfinite().all()


def learn(model: Any) -> None:
    loss = F.cross_entropy(model(tokens(9))[0].flatten(0, 1), tokens(9, 5).flatten())
    torch.autograd.backward(loss)


def test_the_moments_of_a_language_model_are_carried() -> None:
    model: Any = made("gru", [4, 6])
    old = torch.optim.Adam(model.parameters(), lr=0.01)
    learn(model)
    old.step()
    growth = grown(model, 10, noise=0.0, generator=seeded(1))
    new = torch.optim.Adam(growth.model.parameters(), lr=0.01)
    assert growth.carry(model, old, new)
    wide: Any = growth.model
    for network in (model, wide):
        network.zero_grad()
        learn(network)
    assert torch.allclose(wide.embedding.weight.grad, model.embedding.weight.grad, atol=1e-12)
    kept, found = (o.state[m.embedding.weight] for o, m in ((old, model), (new, wide)))
    assert torch.equal(kept["exp_avg_sq"], found["exp_avg_sq"])
    assert new.state[wide.readout.weight]["exp_avg"].shape == (13, 10)


def test_a_tied_language_model_says_why_it_cannot_grow() -> None:
    with pytest.raises(InputError, match=r"whose readout is its own.* a tied one. Try tied=False"):
        grow(LanguageModel("gru", 13, 5, [7, 5], tied=True), 16)
