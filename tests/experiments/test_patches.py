"""Features of patches in configurations: computed once, of bytes, and without classes."""

import json
from pathlib import Path

import pytest
import torch

from attractor.errors import InputError
from attractor.experiments.kinds import continual
from attractor.experiments.kinds.continual import ContinualRun
from attractor.experiments.kinds.parts import seeded
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.runs.drive import Context
from attractor.tasks.images.task import Images
from attractor.tasks.streams import Stream, patch_features
from attractor.tasks.streams.incremental import SETTINGS

CPU = torch.device("cpu")


def images(half: str, root: object, batches: int = 5) -> Images:
    """Images of 8 by 8 bytes, of two a class."""
    g = torch.Generator().manual_seed(len(half))
    return Images(torch.randint(256, (20, 3, 8, 8), generator=g).byte(), torch.arange(20) % 10)


@pytest.fixture(autouse=True)
def small_cifar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"]._replace(load=images))


def small(*changes: str) -> ContinualRun:
    few = ["stream.patches={filters=3, size=4, threshold=0.1}", "train.steps=2", *changes]
    name, experiment = load("class-incremental-cifar10", few)
    config = runs_of(name, experiment, ["ER, 200"])[0]
    assert isinstance(config, ContinualRun)
    return config


def built(out: Path, *changes: str) -> Stream:
    return continual.build_stream(small(*changes), Context(out=out), CPU)


def test_they_are_those_of_the_first_task_and_of_bytes(tmp_path: Path) -> None:
    stream = built(tmp_path)
    assert [task.classes for task in stream] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    x, y = images("train", None)
    first = x[y < 2]
    seen = patch_features(first, 3, size=4, threshold=0.1, generator=seeded(0, "patches"))
    torch.testing.assert_close(stream.arrays()[0].train.x, seen(first))
    last, answers = images("test", None)
    rows = torch.isin(answers, torch.tensor([8, 9]))
    torch.testing.assert_close(stream.arrays()[4].test.x, seen(last[rows]))
    assert torch.equal(stream.arrays()[4].test.y, answers[rows])


def test_they_are_computed_once_for_all_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = built(tmp_path)

    def gone(*_: object, **__: object) -> Images:
        raise FileNotFoundError

    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"]._replace(load=gone))
    other = built(tmp_path)
    assert torch.equal(one.arrays()[1].train.x, other.arrays()[1].train.x)
    with pytest.raises(FileNotFoundError):
        built(tmp_path, "stream.patches.seed=1")


def test_a_run_of_them(tmp_path: Path) -> None:
    config = small()
    train(config, tmp_path)
    done = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    assert done["parameters"] == 24 * 100 + 100 + 100 * 100 + 100 + 100 * 10 + 10


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="either features or patches"):
        built(tmp_path, "features={model={name='resnet', depth=20}, steps=2}")
    with pytest.raises(InputError, match="Did you mean 'filters'"):
        built(tmp_path, "stream.patches={filter=3}")
