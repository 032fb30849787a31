"""What is recorded of where a run ran, and of its data."""

import json
import re
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from attractor.runs.data import checksum
from attractor.runs.environment import code, differences, environment, mixed, read, record
from attractor.tasks import CopyMemory, Digits
from attractor.tasks.streams import permuted_images


def test_all_that_decides_numbers_is_there() -> None:
    found = environment(3)
    assert found["threads"] == 3
    assert found["torch"] == torch.__version__
    assert re.fullmatch(r"[0-9a-f]{16}", found["source"])
    assert {"attractor", "python", "cpu", "processor", "system", "started"} <= set(found)


def test_a_checkout_has_its_commit() -> None:
    root = Path(__file__).parents[2]
    if (root / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{40}( and changes)?", code()["commit"])


def test_environments_are_appended(tmp_path: Path) -> None:
    assert record(tmp_path, {"torch": "1", "cores": 2}, None) == []
    assert record(tmp_path, {"torch": "1", "cores": 4}, 5) == []
    assert record(tmp_path, {"torch": "2", "cores": 4}, 8) == ["torch 1 and 2"]
    assert record(tmp_path, {"torch": "2", "cores": 4}, 9) == []
    assert read(tmp_path) == {
        "torch": "1",
        "cores": 2,
        "resumed": [
            {"step": 5, "torch": "1", "cores": 4},
            {"step": 8, "torch": "2", "cores": 4},
            {"step": 9, "torch": "2", "cores": 4},
        ],
    }


def test_a_damaged_environment_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("nonsense")
    assert record(tmp_path, {"torch": "1"}, 5) == []
    assert json.loads((tmp_path / "environment.json").read_text()) == {"torch": "1"}


def test_what_only_one_says_is_no_difference() -> None:
    assert differences({"torch": "1"}, {"numpy": "2"}) == []
    assert differences({"torch": "1", "data": "a"}, {"torch": "1", "data": "b"}) == ["data a and b"]


def test_versions_that_are_averaged_are_told() -> None:
    one, other = {"source": "a"}, {"source": "b"}
    assert mixed([one, one]) == ""
    assert "source a and b" in mixed([one, other])
    assert "source a and b" in mixed([one | {"resumed": [other]}])
    assert mixed([one | {"resumed": "nonsense"}]) == ""


def test_one_pixel_changes_the_checksum_of_data() -> None:
    task = Digits(order="rows")
    before = checksum(task)
    assert checksum(Digits(order="rows")) == before
    task.train.x.view(len(task.train.x), -1)[700, 28] += 1
    assert checksum(task) != before


def test_the_last_pixel_of_a_stream_counts() -> None:
    def made() -> object:
        g = torch.Generator().manual_seed(0)
        return permuted_images(dataset="digits", tasks=3, generator=g)

    stream, other = made(), made()
    assert checksum(stream) == checksum(other)
    stream[2].test.x[-1, -1] += 1  # type: ignore[index]
    assert checksum(stream) != checksum(other)


def test_views_of_the_same_memory_are_told_apart() -> None:
    x = torch.arange(6)
    assert checksum([x[:3], x[3:]]) != checksum([x[:3], x[:3]])
    assert checksum([x.view(2, 3)]) != checksum([x.view(3, 2)])


def test_what_is_drawn_has_no_data() -> None:
    assert checksum(CopyMemory(lag=5)) == checksum([])


def test_arrays_and_data_sets_of_torch_take_part_in_the_checksum() -> None:
    ones, zeros = torch.ones(3, 2), torch.zeros(3, 2)

    def as_array(t: Tensor) -> object:
        return {"x": t.numpy()}

    for wrap in (TensorDataset, as_array):
        assert checksum(wrap(ones)) == checksum(wrap(ones.clone()))
        assert checksum(wrap(ones)) != checksum(wrap(zeros))


def test_a_commit_that_leaves_the_package_alone_is_no_other_version() -> None:
    one = {"attractor": "1", "source": "a", "commit": "x"}
    assert mixed([one, {**one, "commit": "y"}]) == ""
    assert differences(one, {**one, "commit": "y"}) == []
    assert "source a and b" in mixed([one, {**one, "source": "b", "commit": "y"}])


def test_commits_tell_versions_apart_where_not_every_run_knows_its_source() -> None:
    old = {"attractor": "1", "commit": "x"}
    assert "commit x and y" in mixed([old, {**old, "commit": "y", "source": "a"}])
