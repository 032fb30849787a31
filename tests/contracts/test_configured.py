"""Any cell, any optimiser, any strategy, any network, from the tables of a configuration."""

import re
from pathlib import Path
from typing import Any

import pytest

from attractor.cells import CELLS
from attractor.continual import HAT, STRATEGIES, Learner
from attractor.errors import InputError
from attractor.experiments.config import ExperimentConfig
from attractor.experiments.train import build, runs_of
from attractor.experiments.work import Work
from attractor.optimisers import OPTIMISERS, Learned, LSTMOptimiser
from attractor.runs.drive import Context
from attractor.training import Supervised
from contracts.tiny import CELL_OPTIONS, NETWORKS, RULES, STRATEGY_OPTIONS

cells = pytest.mark.parametrize("cell", sorted(CELLS))
LEARNERS: dict[str, dict[str, Any]] = {
    "mlp": {"task": {"name": "contracts.tiny:task", "timed": False}, "model": NETWORKS["mlp"]},
    "convnet": {
        "task": {"name": "contracts.tiny:pictured"},
        "model": {"name": "convnet", "channels": [2], "hidden_size": 4},
    },
    "recurrent": {
        "task": {"name": "contracts.tiny:task", "timed": True},
        "model": NETWORKS["recurrent"],
    },
    "embedding": {
        "task": {"name": "contracts.tiny:worded"},
        "model": {"name": "contracts.tiny:Words"},
    },
}


def configured(kind: str, tables: dict[str, Any], out: Path) -> Work:
    """What a tiny configuration of one variant builds."""
    content = {
        "kind": kind,
        "title": "pair",
        "budget": "quick",
        "seeds": [0],
        "train": {"steps": 2, "batch_size": 4, "log_every": 1},
        "variant": [{"label": "pair", **tables}],
    }
    [config] = runs_of("pair", ExperimentConfig.model_validate(content))
    return build(config, Context(out=out))


def learns(kind: str, tables: dict[str, Any], out: Path) -> Any:
    """The process of a configuration, once it has learned and told how well."""
    work = configured(kind, tables, out)
    while not work.done:
        rows = work.advance()
        assert all(row["loss"] > 0 for row in rows if row["split"] == "train")
    assert 0 <= work.outcome()["test"]["accuracy"] <= 1
    return work.process


@cells
@pytest.mark.parametrize("each_step", [False, True], ids=["classifier", "tagger"])
def test_every_cell_in_a_classifier_and_a_tagger(
    cell: str, each_step: bool, tmp_path: Path
) -> None:
    task = {"name": "contracts.tiny:task", "timed": True, "each_step": each_step}
    model = {"cell": cell, "hidden_size": 4, **CELL_OPTIONS.get(cell, {})}
    training: Supervised = learns("supervised", {"task": task, "model": model}, tmp_path)
    assert type(training.model).__name__ == (
        "SequenceTagger" if each_step else "SequenceClassifier"
    )


@cells
def test_every_cell_as_the_body_of_a_learned_optimiser(cell: str, tmp_path: Path) -> None:
    optimiser = {"name": "lstm", "cell": cell, "hidden_size": 4, "layers": 1}
    options: dict[str, Any] = {"length": 100} if "decaynet" in cell else {}
    tables = {**LEARNERS["mlp"], "optimiser": {**optimiser, **options}}
    training: Supervised = learns("supervised", tables, tmp_path)
    assert isinstance(training.optimiser, Learned)
    assert isinstance(training.optimiser.rule, LSTMOptimiser)


@cells
def test_every_cell_in_a_continual_learner(cell: str, tmp_path: Path) -> None:
    tables = {
        "stream": {"name": "contracts.tiny:streamed", "timed": True},
        "model": {"cell": cell, "hidden_size": 4, **CELL_OPTIONS.get(cell, {})},
        "strategy": {"name": "er"},
    }
    learner: Learner = learns("continual", tables, tmp_path)
    assert learner.matrix.isfinite().all()


@pytest.mark.parametrize("network", sorted(LEARNERS))
@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_every_optimiser_trains_every_network(name: str, network: str, tmp_path: Path) -> None:
    tables = {**LEARNERS[network], "optimiser": {"name": name}}
    training: Supervised = learns("supervised", tables, tmp_path)
    entry = OPTIMISERS[name]
    made = training.optimiser
    assert isinstance(made.rule if isinstance(made, Learned) else made, entry.kind)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("network", sorted(NETWORKS))
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_with_every_network_and_optimiser(
    name: str, network: str, rule: str, tmp_path: Path
) -> None:
    timed = network == "recurrent"
    tables = {
        "stream": {"name": "contracts.tiny:streamed", "timed": timed, "identity": True},
        "model": NETWORKS[network],
        "optimiser": RULES[rule],
        "strategy": {"name": name, **STRATEGY_OPTIONS.get(name, {})},
    }
    kind: Any = STRATEGIES[name]
    refused = [why for needs, why in kind.limits.items() if needs in (network, rule)]
    if refused:
        with pytest.raises(InputError, match=rf"{re.escape(refused[0])}\. Try another"):
            configured("continual", tables, tmp_path)
        return
    learner: Learner = learns("continual", tables, tmp_path)
    assert isinstance(learner.strategy, kind)


def test_images_are_shown_as_each_network_reads_them(tmp_path: Path) -> None:
    for model in (NETWORKS["mlp"], LEARNERS["convnet"]["model"], NETWORKS["recurrent"]):
        learns("supervised", {"task": {"name": "digits"}, "model": model}, tmp_path)


def test_limits_are_held_from_a_configuration(tmp_path: Path) -> None:
    tables = {
        "stream": {"name": "permuted_sequences", "tasks": 2, "identity": True},
        "model": {"cell": "gru", "hidden_size": 4},
        "strategy": {"name": "hat"},
    }
    with pytest.raises(InputError, match=re.escape(HAT.limits["recurrent"])):
        configured("continual", tables, tmp_path)
