"""Layers of different sizes and kinds: `Recurrent` from a list."""

import copy
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence
from torch.utils._pytree import tree_leaves, tree_map

import attractor
from attractor.cells import JANETCell, Recurrent, layer_norm, unroll, zoneout
from attractor.errors import InputError
from attractor.models import make_model
from contracts.cells import inputs, perturb, seeded

close = torch.testing.assert_close
MIXED: list[Any] = [
    zoneout("lstm", 0.2, 0.1),
    {"cell": "nru", "memory_size": 16, "average_heads": True},
    partial(JANETCell, beta=0.3),
    {"cell": "tardis", "cells": 3, "address_size": 3, "content_size": 4, "attention_size": 5},
]
SIZES = [8, 5, 7, 4]


def make(**options: Any) -> Recurrent:
    g = seeded()
    return perturb(Recurrent(MIXED, 3, SIZES, generator=g, **options), g).eval()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_each_layer_reads_the_one_below(bidirectional: bool) -> None:
    layer = make(bidirectional=bidirectional)
    x = inputs(6, 3)
    output, state, states = layer(x, return_states=True)
    both = 2 if bidirectional else 1
    assert layer.output_size == both * 4
    assert layer.hidden_sizes == (8, 5, 7, 4)
    assert layer.num_layers == 4
    assert len(state) == len(states) == 4
    for index, size in enumerate(SIZES):
        one = Recurrent(MIXED[index : index + 1], x.shape[-1], size, bidirectional=bidirectional)
        for mine, theirs in zip(one.cells, layer.cells[both * index :], strict=False):
            mine.load_state_dict(theirs.state_dict())
        x, own, every = one.eval()(x, return_states=True)
        close(tree_leaves(state[index]), tree_leaves(own))
        close(tree_leaves(states[index]), tree_leaves(every))
        assert all(leaf.shape[:2] == (both, 3) for leaf in tree_leaves(own))
    close(output, x)


def test_a_list_of_one_kind_is_the_stack() -> None:
    stack = Recurrent("gru", 3, 6, num_layers=2, generator=seeded())
    listed = Recurrent(["gru", "gru"], 3, [6, 6], generator=seeded())
    sized = attractor.GRU(3, [6, 6], generator=seeded())
    x = inputs(5, 2)
    output, h = stack(x)
    for layer in (listed, sized):
        assert list(layer.state_dict()) == list(stack.state_dict())
        same, states = layer(x)
        close(same, output)
        assert isinstance(states, tuple)
        close(torch.cat(states), h)


def test_packed_sequences_from_a_state() -> None:
    layer = make(bidirectional=True)
    lengths = [2, 5, 1, 6]
    sequences = [inputs(n, seed=10 + i) for i, n in enumerate(lengths)]
    start = tree_map(lambda s: 0.1 + s, layer(inputs(1, 4))[1])
    output, state, states = layer(
        pack_sequence(sequences, enforce_sorted=False), start, return_states=True
    )
    for row, (x, y) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        alone, own, every = layer(x, tree_map(lambda s, r=row: s[:, r], start), return_states=True)
        close(y, alone)
        close([leaf[:, row] for leaf in tree_leaves(state)], tree_leaves(own))
        for ragged, rectangular in zip(tree_leaves(states), tree_leaves(every), strict=True):
            close(ragged[: len(x), :, row], rectangular)


def test_each_direction_starts_from_its_own_part_of_a_state() -> None:
    layer = Recurrent(["gru", "lstm"], 3, [4, 5], bidirectional=True, generator=seeded()).eval()
    g, x = seeded(7), inputs(6, 2)
    start = tree_map(lambda s: torch.randn(s.shape, generator=g), layer.initial_state(2))
    output, state = layer(x, start)
    cells: Any = layer.cells
    for index in range(2):
        outputs = []
        for direction in range(2):
            cell = cells[2 * index + direction]
            seen = x.flip(0) if direction else x
            begin = tree_map(lambda s, d=direction: s[d], start[index])
            y, last, _ = unroll(cell, cell.prepare(seen), begin)
            outputs.append(y.flip(0) if direction else y)
            ends = tree_map(lambda s, d=direction: s[d], state[index])
            close(tree_leaves(ends), tree_leaves(last))
        x = torch.cat(outputs, -1)
    close(output, x)


def test_pieces_are_the_whole_and_copies_answer_alike() -> None:
    layer = make(batch_first=True)
    x = inputs(2, 7)
    whole, last = layer(x)
    first, state = layer(x[:, :4])
    second, end = layer(x[:, 4:], state)
    close(torch.cat([first, second], 1), whole)
    close(tree_leaves(end), tree_leaves(last))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        close(tree_leaves(other(x)), tree_leaves(layer(x)))
    close(tree_leaves(layer(x, layer.initial_state(2))), tree_leaves(layer(x)))


