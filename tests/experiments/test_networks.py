"""Networks of cells from a configuration: their layers, their options, and what they read."""

from pathlib import Path
from typing import Any

import pytest

from attractor.cells import Cell, GRUCell
from attractor.cli.entry import entry
from attractor.errors import InputError
from attractor.experiments.config import ExperimentConfig
from attractor.experiments.kinds.supervised import outcome
from attractor.experiments.train import build, runs_of
from attractor.runs.drive import Context
from attractor.tasks.data.pairs import LABELS, SICK
from attractor.training.supervised import Supervised
from tasks.test_strokes import write as write_strokes

TASKS: dict[str, dict[str, Any]] = {
    "language_model": {"name": "text", "folder": "own", "steps": 4},
    "pair_classifier": {"name": "sick"},
    "stroke_reader": {"name": "strokes", "digits": 2, "train": 8, "held": 4},
}
SIZES: dict[str, dict[str, Any]] = {
    "language_model": {"embedding_size": 3, "hidden": [6, 5]},
    "pair_classifier": {"embedding_size": 3, "hidden_size": [6, 5]},
    "stroke_reader": {"hidden_size": [6, 5]},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with a text, some pairs of sentences and some strokes."""
    (tmp_path / "own").mkdir()
    for half in ("train", "valid", "test"):
        (tmp_path / "own" / f"{half}.txt").write_text("to be or not to be that is\n" * 3)
    (tmp_path / "sick").mkdir()
    rows = [f"a dog runs\ta dog moves\t{label}" for label in LABELS * 2]
    for name in SICK.values():
        lines = "\n".join(["sentence_A\tsentence_B\tentailment_judgment", *rows])
        (tmp_path / "sick" / name).write_text(lines + "\n")
    write_strokes(tmp_path)
    return tmp_path


def made(root: Path, task: dict[str, Any], model: dict[str, Any], batch_size: int = 2) -> Any:
    """The training of a configuration."""
    content = {
        "kind": "supervised",
        "title": "networks",
        "budget": "quick",
        "seeds": [0],
        "train": {"steps": 1, "batch_size": batch_size, "log_every": 1},
        "variant": [{"label": "one", "task": task, "model": model}],
    }
    [config] = runs_of("networks", ExperimentConfig.model_validate(content))
    process = build(config, Context(data=root)).process
    assert isinstance(process, Supervised)
    return process


def test_only_the_outcome_of_a_text_tells_a_leading_measure(root: Path) -> None:
    text, pairs = (
        outcome(made(root, TASKS[name], {"name": name, "cell": ["gru"] * 2, **SIZES[name]}))
        for name in ("language_model", "pair_classifier")
    )
    assert text["leading"] == "perplexity"
    assert text["measures"]["perplexity"] == ["min", "", True]
    assert "leading" not in pairs


@pytest.mark.parametrize("name", sorted(TASKS))
def test_each_layer_has_its_own_cell(name: str, root: Path) -> None:
    cells = ["lstm", {"cell": "gru", "reset": "before"}]
    training = made(root, TASKS[name], {"name": name, "cell": cells, **SIZES[name]})
    found = [one for one in training.model.modules() if isinstance(one, Cell)]
    assert [(type(one).__name__, one.hidden_size) for one in found] == [
        ("LSTMCell", 6),
        ("GRUCell", 5),
    ]
    assert found[1].reset == "before"
    (row,) = training.advance()
    assert row["loss"] > 0


@pytest.mark.parametrize("name", sorted(TASKS))
def test_cells_and_layers_that_do_not_match_are_refused(name: str, root: Path) -> None:
    with pytest.raises(InputError, match=r"expect\w* as many (cells|entries) .* but got 3"):
        made(root, TASKS[name], {"name": name, "cell": ["lstm", "gru", "rnn"], **SIZES[name]})


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("language_model", {"tiedd": True}, "option of GRUCell or LanguageModel .* mean 'tied'"),
        ("language_model", {"resett": "after"}, "option of GRUCell .* mean 'reset'"),
        ("language_model", {"tied": 3}, "'tied' of the model language_model to be true or false"),
        ("language_model", {"reward": "more"}, "'reward' .* one of 'likelihood', 'auxiliary'"),
        ("pair_classifier", {"dropot": 0.1}, "option of GRUCell or PairClassifier .* 'dropout'"),
        ("pair_classifier", {"dropout": "a"}, "'dropout' of the model pair_classifier .* a number"),
        ("stroke_reader", {"discont": 0.1}, "option of GRUCell or StrokeReader .* 'discount'"),
        ("stroke_reader", {"discount": "a"}, "'discount' of the model stroke_reader .* a number"),
    ],
)
def test_options_are_checked_by_name_and_kind(
    name: str, option: dict[str, Any], message: str, root: Path
) -> None:
    with pytest.raises(InputError, match=message):
        made(root, TASKS[name], {"name": name, "cell": "gru", **SIZES[name], **option})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "language_model",
            "tied input_dropout hidden_dropout output_dropout embedding_dropout weight_dropout "
            "activity slowness reward discount carry init",
        ),
        ("pair_classifier", "dropout hidden_dropout readout_init reward discount"),
        ("stroke_reader", "reward discount"),
    ],
)
def test_networks_tell_their_own_options(name: str, options: str) -> None:
    found = {one["option"] for one in entry("models", name)["options"]}
    assert {*options.split(), "cell", "compose"} <= found
    assert not found & {"vocabulary", "input_size", "output_size", "options", "generator"}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_options_of_layers_and_cells_are_passed_on(name: str, root: Path) -> None:
    options = {"reset": "before", "learn_initial_state": True}
    if name == "pair_classifier":
        options["readout_init"] = "xavier"
    training = made(root, TASKS[name], {"name": name, "cell": "gru", **SIZES[name], **options})
    cells = [one for one in training.model.modules() if isinstance(one, GRUCell)]
    assert [one.reset for one in cells] == ["before", "before"]
    assert any("initial" in key for key, _ in training.model.named_parameters())


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        (TASKS["language_model"], "recurrent", r"shows numbers of .*\. Try model.name=language_m"),
        (TASKS["pair_classifier"], "recurrent", r"numbers of .*\. Try model.name=pair_classifier"),
        (TASKS["stroke_reader"], "recurrent", r"strokes after .*\. Try model.name=stroke_reader"),
        ({"name": "copy"}, "mlp", r"a sequence\. Try model.cell=lstm"),
        ({"name": "digits", "order": "rows"}, "mlp", r"Leave task.order out, or try model.cell="),
        ({"name": "digits", "order": "flat"}, "recurrent", r"order out, or try model.name=mlp"),
        ({"name": "generate", "images": "digits"}, "recurrent", r"at once\. Try model.name=draw"),
    ],
)
def test_a_task_that_a_network_cannot_read_says_which_can(
    task: dict[str, Any], model: str, message: str, root: Path
) -> None:
    chosen = {"name": "mlp"} if model == "mlp" else {"cell": "gru", "hidden_size": 4}
    with pytest.raises(InputError, match=message):
        made(root, task, chosen)


def test_fewer_samples_than_a_batch_are_refused(root: Path) -> None:
    model = {"name": "stroke_reader", "cell": "gru", "hidden_size": 4}
    message = r"at least batch_size=9 samples to train on, but got 8\. Try batch_size=8"
    with pytest.raises(InputError, match=message):
        made(root, TASKS["stroke_reader"], model, batch_size=9)
    made(root, TASKS["stroke_reader"], model, batch_size=8)
    images = {"name": "generate", "images": "digits", "samples": 8}
    with pytest.raises(InputError, match="batch_size=9 samples to train on, but got 8"):
        made(root, images, {"name": "draw", "steps": 1, "hidden_size": 4}, batch_size=9)
    made(root, {"name": "copy", "lag": 3}, {"cell": "gru", "hidden_size": 4}, batch_size=5000)
