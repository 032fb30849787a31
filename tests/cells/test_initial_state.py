"""A learned initial state, for every cell."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence
from torch.utils._pytree import tree_leaves, tree_map

import attractor
from attractor.cells import CELLS, Recurrent, batch_norm, layer_norm, zoneout
from attractor.errors import InputError
from contracts.cells import OPTIONS, inputs, perturb, seeded

close = torch.testing.assert_close
LEARNED = {
    "clockwork": ["h"],
    "decaynet": ["h", "c"],
    "decaynet_gru": ["h"],
    "dntm": ["h", "c", "content"],
    "eurnn": ["re", "im"],
    "ntm": ["h", "c", "memory"],
    "stat_ru": ["m"],
    "tardis": ["h", "c", "content"],
}
"""What is learned of cells whose state has counts, or names of its own."""

COMPOSED: dict[str, Any] = {
    "zoneout and layer norm": zoneout(layer_norm("lstm"), 0.3, 0.1),
    "batch norm": batch_norm("gru", 4),
}


def made(cell: Any, **options: Any) -> Recurrent:
    g = seeded()
    options = (OPTIONS.get(cell, {}) if isinstance(cell, str) else {}) | options
    return perturb(Recurrent(cell, 3, 8, learn_initial_state=True, generator=g, **options), g)


@pytest.mark.parametrize("cell", [*sorted(CELLS), *COMPOSED])
def test_is_the_state_given_by_hand(cell: str) -> None:
    layer = made(COMPOSED.get(cell, cell), num_layers=2, bidirectional=True).eval()
    assert layer.initial is not None
    x = inputs(5, 3)
    plain = Recurrent(
        COMPOSED.get(cell, cell), 3, 8, 2, bidirectional=True, **OPTIONS.get(cell, {})
    )
    plain.load_state_dict(
        {name: value for name, value in layer.state_dict().items() if "initial" not in name}
    )
    start = layer.initial_state(3)
    close(tree_leaves(layer(x)), tree_leaves(layer(x, start)))
    by_hand = plain.eval().initial_state(3)
    leaves, spec = torch.utils._pytree.tree_flatten(by_hand)
    names = LEARNED.get(cell)
    for index, one in enumerate(layer.initial):
        found = [name for name, _ in one.named_parameters()]
        assert names is None or found == names
        for name, value in one.named_parameters():
            leaves[plain.cells[0].state_names().index(name)][index] = value.detach()  # type: ignore
    if cell != "decaynet":
        by_hand = torch.utils._pytree.tree_unflatten(leaves, spec)
        close(tree_leaves(plain(x, by_hand)), tree_leaves(layer(x)))


@pytest.mark.parametrize("cell", [*sorted(CELLS), *COMPOSED])
def test_gets_gradients_and_starts_as_the_cell(cell: str) -> None:
    layer = made(COMPOSED.get(cell, cell))
    output, state = layer(inputs(4, 3))
    (output.sum() + sum(leaf.sum() for leaf in tree_leaves(state))).backward()
    assert layer.initial is not None
    assert all(p.grad is not None and p.grad.any() for p in layer.initial.parameters())
    fresh = Recurrent(
        COMPOSED.get(cell, cell), 3, 8, learn_initial_state=True, **OPTIONS.get(cell, {})
    )
    stack: Any = fresh.cells
    close(
        tree_leaves(fresh.initial_state(2)),
        [s[None] for s in tree_leaves(stack[0].initial_state(2))],
    )


def test_packed_unbatched_and_empty() -> None:
    layer = made("lstm", bidirectional=True).eval()
    sequences = [inputs(n, seed=n) for n in (2, 5, 1)]
    output, _ = layer(pack_sequence(sequences, enforce_sorted=False))
    for x, y in zip(sequences, unpack_sequence(output), strict=True):
        close(y, layer(x)[0])
    assert layer(inputs(3, 0))[0].shape == (3, 0, 16)


def test_a_given_state_is_taken_in_its_place() -> None:
    layer = made("gru").eval()
    x = inputs(5, 2)
    zero = tree_map(torch.zeros_like, layer.initial_state(2))
    assert not torch.allclose(layer(x, zero)[0], layer(x)[0])


def test_learns_to_say_what_no_input_tells() -> None:
    """Without input, only the start can tell a target from another."""
    torch.manual_seed(0)
    layer = Recurrent("rnn", 1, 4, learn_initial_state=True)
    assert layer.initial is not None
    optimiser = torch.optim.SGD(layer.initial.parameters(), 0.5)
    target = torch.tensor([0.3, -0.2, 0.1, 0.0])
    x = torch.zeros(1, 1, 1)
    losses = []
    for _ in range(1000):
        loss = (layer(x)[0][0, 0] - target).square().sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


@pytest.mark.filterwarnings("ignore")
def test_is_exported() -> None:
    layer = made("gru").eval()
    time = {0: torch.export.Dim("time", min=2, max=4096)}
    exported = torch.export.export(layer, (inputs(4, 2),), dynamic_shapes={"input": time})
    close(tree_leaves(exported.module()(inputs(7, 2))), tree_leaves(layer(inputs(7, 2))))


def test_torchs_layers_have_none() -> None:
    layer = Recurrent("lstm", 3, 8, learn_initial_state=True)
    with pytest.raises(InputError, match="torch layer of the same sizes and options"):
        attractor.copy_to_torch(layer, nn.LSTM(3, 8))
    assert "learn_initial_state=True" in repr(layer)