@pytest.mark.filterwarnings("ignore")
def test_is_exported_with_any_length() -> None:
    layer = Recurrent(["lstm", "janet"], 3, [8, 5], generator=seeded()).eval()
    time = {0: torch.export.Dim("time", min=2, max=4096)}
    exported = torch.export.export(layer, (inputs(4, 2),), dynamic_shapes={"input": time})
    x = inputs(9, 2)
    close(tree_leaves(exported.module()(x)), tree_leaves(layer(x)))


def test_gradients_and_dropout_between_layers() -> None:
    layer = Recurrent(["lstm", "gru"], 3, [8, 5], dropout=0.5)
    output, _ = layer(inputs(4, 2))
    output.sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in layer.parameters())
    assert not torch.equal(layer(inputs(4, 2))[0], layer(inputs(4, 2))[0])


def test_options_are_for_all_layers_or_for_one() -> None:
    layer: Any = Recurrent(["lstm", {"cell": "gru", "t_max": 9}], 3, 4, t_max=50, bias=True)
    assert layer.cells[0].bias[4:8].max() > 2.2
    assert layer.cells[1].bias[4:8].min() >= -2.0795  # log 8
    without: Any = Recurrent(["lstm", "gru"], 3, 4, bias=False)
    assert [cell.bias for cell in without.cells] == [None, None]
    assert isinstance(Recurrent([layer_norm("lstm")], 3, 4)(inputs(2, 1))[1], tuple)


def test_torch_checkpoints_load_where_the_layers_are_torchs() -> None:
    theirs = nn.LSTM(3, 4, num_layers=2)
    ours = Recurrent("lstm", 3, [4, 4])
    ours.load_state_dict(theirs.state_dict())
    close(ours(inputs(5, 2))[0], theirs(inputs(5, 2))[0])
    attractor.copy_from_torch(ours, theirs)
    attractor.copy_to_torch(ours, nn.LSTM(3, 4, num_layers=2))
    uneven = Recurrent("lstm", 3, [5, 4])
    tables: Any = [{"cell": "lstm"}, {"cell": "lstm", "peepholes": True}]
    for other in (uneven, Recurrent(tables, 3, 4)):
        with pytest.raises(InputError, match="torch layer of the same sizes and options"):
            attractor.copy_to_torch(other, theirs)
    with pytest.raises(InputError, match="torch layer of the same sizes and options"):
        attractor.copy_to_torch(Recurrent(["lstm", "rnn"], 3, 4), theirs)


def test_by_configuration() -> None:
    spec: dict[str, Any] = {"cell": ["lstm", {"cell": "nru", "memory_size": 16}], "hidden": [8, 4]}
    model: Any = make_model(spec, [3], 5, generator=seeded())
    assert model(torch.zeros(2, 6, 3)).shape == (2, 5)
    assert [type(cell).__name__ for cell in model.recurrent.cells] == ["LSTMCell", "NRUCell"]
    assert model.recurrent.hidden_sizes == (8, 4)
    tables = [{"cell": "gru", "reset": "after"}, "lstm"]
    spec = {"cell": tables, "hidden": [8, 4], "compose": {"layer_norm": True}}
    normal: Any = make_model(spec, [3], 5)
    assert normal.recurrent.cells[0].cell.reset == "after"
    assert [type(cell).__name__ for cell in normal.recurrent.cells] == ["LayerNormCell"] * 2
    alike: Any = make_model({"cell": "gru", "hidden": [4, 4]}, [3], 5)
    assert alike.recurrent(torch.zeros(2, 6, 3))[1].shape == (2, 2, 4)
    with pytest.raises(InputError, match="hidden_size or hidden for the recurrent network"):
        make_model({"cell": "gru", "hidden": [4, 3], "hidden_size": 4}, [3], 5)


@pytest.mark.parametrize(
    ("cell", "size", "layers", "text"),
    [
        (["lstm", "gru"], [4, 4, 4], 1, "as many entries in cell as in hidden_size, but got 2 and"),
        (["lstm", "gru"], 4, 3, "cell to have an entry for each layer, but got 2 and num_layers=3"),
        ("lstm", [], 1, "hidden_size to have an entry for each layer, but got 0"),
        ([{"heads": 1}], 4, 1, "table of a layer to name its cell, but got {'heads': 1}"),
        (["lstm", {"cell": "gru", "peepholes": True}], 4, 1, "known option of GRUCell"),
        (["lstm", "nope"], 4, 1, "known cell"),
        ("lstm", [4, 0], 1, "hidden_size to be a whole number of at least 1, but got 0"),
    ],
)
def test_what_does_not_fit(cell: Any, size: Any, layers: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Recurrent(cell, 3, size, layers)


def test_a_state_of_another_form() -> None:
    layer = Recurrent(["lstm", "gru"], 3, [8, 5])
    with pytest.raises(InputError, match=r"state of shape \(1, 2, 8\) and \(1, 2, 8\) and \(1, 2"):
        layer(inputs(4, 2), torch.zeros(1, 2, 8))
    assert "3, [8, 5], num_layers=2" in repr(layer)
