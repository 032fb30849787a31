"""A state in one file: it comes back as it was, whatever its tensors share and are called."""

from pathlib import Path

import torch

from attractor.runs.checkpoint import read_state, write_state


def test_parts_of_one_tensor_come_back_apart(tmp_path: Path) -> None:
    whole = torch.arange(6.0)
    state = {"whole": whole, "first": whole[:4], "last": whole[2:], "every other": whole[::2]}
    write_state(tmp_path / "state", state)
    found = read_state(tmp_path / "state")
    assert found is not None
    assert {name: part.tolist() for name, part in found.items()} == {
        name: part.tolist() for name, part in state.items()
    }
    found["whole"].zero_()
    assert found["last"].tolist() == [2.0, 3.0, 4.0, 5.0]


def test_the_order_in_which_tensors_are_named_is_nothing_to_the_checksum(tmp_path: Path) -> None:
    state = {"b": torch.ones(3), "c": torch.ones(2, dtype=torch.uint8), "a": torch.ones(1).double()}
    for names in (["b", "c", "a"], ["c", "b", "a"], ["a", "b", "c"]):
        write_state(tmp_path / "state", {name: state[name] for name in names})
        found = read_state(tmp_path / "state")
        assert found is not None
        assert all(found[name].equal(tensor) for name, tensor in state.items())
