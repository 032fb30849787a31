"""Functions that a configuration names are called after each update."""

from pathlib import Path

import pytest

from attractor.continual import Learner, confusion, top_k
from attractor.errors import InputError
from attractor.experiments.kinds import continual
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.runs.drive import Context
from attractor.training.process import Stopped, finish
from experiments.helpers import TINY_STREAM, numbers, rows_of
from experiments.helpers import tiny_stream as tiny

MODULE = """
def largest(learner, rows):
    if learner.step % 3 == 0:
        weights = [p.detach().abs().max().item() for p in learner.model.parameters()]
        rows.append({"split": "train", "largest_weight": max(weights)})

class Watcher:
    def __init__(self, learner, rows):
        pass

limit = 3
"""


def test_a_function_beside_the_configuration_adds_to_what_is_logged(tmp_path: Path) -> None:
    (tmp_path / "own_callbacks.py").write_text(MODULE)
    (tmp_path / "mine.toml").write_text(TINY_STREAM.read_text())
    change = 'train.callbacks=["own_callbacks:largest"]'
    name, experiment = load(str(tmp_path / "mine.toml"), [change])
    (config,) = runs_of(name, experiment, ["ER"])
    train(config, tmp_path / "whole")
    rows = rows_of(run_folder(tmp_path / "whole", config), "train")
    noted = [row["step"] for row in rows if "largest_weight" in row]
    assert noted == [3, 6, 9, 12, 15, 18]
    # a run that is stopped in between logs each of them once
    steps = iter(range(100))
    with pytest.raises(Stopped):
        train(config, tmp_path, stop=lambda: next(steps) == 7)
    train(config, tmp_path)
    assert numbers(run_folder(tmp_path, config)) == numbers(run_folder(tmp_path / "whole", config))


def test_callbacks_that_come_with_it_tell_of_the_tasks_so_far() -> None:
    options = "stream={name='split_images', dataset='digits', size=5}"
    config = tiny(options, 'train.callbacks=["per_class", "top_5"]', label="naive")
    learner = continual.build(config, Context()).process
    assert isinstance(learner, Learner)
    rows = [row for _ in range(6) for row in learner.advance()]
    shares, five = rows[-2], rows[-1]
    assert list(shares) == ["split", *(f"class_{n}_accuracy" for n in range(5))]
    counts = confusion(learner.model, learner.stream[:1])
    assert shares["class_2_accuracy"] == pytest.approx(float(counts[2, 2] / counts[2].sum()))
    assert five == {"split": "test", "top_5_accuracy": top_k(learner.model, learner.stream[:1], 5)}
    finish(learner)
    assert learner.step == 12


def test_callbacks_name_no_other_run_unless_there_are_some() -> None:
    assert tiny("train.callbacks=[]").id == tiny().id
    assert tiny('train.callbacks=["top_5"]').id != tiny().id


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("per_clas", "known callback .*, but got 'per_clas'. Did you mean 'per_class'"),
        ("own_refused:lagest", "name in own_refused .*, but got 'lagest'. Did you mean 'largest'"),
        ("own_refused:Watcher", "function of the learner .* it is a class. Name a function"),
        ("own_refused:limit", "to name a callback, but it is a value of type int"),
    ],
)
def test_what_is_no_callback_is_refused_before_anything_is_learnt(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_refused.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=message):
        continual.build(tiny(f'train.callbacks=["{name}"]'), Context())
