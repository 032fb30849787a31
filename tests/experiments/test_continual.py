"""Continual learning through the runner: options, killed runs, wrong names."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from attractor.continual import Learner
from attractor.errors import InputError, RunError
from attractor.experiments.kinds import continual
from attractor.experiments.kinds.continual import ContinualRun
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.runs.drive import Context
from attractor.tasks.streams.views import ShuffledPixels
from attractor.training.process import Stopped
from experiments.helpers import TINY_STREAM, numbers
from experiments.helpers import tiny_stream as tiny


def _reached(countdown: Iterator[int], updates: int) -> bool:
    return next(countdown) == updates


@pytest.mark.parametrize("label", ["ER", "MetaSGD-CL", "GEM", "EWC", "HAT", "both"])
def test_a_stopped_run_ends_with_the_same_numbers(label: str, tmp_path: Path) -> None:
    config = tiny(label=label)
    train(config, tmp_path / "whole")
    for updates in (1, 3, 5, 4):
        countdown = iter(range(1, updates + 1))
        with pytest.raises(Stopped):
            train(config, tmp_path, stop=partial(_reached, countdown, updates))
    train(config, tmp_path)
    assert numbers(run_folder(tmp_path, config)) == numbers(run_folder(tmp_path / "whole", config))


def test_the_outcome_has_the_matrix_and_its_measures(tmp_path: Path) -> None:
    config = tiny()
    train(config, tmp_path)
    done: dict[str, Any] = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    matrix = done["matrix"]
    assert [len(matrix), len(matrix[0])] == [4, 3]
    assert done["test"]["accuracy"] == pytest.approx(sum(matrix[-1]) / 3, abs=1e-6)
    assert done["test"]["first_task_accuracy"] == pytest.approx(matrix[-1][0], abs=1e-6)
    assert done["steps"] == 3 * 6
    assert config.total == 3 * 6
    assert len(done["seconds_per_task"]) == 3
    assert 0 < sum(done["seconds_per_task"]) <= 60


def test_each_task_may_have_its_own_number_of_updates(tmp_path: Path) -> None:
    config = tiny("train.steps=[2, 5, 3]", label="naive")
    train(config, tmp_path)
    done = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    assert done["steps"] == config.total == 10
    assert tiny("train.steps=6.0").id == tiny().id
    for wrong in ("0", "[2, 0, 1]", "[]", "true", "2.5", "'x'"):
        with pytest.raises(InputError, match=r"valid 'train\.steps' in ER \(input .* list of them"):
            tiny(f"train.steps={wrong}")
    with pytest.raises(InputError, match="each of the 3 tasks, but got 2"):
        continual.build(tiny("train.steps=[2, 5]"), Context())


def test_gradients_and_rates_are_limited_as_configured() -> None:
    config = tiny("train.clip=0.25", "train.schedule=linear", "train.accumulate=3")
    plan = cast(Learner, continual.build(config, Context()).process).plan
    assert (plan.clip, plan.schedule, plan.accumulate, plan.clip_value) == (0.25, "linear", 3, None)
    with pytest.raises(InputError, match=r"train\.clip"):
        tiny("train.clip=0")


def test_the_total_is_of_the_tasks_that_there_are(tmp_path: Path) -> None:
    options = "name='split_images', dataset='digits', size=5"
    config = tiny(f"stream={{{options}}}", label="naive")
    train(config, tmp_path)
    done = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    assert done["steps"] == config.total == 2 * 6
    assert tiny("stream={name='split_series'}").total is None


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for name in ("news", "songs"):
        (root / name).mkdir(parents=True)
        for half in ("train", "test"):
            (root / name / f"{half}.txt").write_text(f"{name} of the day, " * 9)
    return root


LANGUAGE = "stream={name='language', domains=['news', 'songs'], length=8}"
GRU = "model={cell='gru', hidden_size=6}"


@pytest.mark.parametrize("label", ["ER", "GEM", "EWC", "naive"])
def test_language_is_answered_at_each_step(texts: Path, label: str, tmp_path: Path) -> None:
    config = tiny(LANGUAGE, GRU, label=label)
    train(config, tmp_path, data=texts)
    done = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    assert done["steps"] == config.total == 2 * 6
    assert 0 <= done["test"]["accuracy"] <= 1


def test_a_network_that_answers_once_is_refused_for_language(texts: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="answers at each step, .* got 'mlp'. Try model.cell"):
        train(tiny(LANGUAGE), tmp_path, data=texts)


def test_large_test_samples_are_not_kept_to_see_their_size(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continual, "Learner", lambda model, stream, *_, **__: stream)
    config = tiny(LANGUAGE, GRU, label="naive")
    stream: Any = continual.build(config, Context(texts, tmp_path)).data
    assert "test_samples" not in stream[0].__dict__


def test_one_strategy_by_its_key() -> None:
    name, experiment = load(str(TINY_STREAM), ["strategy=er"])
    assert {run.label for run in runs_of(name, experiment)} == {"ER"}
    name, experiment = load(str(TINY_STREAM), ["strategy=agem"])
    assert {run.label for run in runs_of(name, experiment)} == {"agem"}


def chosen(*changes: str, name: str = "permuted-mnist") -> ContinualRun:
    """The one run that is left of an experiment."""
    _, experiment = load(name, [*changes, "seeds=[0]"])
    (run,) = runs_of(name, experiment)
    assert isinstance(run, ContinualRun)
    return run


def test_a_change_wins_over_what_a_variant_says() -> None:
    hat = chosen("strategy=hat", "model.hidden=[20, 20]", "stream.identity=false")
    assert (hat.model["hidden"], hat.stream["identity"]) == ([20, 20], False)
    slower = tiny("optimiser.lr=0.5", label="naive, slower")
    assert slower.optimiser == {"name": "sgd", "lr": 0.5}
    assert slower.label == "naive, slower (optimiser.lr=0.5)"


@pytest.mark.parametrize(
    ("changes", "label", "options"),
    [
        (["strategy=er"], "ER", {}),
        (["strategy.name=er"], "ER", {}),
        (["strategy={name='er'}"], "ER", {}),
        (["strategy=er", "strategy.balanced=true"], "ER, balanced", {"balanced": True}),
        (["strategy.balanced=true", "strategy=er"], "ER, balanced", {"balanced": True}),
        (["strategy=er", "strategy.size=9"], "ER", {"size": 9}),
        (["strategy=er", "optimiser.lr=0.1"], "ER, lr 0.1", {}),
        (["strategy=ewc"], "EWC, strength 1", {"strength": 1.0}),
        (["strategy=ewc", "strategy.strength=10.0"], "EWC", {"strength": 10.0}),
        (
            ["strategy=ewc", "strategy.strength=5.0"],
            "EWC, strength 1 (strategy.strength=5.0)",
            {"strength": 5.0},
        ),
        (["strategy=hat"], "HAT, 400 wide, lr 0.05", {}),
        (["strategy=hat", "optimiser.lr=0.01"], "HAT, 400 wide", {}),
        (["strategy=agem", "strategy.size=9"], "agem", {"size": 9}),
    ],
)
def test_the_variant_that_is_nearest_to_what_is_asked(
    changes: list[str], label: str, options: dict[str, Any]
) -> None:
    run = chosen(*changes)
    assert run.label == label
    assert {key: value for key, value in run.strategy.items() if key != "name"} == options


def test_an_option_without_a_name_is_of_all_strategies() -> None:
    name, experiment = load(str(TINY_STREAM), ["strategy.size=3"])
    assert {run.model_dump()["strategy"]["size"] for run in runs_of(name, experiment)} == {3}


def test_a_chosen_variant_is_the_run_that_the_whole_experiment_has() -> None:
    name, experiment = load("permuted-mnist")
    ids = {run.id for run in runs_of(name, experiment)}
    assert chosen("strategy=er", "strategy.balanced=true", "optimiser.lr=0.02").id in ids


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("stream.name=permuted_image", "known stream .* Did you mean 'permuted_images'"),
        ("stream.datasett=mnist", "option of the stream permuted_images .* 'dataset'"),
        ("model.name=mlpp", "known model .* Did you mean 'mlp'"),
        ("model.widht=3", "option of the model mlp"),
        ("strategy=err", "known strategy .* Did you mean 'er'"),
    ],
)
def test_wrong_names_are_named(change: str, message: str, tmp_path: Path) -> None:
    name, experiment = load(str(TINY_STREAM), [change])
    with pytest.raises(InputError, match=message):
        train(runs_of(name, experiment)[0], tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the loss became .* in task 1.* Try a smaller rate of"):
        train(tiny("optimiser.lr=1e38"), tmp_path)


@pytest.mark.parametrize("held", ["test", "valid"])
def test_the_log_names_the_split_that_was_measured(held: str, tmp_path: Path) -> None:
    config = tiny(f"stream.held={held}", label="naive")
    train(config, tmp_path)
    folder = run_folder(tmp_path, config)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert {row["split"] for row in rows} == {"train", held}
    assert sum("task_1" in row for row in rows) == 3
    assert json.loads((folder / "done.json").read_text())["split"] == held


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), None),
        (("stream.noise=0.0",), None),
        (("stream.noise=0.3",), ShuffledPixels(0.3)),
        (("stream.noise={fraction=0.3, together=2}",), ShuffledPixels(0.3, 2)),
    ],
)
def test_a_stream_has_the_noise_that_it_is_asked_for(
    changes: tuple[str, ...], expected: ShuffledPixels | None
) -> None:
    stream = continual.build_stream(tiny(*changes), Context(), torch.device("cpu"))
    assert [task.noise for task in stream.arrays()] == [expected] * len(stream)
