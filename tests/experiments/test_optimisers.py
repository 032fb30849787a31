"""Runs that compare optimisers: fair, resumable at every point, and right about bad input."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import SupervisedRun
from attractor.experiments.train import build, run_folder, train
from attractor.runs.drive import Context
from attractor.training.chained import Chained
from attractor.training.process import Stopped
from attractor.training.supervised import Supervised
from experiments.helpers import numbers, outcome
from experiments.helpers import rows_of as rows
from experiments.helpers import tiny_optimiser as tiny

LABELS = ["LSTM", "M2SGD", "MTL2L, PES", "MetaSGD", "SGD", "Adam, tuned"]


def trained(config: SupervisedRun) -> Supervised:
    """The training of a run that needs no preparation, at its start."""
    process = build(config, Context()).process
    assert isinstance(process, Supervised)
    return process


@pytest.mark.parametrize("label", LABELS)
def test_stopped_after_every_single_step(label: str, tmp_path: Path) -> None:
    config = tiny(label)
    train(config, tmp_path / "whole")
    stops = 0
    while True:
        try:
            train(config, tmp_path / "broken", stop=lambda: True)
        except Stopped:
            stops += 1
            continue
        break
    # each rate of the grid diverges at its second step or has its four
    prepared = {"LSTM": 6, "M2SGD": 6, "MTL2L, PES": 4, "MetaSGD": 6, "SGD": 0}
    assert stops - 12 == prepared.get(label, stops - 12)
    broken = run_folder(tmp_path / "broken", config)
    assert numbers(broken) == numbers(run_folder(tmp_path / "whole", config))


def test_every_optimiser_starts_at_the_same_loss_at_step_one(tmp_path: Path) -> None:
    first = set()
    for label in LABELS:
        train(tiny(label, "train.steps=1"), tmp_path)
        folder = run_folder(tmp_path, tiny(label, "train.steps=1"))
        (row,) = rows(folder, "train")
        assert row["step"] == 1
        first.add(row["loss"])
    assert len(first) == 1


def test_what_is_before_the_learner_has_the_steps_before_zero(tmp_path: Path) -> None:
    train(tiny("LSTM"), tmp_path)
    folder = run_folder(tmp_path, tiny("LSTM"))
    assert [row["step"] for row in rows(folder, "meta")] == [-5, -4, -3, -2, -1, 0]
    assert [row["step"] for row in rows(folder, "train")] == list(range(1, 13))
    assert [row["step"] for row in rows(folder, "valid")] == [5, 10]
    assert outcome(folder)["steps"] == 12


def test_the_best_rate_of_a_grid_is_taken_and_one_that_diverges_is_not(tmp_path: Path) -> None:
    config = tiny("Adam, tuned", "train.steps=60", "train.tune_steps=60")
    train(config, tmp_path)
    done = outcome(run_folder(tmp_path, config))
    assert done["lr"] == 0.01


def test_meta_training_helps(tmp_path: Path) -> None:
    small = ("train.steps=60", "model.dropout=0.0", "model.hidden=[16]", "meta.steps=60")
    found = {}
    for learners in (1, 24):
        more = ("meta.lr=0.01", "meta.unroll=10", f"meta.learners={learners}")
        config = tiny("LSTM", *small, *more)
        train(config, tmp_path)
        found[learners] = outcome(run_folder(tmp_path, config))
    assert found[24]["test"]["loss"] < found[1]["test"]["loss"] - 0.2


def test_a_rule_may_be_trained_on_other_learners_than_it_is_tested_on(tmp_path: Path) -> None:
    config = tiny("LSTM", "meta.model.name=mlp", "meta.model.hidden=[3]")
    process: Any = build(config, Context()).process
    assert isinstance(process, Chained)
    process.advance()
    trainer: Any = process.first
    assert trainer.estimator.learners.start.shape == (1, 64 * 3 + 3 + 40)
    train(config, tmp_path)
    done = outcome(run_folder(tmp_path, config))
    assert done["parameters"] == 64 * 6 + 6 + 70


def test_held_out_data_may_be_cut_short() -> None:
    training = trained(tiny("SGD", "train.eval_batch_size=7", "train.eval_batches=1"))
    batch = next(training.task.held_out("test", 7))
    training.model.eval()
    with torch.no_grad():
        answers = training.model(batch.x)
    expected = {
        "loss": F.cross_entropy(answers, batch.y).item(),
        "accuracy": (answers.argmax(1) == batch.y).float().mean().item(),
    }
    assert training.measure("test") == pytest.approx(expected)


def test_pruning_is_measured(tmp_path: Path) -> None:
    """Rates of at most 0.1 + 0.01 are all below a threshold of 0.5, and all above one of -1."""
    for threshold, share in ((0.5, 1.0), (-1.0, 0.0)):
        config = tiny("M2SGD", f"optimiser.threshold={threshold}")
        train(config, tmp_path)
        folder = run_folder(tmp_path, config)
        assert outcome(folder)["test"]["sparsity"] == share
        assert outcome(folder)["measures"]["sparsity"] == ["none", "share", False]
        assert all(row["sparsity"] == share for row in rows(folder, "valid"))


def test_bounds_of_initial_weights() -> None:
    before = trained(tiny("SGD", "model.bound=0.1")).model
    weight, bias = (torch.cat([p.flatten() for p in before.parameters() if p.dim() == d])
                    for d in (2, 1))  # fmt: skip
    assert 0.09 < weight.abs().max() < 0.3
    assert bias.abs().max() < 0.2


@pytest.mark.parametrize(
    ("label", "change", "message"),
    [
        ("LSTM", "optimiser.name=lstmm", "known optimiser.*'lstm'"),
        ("LSTM", "optimiser.threshhold=1", "options that the optimiser lstm takes"),
        ("MetaSGD", "optimiser.ratee=1", "option of MetaSGD .*'rate'"),
        ("SGD", "optimiser.hidden_size=1", "option of SGD .* got 'hidden_size'"),
        ("LSTM", "meta.method=ga", "valid 'meta.method'"),
        ("LSTM", "model.name=mpl", "known model.*'mlp'"),
        ("LSTM", "meta.unroll=9", "unroll to be at least 1 and at most 6, but got 9"),
        ("LSTM", "optimiser.pretrained=none", "no options beside the weights 'none' of lstm"),
        ("SGD", "optimiser={name='lstm', pretrained='none'}", "known pretrained lstm"),
        ("SGD", "optimiser.grid=[0.1, 0]", "rates above zero, but got .0.1, 0.. Try grid = "),
        ("SGD", "optimiser.grid=[]", "rates above zero, but got .*. Try grid = "),
        ("SGD", "optimiser.grid=0.1", "rates above zero, but got 0.1. Try grid = "),
        ("LSTM", "meta.model.hidden=[3]", "name of a model or of a cell, but got .*hidden"),
        ("MetaSGD", "meta.model={name='mlp',hidden=[3]}", "460 parameters.*but got 235"),
    ],
)
def test_bad_input(label: str, change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(tiny(label, change), tmp_path)
