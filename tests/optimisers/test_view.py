"""A view knows of which tensors a row of coordinates is, whole or in part."""

from typing import Any

import pytest
import torch
from torch import nn

from attractor.errors import InputError
from attractor.meta.networks import Attention
from attractor.optimisers import Anytime, View, attach
from attractor.optimisers.view import tables

TENSORS = [torch.zeros(2, 3), torch.zeros(()), torch.zeros(0, 4), torch.zeros(2)]


def test_all_of_a_network() -> None:
    row = torch.arange(18.0).view(2, 9)
    view = View.of(TENSORS)
    assert view.where == slice(0, 9)
    assert [part[0].tolist() for part in view.split(row)] == [[0, 1, 2, 3, 4, 5], [6], [7, 8]]
    tensors = view.tensors(row)
    assert [tuple(t.shape) for t in tensors] == [(2, 2, 3), (2,), (2, 0, 4), (2, 2)]
    assert tensors[0][1, 1].tolist() == [12, 13, 14]


def test_a_part_is_cut_at_the_borders_of_tensors() -> None:
    part = View.of(TENSORS).at(slice(4, 8))
    assert part.where == slice(4, 8)
    assert [p.tolist() for p in part.split(torch.arange(4.0)[None])] == [[[0, 1]], [[2]], [[3]]]
    assert part.at(slice(1, 3)).where == slice(5, 7)


def test_networks_say_which_parameters_are_tables() -> None:
    """Embeddings are, and what a module names: the places of attention come first of its own."""
    model = nn.Sequential(nn.Embedding(9, 4), Attention([4], 2, steps=5, width=6))
    names = [name for name, _ in model.named_parameters()]
    assert [names[place] for place in tables(model)] == ["0.weight", "1.places"]
    optimiser: Any = attach(Anytime(), model)
    assert optimiser.param_groups[0]["tables"] == tables(model)
    setattr(model[1], "table_parameters", ("place",))  # noqa: B010
    with pytest.raises(InputError, match="parameter of Attention in table_.*Did you mean 'places'"):
        tables(model)


def test_nothing_has_no_parts() -> None:
    view = View.of([torch.zeros(0, 3), torch.zeros(2)])
    assert view.at(slice(0, 0)).split(torch.zeros(1, 0)) == []
