"""Sequences of several lengths, as rows."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
)

from attractor.cells import Recurrent
from attractor.cells.kernels import STATUS
from attractor.cells.layer import recurrent
from attractor.cells.layer.ragged import Ragged
from attractor.errors import InputError
from contracts.cells import seeded

LENGTHS = [7, 7, 5, 4, 4, 4, 1]


def test_rows_are_those_of_torch() -> None:
    x = torch.randn(7, len(LENGTHS), 2, 3, generator=seeded(1))
    packed = pack_padded_sequence(x, torch.tensor(LENGTHS))
    ragged = Ragged(packed.batch_sizes.tolist())
    padded, lengths = pad_packed_sequence(packed)
    assert ragged.lengths.tolist() == lengths.tolist() == LENGTHS
    assert (ragged.steps, ragged.batch) == (7, 7)
    assert torch.equal(ragged.pad(packed.data), padded)
    assert torch.equal(ragged.pack(x), packed.data)
    turned = pack_sequence([x[:n, row].flip(0) for row, n in enumerate(LENGTHS)])
    assert torch.equal(ragged.reverse(packed.data), turned.data)
    assert torch.equal(ragged.reverse(turned.data), packed.data)


def answers(layer: nn.Module, x: Tensor, lengths: list[int], *, sort: bool) -> list[Tensor]:
    """Outputs, last states and the gradients of x, the initial state and the weights."""
    x = x.clone().requires_grad_()
    start = [0.1 * torch.ones(4, len(lengths), 6, dtype=x.dtype).cumsum(i) for i in (1, 2)]
    start = [s.requires_grad_() for s in start]
    given = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=not sort)
    output, (h, c) = layer(given, tuple(start))
    assert isinstance(output, PackedSequence)
    made = [pad_packed_sequence(output)[0], h, c]
    loss = sum((m * m.detach().cos().cumsum(0)).sum() for m in made)
    return [*made, *torch.autograd.grad(loss, [x, *start, *layer.parameters()])]


@pytest.mark.parametrize("way", ["kernel", "loop"])
@pytest.mark.parametrize("sort", [False, True])
def test_packed_layers_in_both_directions_are_those_of_torch(
    way: str, sort: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "kernel" and STATUS.path is None:
        pytest.skip(f"kernels are {STATUS}")
    options: Any = {"num_layers": 2, "bidirectional": True, "dtype": torch.float64}
    theirs, ours = nn.LSTM(3, 6, **options), Recurrent("lstm", 3, 6, **options)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(7, len(LENGTHS), 3, generator=seeded(2), dtype=torch.float64)
    lengths = [LENGTHS[i] for i in (3, 6, 0, 2, 1, 5, 4)] if sort else LENGTHS
    if way == "loop":
        monkeypatch.setattr(recurrent, "fused", lambda *_: None)
    else:
        monkeypatch.setattr(Ragged, "pad", lambda *_: pytest.fail("a kernel needs no padding"))
        monkeypatch.setattr(Ragged, "pack", lambda *_: pytest.fail("nor what takes it out"))
    found = answers(ours, x, lengths, sort=sort)
    wanted = answers(theirs, x, lengths, sort=sort)
    for one, other in zip(found[:6], wanted[:6], strict=True):  # all but the weights' gradients
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    monkeypatch.undo()
    monkeypatch.setattr(recurrent, "fused", lambda *_: None)
    for one, other in zip(found, answers(ours, x, lengths, sort=sort), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", ["gru", "lstm", "nru"])
def test_lengths_beyond_the_end_are_refused_before_memory_is_read(cell: str) -> None:
    beyond = pack_padded_sequence(torch.zeros(6, 10, 2), torch.full((10,), 60))
    text = r"as many rows as its batch_sizes tell of, 600, but it has 60\. Try lengths of at most"
    with pytest.raises(InputError, match=text):
        Recurrent(cell, 2, 400)(beyond)


@pytest.mark.parametrize("sizes", [[1, 3], [4, 0], [5, -1]])
def test_batch_sizes_that_grow_or_end_are_refused(sizes: list[int]) -> None:
    packed = PackedSequence(torch.zeros(4, 2), torch.tensor(sizes))
    with pytest.raises(InputError, match=r"above zero and never to grow, but got \[.*Try pack_seq"):
        Recurrent("lstm", 2, 64)(packed)


def test_an_order_of_other_sequences_is_refused() -> None:
    order = torch.tensor([0])
    packed = PackedSequence(torch.zeros(10, 3), torch.tensor([5, 5]), order, order)
    with pytest.raises(InputError, match=r"orders its 5 sequences, but .* shape \(1,\)\. Try"):
        Recurrent("lstm", 3, 64)(packed)


def test_rows_of_more_than_features_are_refused() -> None:
    packed = pack_sequence([torch.zeros(5, 40, 2), torch.zeros(3, 40, 2)])
    with pytest.raises(InputError, match=r"\(rows, features\), but got .* \(8, 40, 2\)\. Try"):
        Recurrent("gru", 2, 4)(packed)
