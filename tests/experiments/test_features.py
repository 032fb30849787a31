"""Features of a frozen network: made once, whatever happens, and those of that network."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch

from attractor.errors import InputError, RunError
from attractor.experiments.check import refusals
from attractor.experiments.kinds import continual, features
from attractor.experiments.kinds.continual import ContinualRun
from attractor.experiments.kinds.features import Features, Source, kept_features, key
from attractor.experiments.kinds.parts import Spec
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.models import ResNet
from attractor.runs.checkpoint import candidates, read_state
from attractor.runs.drive import Context, Every, drive, never
from attractor.tasks.images.task import Images
from attractor.tasks.streams import Stream, incremental_images
from attractor.tasks.streams.incremental import SETTINGS, Shifted
from attractor.training.process import Stopped

SMALL = (
    "features.model={name='resnet', depth=20, stem='small'}",
    "features.augment=false",
    "features.steps=4",
    "features.batch_size=6",
    "features.lr=0.01",
    "stream.batches=1",
    "train.steps=2",
)

FIRST = "first classes to pretrain .* but got 'split_images'"


def small_images(half: str, root: object, batches: int = 5) -> Images:
    """Images of 8 by 8 bytes, the brighter the later their class."""
    y = torch.arange(40) % 10
    noise = torch.randint(20, (40, 3, 8, 8), generator=torch.Generator().manual_seed(len(half)))
    return Images((noise + 20 * y[:, None, None, None]).to(torch.uint8), y)


@pytest.fixture(autouse=True)
def small_cifar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"]._replace(load=small_images))


def small(*changes: str, label: str = "MLP") -> ContinualRun:
    name, experiment = load("incremental-cifar10", [*SMALL, *changes])
    config = runs_of(name, experiment, [label])[0]
    assert isinstance(config, ContinualRun)
    return config


def folder_of(*changes: str) -> str:
    """Where the features of a run are kept."""
    found = []

    def kept(settings: Features, stream: Spec, source: Source, *_: object, **__: object) -> Stream:
        found.append(key(settings, stream))
        return incremental_images(dataset="cifar10", batches=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continual, "kept_features", kept)
        patch.setattr(continual, "inject_noise", lambda stream, share: stream)
        continual.build_stream(small(*changes), Context(), torch.device("cpu"))
    return found[0]


def made(out: Path, *changes: str, stop: Callable[[], bool] = never) -> Stream:
    images = partial(incremental_images, dataset="cifar10", batches=1)
    source = Source(partial(images, part="first"), images)
    config, context = small(*changes), Context(out=out, stop=stop)
    assert config.features is not None
    return kept_features(
        config.features, config.stream, source, context, device=torch.device("cpu")
    )


def same(one: Stream, other: Stream) -> bool:
    return all(
        torch.equal(a.train.x, b.train.x) and torch.equal(a.test.x, b.test.x)
        for a, b in zip(one.arrays(), other.arrays(), strict=True)
    )


def test_they_are_those_of_the_network_that_learnt_the_first_classes(tmp_path: Path) -> None:
    stream = made(tmp_path)
    assert [task.name for task in stream] == ["classes 4, 5", "classes 6, 7", "classes 8, 9"]
    (folder,) = (tmp_path / "features").iterdir()
    before = next(candidates(folder))["process"]["model"]
    network = ResNet(20, 4).eval()
    network.load_state_dict(before)
    images, answers = small_images("test", None)
    for task in stream.arrays():
        rows = torch.isin(answers, torch.tensor([4, 5]) + 2 * task.place)
        with torch.no_grad():
            seen = network.features(SETTINGS["cifar10"].scale(images[rows]))
        torch.testing.assert_close(task.test.x, seen)
        assert torch.equal(task.test.y, answers[rows] % 2)


def test_the_network_learns_and_its_accuracy_is_kept(tmp_path: Path) -> None:
    made(tmp_path, "features.steps=40", "features.lr=0.05")
    (folder,) = (tmp_path / "features").iterdir()
    assert json.loads((folder / "done.json").read_text())["accuracy"] > 0.9
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(1, 41)]


def test_every_run_of_an_experiment_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(small(), tmp_path)

    def gone(half: str, root: object, batches: int = 5) -> Images:
        raise AssertionError("the images were read again")

    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"]._replace(load=gone))
    name, experiment = load("incremental-cifar10", [*SMALL, "seeds=[0]"])
    for config in runs_of(name, experiment):
        train(config, tmp_path)
        outcome = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
        assert len(outcome["matrix"]) == 4, config.label
    assert len([*(tmp_path / "features").iterdir()]) == 1


def test_stopped_after_every_update(tmp_path: Path) -> None:
    whole = made(tmp_path / "whole")
    stops = 0
    while True:
        try:
            broken = made(tmp_path / "broken", stop=lambda: True)
        except Stopped:
            stops += 1
            continue
        break
    assert stops == 4
    assert same(whole, broken)
    logs = [next(tmp_path.glob(f"{name}/features/*/metrics.jsonl")) for name in ("whole", "broken")]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert len(logs[0].read_text().splitlines()) == 4


def test_killed_between_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(tmp_path / "whole")
    monkeypatch.setattr(features, "drive", partial(drive, every=Every(steps=2)))
    asked = 0

    def killed() -> bool:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "broken", stop=killed)
    (folder,) = (tmp_path / "broken" / "features").iterdir()
    (saved,) = candidates(folder)
    assert saved["process"]["step"] == 2
    assert same(whole, made(tmp_path / "broken"))
    assert asked == 3


def test_of_two_at_once_the_second_waits(tmp_path: Path) -> None:
    asked = []

    def first() -> Stream:
        asked.append("first")
        return incremental_images(dataset="cifar10", part="first", batches=1)

    source = Source(first, partial(incremental_images, dataset="cifar10", batches=1))
    context = Context(out=tmp_path)
    config = small()
    assert config.features is not None
    call = partial(
        kept_features, config.features, config.stream, source, context, device=torch.device("cpu")
    )
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: call(), range(2))
    assert asked == ["first"]
    assert same(one, other)


@pytest.mark.parametrize("both", [False, True])
def test_a_damaged_file_is_made_again(tmp_path: Path, both: bool) -> None:
    stream = made(tmp_path)
    (folder,) = (tmp_path / "features").iterdir()
    for name in ["features.safetensors"] + ["checkpoint.safetensors"] * both:
        content = bytearray((folder / name).read_bytes())
        content[-100] ^= 1
        (folder / name).write_bytes(bytes(content))
    assert same(stream, made(tmp_path))
    assert read_state(folder / "features.safetensors") is not None


def test_a_folder_for_all_that_decides_them_and_no_other() -> None:
    usual = folder_of()
    assert usual.startswith("cifar10-")
    for change in ("stream.identity=true", "stream.noise=0.1", "optimiser.lr=0.5"):
        assert folder_of(change) == usual
    others = [
        "stream.batches=2",
        "stream.first=2",
        "stream.dataset=cifar100",
        "features.seed=1",
        "features.steps=5",
        "features.lr=0.02",
        "features.augment=true",
        "features.model.depth=32",
    ]
    assert len({usual, *(folder_of(change) for change in others)}) == 1 + len(others)


def test_runs_without_features_keep_their_folders() -> None:
    config = runs_of(*load("permuted-mnist"))[0]
    assert config.id == "metasgd-cl-0-9857b7a1fe"


def test_shifted_images_are_windows_of_padded_ones() -> None:
    x = torch.randn(60, 3, 4, 5)
    shifted = Shifted(2)(x, torch.Generator().manual_seed(0))
    again = Shifted(2)(x, torch.Generator().manual_seed(0))
    assert torch.equal(shifted, again)
    padded = torch.nn.functional.pad(x, [2] * 4)
    kinds = set()
    for image, before in zip(shifted, padded, strict=True):
        found = [
            (down, right, mirrored)
            for down in range(5)
            for right in range(5)
            for mirrored in (False, True)
            if torch.equal(
                image.flip(2) if mirrored else image,
                before[:, down : down + 4, right : right + 5],
            )
        ]
        assert len(found) == 1
        kinds.update(found)
    assert len(kinds) > 25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("features.model={name='mlp'}", "a network that gives features, but got 'mlp'"),
        ("features.model.depth=19", "known depth of a ResNet"),
        ("features.model.widht=3", "option of the model resnet"),
        ("features.step=3", "key in .*'features.steps'"),
        ("features.steps=0", "valid 'features.steps'"),
        ("stream={name='split_images', dataset='digits'}", FIRST),
    ],
)
def test_bad_input(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(small(change), tmp_path)


def test_a_pretraining_that_diverges_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="became .* a smaller features.lr"):
        train(small("features.lr=1e38"), tmp_path)


def test_a_check_makes_no_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends at the first step of the pretraining, and leaves nothing where runs go."""
    monkeypatch.chdir(tmp_path)
    steps: list[int] = []
    monkeypatch.setattr(features, "write_state", lambda *given: steps.append(len(given)))
    assert refusals([small("features.steps=1000000")]) == {}
    assert not list(tmp_path.iterdir())
    assert steps == []
    [why] = refusals([small("features.model.name=mlp", "features.model.hidden=[2]")]).values()
    assert "expected" in why
