"""How a run trains, as its configuration says: each option does what it promises."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import SupervisedRun
from attractor.experiments.train import build, run_folder, train
from attractor.runs.drive import Context
from attractor.training.supervised import Supervised
from experiments.helpers import outcome, rows_of, tiny, tiny_optimiser, tiny_stream

SGD = "optimiser={name='sgd', lr=0.5}"


def training(config: SupervisedRun) -> Supervised:
    process = build(config, Context()).process
    assert isinstance(process, Supervised)
    return process


def moved(*changes: str) -> torch.Tensor:
    """How far the first update takes the weights."""
    process = training(tiny_optimiser("SGD", SGD, "model.dropout=0.0", *changes))
    before = weights(process)
    process.advance()
    return before - weights(process)


def weights(process: Supervised) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in process.model.parameters()]).clone()


def test_each_entry_of_the_gradient_is_cut_off() -> None:
    free, cut = moved(), moved("train.clip_value=0.01")
    torch.testing.assert_close(cut, free.clamp(-0.005, 0.005))
    assert (free.abs() > 0.005).any()


def test_the_norm_of_the_gradient_is_cut_off() -> None:
    free, cut = moved(), moved("train.clip=0.1")
    torch.testing.assert_close(cut, 0.05 * free / free.norm(), rtol=1e-4, atol=1e-7)


def test_accumulated_batches_are_one_large_one() -> None:
    """The batches of 16 and 2 times 8 hold the same samples."""
    whole, parts = moved(), moved("train.batch_size=8", "train.accumulate=2")
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-6)


def test_patience_ends_a_run_that_no_longer_improves(tmp_path: Path) -> None:
    still = ("optimiser={name='sgd', lr=1e-30}", "train.eval_every=3", "train.patience=2")
    config = tiny_optimiser("SGD", *still)
    train(config, tmp_path)
    assert outcome(run_folder(tmp_path, config))["steps"] == 9  # best at 3, then twice no better


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    """A rate so large that the loss grows: the first measurement has the best weights."""
    wild = ("optimiser={name='sgd', lr=8.0}", "train.eval_every=4", "model.dropout=0.0")
    found = []
    for keep in ("false", "true"):
        config = tiny_optimiser("SGD", *wild, f"train.keep_best={keep}")
        process = training(config)
        while not process.done:
            process.advance()
        losses = [row["loss"] for row in _valid(config, tmp_path)]
        assert min(losses) < losses[-1]
        found.append((process.measure("valid")["loss"], losses))
    (last, losses), (best, _) = found
    assert last == pytest.approx(losses[-1])
    assert best == pytest.approx(min(losses))


def _valid(config: SupervisedRun, out: Path) -> list[dict[str, Any]]:
    train(config, out)
    return rows_of(run_folder(out, config), "valid")


@pytest.mark.parametrize(("schedule", "half"), [("linear", 0.25), ("cosine", 0.25)])
def test_the_rate_falls_to_zero(schedule: str, half: float) -> None:
    process = training(tiny_optimiser("SGD", SGD, f"train.schedule={schedule}"))
    rates = []
    while not process.done:
        rates.append(process.optimiser.param_groups[0]["lr"])
        process.advance()
    assert rates[0] == 0.5
    assert rates[6] == pytest.approx(half)
    assert process.optimiser.param_groups[0]["lr"] == pytest.approx(0, abs=1e-12)


def test_in_half_precision(tmp_path: Path) -> None:
    losses = []
    for change in ((), ("train.autocast=bfloat16",)):
        config = tiny_optimiser("SGD", SGD, "model.dropout=0.0", *change)
        train(config, tmp_path)
        losses.append([row["loss"] for row in rows_of(run_folder(tmp_path, config), "train")])
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("train.accumulate=0", "'train.accumulate'"),
        ("train.clip_value=-1", "'train.clip_value'"),
        ("train.patience=0", "'train.patience'"),
        ("train.schedule=step", "'train.schedule' .*'cosine' or 'linear'.* but got 'step'"),
        ("train.autocast=int8", "'train.autocast' .*should be 'bfloat16'.* but got 'int8'"),
        ("train.keep_best=3", "'train.keep_best'"),
    ],
)
def test_wrong_values_are_named(change: str, text: str) -> None:
    with pytest.raises(InputError, match=f"a valid {text}"):
        tiny(change)


def test_a_run_tells_what_its_numbers_are(tmp_path: Path) -> None:
    config = tiny_optimiser("SGD", "train.stop_below=0.001")
    train(config, tmp_path)
    assert outcome(run_folder(tmp_path, config))["measures"] == {
        "loss": ["min", "nats", True],
        "accuracy": ["max", "share", False],
        "steps_to_solve": ["min", "steps", False],
        "solved": ["max", "share", False],
    }
    stream = tiny_stream(label="naive")
    train(stream, tmp_path)
    found = json.loads((run_folder(tmp_path, stream) / "done.json").read_text())
    assert found["measures"].keys() == {*found["test"], "loss"}  # the loss is in its rows
    assert found["measures"]["forgetting"] == ["min", "share", False]
    assert found["measures"]["backward_transfer"] == ["max", "share", False]


def test_a_tardis_is_also_measured_by_what_it_read_alone(tmp_path: Path) -> None:
    changes = ["model={cell='tardis', hidden_size=6, cells=4}", "train.steps=3"]
    config = tiny(*changes)
    train(config, tmp_path)
    found = outcome(run_folder(tmp_path, config))
    endings = ("", "_alone", "_without_past")
    assert found["test"].keys() == {
        f"{name}{end}" for name in ("loss", "accuracy") for end in endings
    }
    assert len({found["test"][f"loss{end}"] for end in endings}) == 3
    for end in endings[1:]:
        assert found["measures"][f"accuracy{end}"] == ["none", "share", False]
    assert found["measures"]["accuracy"][0] == "max"
