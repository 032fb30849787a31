"""States survive JSON and safetensors as they were."""

import json
import math

import pytest
import torch
from torch import nn

from attractor.state import cloned, pack, unpack


def through(state: object) -> object:
    """A state after a file."""
    tensors, rest = pack(state)
    return unpack(tensors, json.loads(json.dumps(rest)))


@pytest.mark.parametrize(
    "state",
    [
        None,
        {"a": [1, 2.5, True, None, "text"], "b": {"c": (1, (2, [3]))}},
        [math.inf, -math.inf, {"deep": [math.inf]}],
        {0: {"x": 1}, (1, "two"): 2, None: 3, True: 4},
        {"$tensor": "a text of the user's", "$tuple": [1]},
        {"one": {"$float": "inf"}},
        {},
        [],
        (),
    ],
)
def test_plain_values_come_back_as_they_were(state: object) -> None:
    found = through(state)
    assert found == state
    assert repr(found) == repr(state)


def test_nan_comes_back() -> None:
    found = through({"loss": math.nan})
    assert isinstance(found, dict)
    assert math.isnan(found["loss"])


def test_tensors_come_back_under_their_paths() -> None:
    state = {"model": {"w": torch.ones(2, 3)}, "many": [torch.tensor(3, dtype=torch.uint8)]}
    tensors, _ = pack(state)
    assert sorted(tensors) == ["many/0", "model/w"]
    found: dict[str, dict[str, torch.Tensor]] = unpack(*pack(state))
    assert torch.equal(found["model"]["w"], torch.ones(2, 3))


def test_keys_with_slashes_do_not_meet() -> None:
    state = {"a": {"b/c": torch.tensor(1)}, "a/b": {"c": torch.tensor(2)}}
    found = unpack(*pack(state))
    assert (int(found["a"]["b/c"]), int(found["a/b"]["c"])) == (1, 2)


def test_one_tensor_in_two_places_stays_one() -> None:
    shared = torch.ones(2)
    tensors, rest = pack({"a": shared, "b": [shared]})
    assert len(tensors) == 1
    found = unpack(tensors, rest)
    assert found["a"] is found["b"][0]


def test_clones_do_not_change_with_their_originals() -> None:
    weight = torch.ones(2)
    copy = cloned({"w": weight, "n": (1, [weight])})
    weight.add_(1)
    assert copy["w"].tolist() == copy["n"][1][0].tolist() == [1, 1]


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_an_optimiser_goes_on_as_if_it_had_not_been_packed(kind: type) -> None:
    def steps(model: nn.Module, optimiser: torch.optim.Optimizer, count: int) -> None:
        for number in range(count):
            optimiser.zero_grad()
            model(torch.full((1, 3), 0.5 + number)).sum().backward()
            optimiser.step()

    torch.manual_seed(0)
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    first = kind(one.parameters(), lr=0.1, weight_decay=0.2)
    steps(one, first, 3)
    other.load_state_dict(one.state_dict())
    second = kind(other.parameters(), lr=0.7)
    second.load_state_dict(cloned(through(first.state_dict())))
    steps(one, first, 2)
    steps(other, second, 2)
    assert torch.equal(one.weight, other.weight)


@pytest.mark.parametrize(("state", "what"), [({"a": {1, 2}}, "set at a"), (object(), "its root")])
def test_what_no_file_can_hold_is_named(state: object, what: str) -> None:
    with pytest.raises(TypeError, match=f"expected tensors and plain values .*{what}"):
        pack(state)


def test_odd_keys_are_refused() -> None:
    with pytest.raises(TypeError, match="a whole number as a key, but got 1.5"):
        pack({1.5: 1})
