"""Networks that grow say the same, and can go on learning."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor import InputError, Recurrent
from attractor.cells import CELLS, layer_norm, zoneout
from attractor.continual import deepen, grow, grown, more_answers
from attractor.continual.growing.cells import REFUSED, ROLES
from attractor.continual.growing.widening import Wide, zero_sum
from attractor.models import HCN, MLP, MultiHead, ResMLP, SequenceClassifier, SequenceTagger

WIDE = sorted(key for key, cell in CELLS.items() if cell.__name__ in ROLES)
OPTIONS: dict[str, dict[str, Any]] = {"decaynet": {"length": 30}}


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def shaken(model: nn.Module, by: float = 0.3) -> nn.Module:
    """In double precision, with weights of scales other than those of the start."""
    g = seeded(5)
    model = model.double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(by * torch.randn(p.shape, generator=g).double())
    return model


def far(one: nn.Module, other: nn.Module, *shape: int) -> float:
    x = torch.randn(*shape, generator=seeded(9)).double()
    with torch.no_grad():
        said = other(x)
        assert said.abs().max() < 1e3  # of what explodes, nothing is told
        return float((one(x) - said).abs().max())


def by(key: str) -> float:
    """How far weights can go before rounding is blown up: an NRU has no bounds."""
    return 0.02 if key == "nru" else 0.3


def test_every_cell_can_grow_or_says_why_not() -> None:
    assert {cell.__name__ for cell in CELLS.values()} == {*ROLES, *REFUSED}
    for key, cell in CELLS.items():
        if cell.__name__ in REFUSED:
            with pytest.raises(InputError, match=REFUSED[cell.__name__]):
                grow(SequenceTagger(key, 3, 8, 2), 16)


@pytest.mark.parametrize("key", WIDE)
def test_a_wider_cell_says_the_same_for_whole_sequences(key: str) -> None:
    model = shaken(
        SequenceTagger(key, 3, 8, 4, generator=seeded(), **OPTIONS.get(key, {})), by(key)
    )
    torch.manual_seed(0)
    wider = grow(model, hidden_size=19, generator=seeded(1))
    assert far(wider, model, 5, 30, 3) < 1e-12
    assert far(grow(wider, hidden_size=31, generator=seeded(2)), model, 5, 30, 3) < 1e-12
    assert [p.shape for p in model.parameters()] != [p.shape for p in wider.parameters()]


@pytest.mark.parametrize("key", [key for key in WIDE if key not in ("ntm", "dntm", "tardis")])
def test_layers_and_directions_grow_together(key: str) -> None:
    options: dict[str, Any] = {"num_layers": 3, "bidirectional": True, **OPTIONS.get(key, {})}
    model = shaken(SequenceClassifier(key, 3, 6, 4, generator=seeded(), **options), by(key))
    assert far(grow(model, 11, generator=seeded(1)), model, 5, 30, 3) < 1e-12
    options["bidirectional"] = False
    model = shaken(SequenceTagger(key, 3, 6, 4, generator=seeded(), **options), by(key))
    assert far(grow(model, 11, generator=seeded(1)), model, 5, 30, 3) < 1e-12


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("lstm", {"peepholes": True}),
        ("lstm", {"proj_size": 3}),
        ("lstm", {"bias": False}),
        ("lstm", {"learn_initial_state": True}),
        ("gru", {"reset": "after"}),
        ("fastgrnn", {"shared": True}),
        ("rnn", {"nonlinearity": "relu"}),
        ("nru", {"heads_read_input": False}),
    ],
)
def test_options_of_cells_grow_too(key: str, options: dict[str, Any]) -> None:
    model = shaken(SequenceTagger(key, 3, 8, 4, generator=seeded(), **options), by(key))
    assert far(grow(model, 13, generator=seeded(1)), model, 5, 30, 3) < 1e-12


def test_zoneout_grows_and_normalisation_is_refused() -> None:
    model = shaken(SequenceTagger(zoneout("lstm", 0.5, 0.1), 3, 8, 4))
    assert far(grow(model, 13), model, 5, 30, 3) < 1e-12
    with pytest.raises(InputError, match="whose normalisation counts a copied unit twice"):
        grow(SequenceTagger(layer_norm("lstm"), 3, 8, 4), 13)
    with pytest.raises(InputError, match="counts a copied unit twice"):
        grow(SequenceTagger("rnn", 3, 8, 4, layer_norm=True), 13)


@pytest.mark.parametrize(
    "model",
    [
        MLP([5, 8, 6, 3]),
        MLP([5, 8, 8, 3], activation="tanh"),
        HCN([5, 8, 8, 8, 3]),
        ResMLP([5, 8, 8, 3]),
        nn.Sequential(nn.Flatten(), MLP([5, 7, 3])),
    ],
)
def test_networks_of_layers_grow(model: nn.Module) -> None:
    model = shaken(model)
    wider = grow(grow(model, 11), 17)
    assert far(wider, model, 9, 5) < 1e-12
    assert max(p.shape[0] for p in wider.parameters()) == 17


def test_heads_and_embeddings_are_kept() -> None:
    model = shaken(MultiHead(MLP([5, 8, 4]), [(0, 1), (2, 3)]))
    wider, x, task = grow(model, 11), torch.randn(6, 5).double(), torch.tensor([0, 1, 0, 1, 1, 0])
    assert torch.allclose(wider(x, task), model(x, task), atol=1e-12)
    words = nn.Sequential(nn.Embedding(9, 5), SequenceTagger("gru", 5, 6, 9)).double()
    tokens = torch.randint(9, (3, 20))
    assert torch.allclose(grow(words, 10)(tokens), words(tokens), atol=1e-12)


@pytest.mark.parametrize("growths", [1, 3])
def test_noise_makes_the_recurrent_matrix_regular(growths: int) -> None:
    model = shaken(Recurrent("lstm", 3, 8, generator=seeded()))
    plain, noisy = model, model
    for growth in range(growths):
        plain = grow(plain, 16 * 2**growth, noise=0.0, generator=seeded(growth))
        noisy = grow(noisy, 16 * 2**growth, generator=seeded(growth))
    for model, regular in ((plain, False), (noisy, True)):
        cell: Any = model.cells[0]  # type: ignore[index]
        for gate in cell.weight_hh.detach().chunk(4):
            assert (np.linalg.cond(gate.numpy()) < 1e8) == regular


def test_noise_is_zero_in_sum_and_as_large_as_the_weights() -> None:
    index = torch.tensor([0, 1, 2, 0, 2, 2])
    wide = Wide(index, torch.bincount(index)[index])
    noise = zero_sum(torch.zeros(400, 6).double(), 1, wide, seeded())
    sums = torch.zeros(400, 3).double().index_add(1, index, noise)
    assert sums.abs().max() < 1e-15
    assert (noise[:, 1] == 0).all()
    # of two, plus and minus U(0, 1) - 1/2
    assert float(noise[:, 0].std()) == pytest.approx(12**-0.5, rel=0.1)


@pytest.mark.parametrize("kind", ["adam", "momentum"])
def test_moments_are_those_that_the_wide_network_would_have_had(kind: str) -> None:
    """Without noise, the gradients of copies are shares of what the unit's was."""

    def make(model: nn.Module) -> torch.optim.Optimizer:
        if kind == "adam":
            return torch.optim.Adam(model.parameters(), 1e-12)  # too small to move anything
        return torch.optim.SGD(model.parameters(), 1e-12, momentum=0.9)

    def learn(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        g = seeded(3)
        for _ in range(4):
            x, y = torch.randn(6, 7, 3, generator=g).double(), torch.randint(4, (6,), generator=g)
            optimiser.zero_grad()
            torch.autograd.backward(F.cross_entropy(model(x), y))
            optimiser.step()

    model = shaken(SequenceClassifier("gru", 3, 5, 4, num_layers=2, generator=seeded()))
    growth = grown(model, 12, noise=0.0, generator=seeded(1))
    wide, old = growth.model, make(model)
    learn(model, old)
    new, expected = make(wide), make(wide)
    assert growth.carry(model, old, new)
    learn(wide, expected)
    for p in wide.parameters():
        assert set(new.state[p]) == set(expected.state[p])
        for name, value in expected.state[p].items():
            found: Tensor = new.state[p][name]
            assert torch.allclose(found, value, rtol=1e-6, atol=1e-12), name


def test_an_optimiser_of_another_kind_begins_anew() -> None:
    model = MLP([3, 4, 2])
    growth, sgd = grown(model, 6), torch.optim.SGD(model.parameters(), 0.1)
    assert not growth.carry(model, sgd, torch.optim.Adam(growth.model.parameters()))


@pytest.mark.parametrize("model", [MLP([5, 8, 3]), HCN([5, 8, 8, 3]), ResMLP([5, 8, 3])])
def test_deeper_networks_say_the_same_and_learn(model: nn.Module) -> None:
    model = shaken(model)
    deep = deepen(deepen(model))
    assert far(deep, model, 9, 5) < 1e-12
    assert len(list(deep.parameters())) > len(list(model.parameters()))
    loss = F.cross_entropy(deep(torch.randn(9, 5).double()), torch.arange(9) % 3)
    torch.autograd.backward(loss)
    assert all(p.grad is not None for p in deep.parameters())


def test_copies_part_when_they_learn() -> None:
    model = shaken(SequenceClassifier("lstm", 3, 4, 2, generator=seeded()))
    wide: Any = grow(model, 8, generator=seeded(1))
    sgd = torch.optim.SGD(wide.parameters(), 0.1)
    loss = F.cross_entropy(wide(torch.randn(6, 7, 3).double()), torch.arange(6) % 2)
    torch.autograd.backward(loss)
    sgd.step()
    rows = wide.recurrent.cells[0].weight_ih
    assert len(torch.unique(rows.detach(), dim=0)) == len(rows)


def test_more_answers_keep_those_that_were_there() -> None:
    model = shaken(SequenceClassifier("gru", 3, 5, 2))
    wider = more_answers(model, 4, generator=seeded()).model
    x = torch.randn(6, 7, 3).double()
    assert torch.allclose(wider(x)[:, :2], model(x), atol=1e-12)
    assert wider(x).shape == (6, 4)
    with pytest.raises(InputError, match="more outputs than the 2 that the network has, but got 2"):
        more_answers(model, 2)


def test_new_answers_start_as_those_of_a_linear_layer_do() -> None:
    wider: Any = more_answers(MLP([3, 25, 2]), 400, generator=seeded()).model
    new = wider.layers[-1].weight[2:].detach().numpy()
    assert new.min() == pytest.approx(-0.2, abs=1e-3)  # one over the root of 25 inputs
    assert new.max() == pytest.approx(0.2, abs=1e-3)
    assert new.mean() == pytest.approx(0, abs=5e-3)


def test_what_cannot_grow_is_told() -> None:
    with pytest.raises(InputError, match="hidden_size above that of the network, but got 4"):
        grow(MLP([3, 4, 2]), 4)
    with pytest.raises(InputError, match="whose units can be copied .* but got Conv2d"):
        grow(nn.Conv2d(1, 1, 1), 4)
    with pytest.raises(InputError, match="passes its 8 units one by one"):
        grow(SequenceTagger("sru", 8, 8, 2), 16)
    with pytest.raises(InputError, match="to keep another number of units than it has inputs, 16"):
        grow(SequenceTagger("sru", 16, 8, 2), 16)
    with pytest.raises(InputError, match="an MLP of ReLUs"):
        deepen(MLP([3, 4, 2], activation="tanh"))
