"""Whatever is of the user's own, named in a configuration."""

from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from experiments.helpers import TINY, called
from experiments.helpers import TINY_STREAM as STREAM

MODULE = """
import torch
from torch import nn
from attractor.cells import GRUCell
from attractor.continual import ER
from attractor.experiments.config import Kind
from attractor.experiments.kinds.supervised import SupervisedRun, build
from attractor.optimisers import DMSGD
from attractor.tasks import Digits
from attractor.tasks.streams import split_images

class Cell(GRUCell):
    pass

class Task(Digits):
    pass

class Strategy(ER):
    pass

class Model(nn.Module):
    def __init__(self, shape, outputs, *, hidden_size: int):
        super().__init__()
        first = nn.Linear(8 * shape[0], hidden_size)
        self.layers = nn.Sequential(nn.Flatten(), first, nn.Linear(hidden_size, outputs))

    def forward(self, x):
        return self.layers(x)

class Descent(torch.optim.SGD):
    pass

class Learned(DMSGD):
    pass

def stream(*, size: int = 5, root=None):
    return split_images(dataset="digits", size=size, root=root)

class Run(SupervisedRun):
    kind: str = "{name}:KIND"

KIND = Kind(Run, build)
"""


@pytest.fixture
def name(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The name of a module that is beside the configuration and nowhere else."""
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name))
    for file in (TINY, STREAM):
        (tmp_path / file.name).write_text(file.read_text())
    return name


@pytest.mark.parametrize(
    ("change", "file"),
    [
        ("model.cell={}:Cell", TINY),
        ("task.name={}:Task", TINY),
        ("kind={}:KIND", TINY),
        ("model={{name='{}:Model', hidden_size=5}}", TINY),
        ("optimiser={{name='{}:Descent', lr=0.1}}", TINY),
        ("optimiser={{name='{}:Learned', hidden_size=3}}", TINY),
        ("optimiser={{name='{}:Learned', hidden_size=3}}", STREAM),
        ("stream={{name='{}:stream', size=2}}", STREAM),
    ],
)
def test_a_run_with_something_of_ones_own(
    name: str, tmp_path: Path, change: str, file: Path
) -> None:
    changes = [change.format(name), "train.steps=3"]
    title, experiment = load(str(tmp_path / file.name), changes)
    config = runs_of(title, experiment)[0]
    train(config, tmp_path / "runs")
    assert (run_folder(tmp_path / "runs", config) / "done.json").exists()


def test_a_strategy_of_ones_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / STREAM.name
    path.write_text(
        path.read_text().replace('name = "er", size', f'name = "{name}:Strategy", size')
    )
    title, experiment = load(str(path), ["train.steps=3"])
    config = runs_of(title, experiment, ["both"])[0]
    train(config, tmp_path / "runs")
    assert (run_folder(tmp_path / "runs", config) / "done.json").exists()


def test_in_worker_processes_too(name: str, tmp_path: Path) -> None:
    cell = f"model.cell={name}:Cell"
    done = called(
        *("run", tmp_path / TINY.name, "--set", cell, "--set", "train.steps=3", "--only", "GRU"),
        *("-j", "2", "--out", tmp_path / "runs", "-q"),
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("done.json"))) == 2


def test_what_is_no_cell_is_refused(name: str, tmp_path: Path) -> None:
    for wrong, text in (("Task", "a Cell class, but got"), ("Cel", "Did you mean 'Cell'")):
        changes = [f"model.cell={name}:{wrong}"]
        title, experiment = load(str(tmp_path / TINY.name), changes)
        with pytest.raises(InputError, match=text):
            train(runs_of(title, experiment)[0], tmp_path / "runs")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("optimiser={}:stream", "class of torch.optim.Optimizer or of Rule, but it is <function"),
        ("optimiser={}:Desc", "Did you mean 'Descent'"),
        ("model={{name='{}:Model', wide=5}}", "known option of the model own_.* but got 'wide'"),
    ],
)
def test_what_is_no_optimiser_or_has_no_such_option_is_refused(
    name: str, change: str, message: str, tmp_path: Path
) -> None:
    title, experiment = load(str(tmp_path / TINY.name), [change.format(name)])
    with pytest.raises(InputError, match=message):
        train(runs_of(title, experiment)[0], tmp_path / "runs")
