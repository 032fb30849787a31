"""What is laid over what: tables that name another thing take its place, options are added."""

import inspect
from typing import Any

import pytest

from attractor.experiments.changes import NO_LAYERS, laid_over, merged, name_of
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.models.table import MODELS
from experiments.helpers import TINY, TINY_STREAM, tiny, tiny_optimiser, tiny_stream

LSTM = {"cell": "lstm", "hidden_size": 6, "num_layers": 2, "t_max": 9, "dropout": 0.2}


def test_a_table_is_named_by_its_cell_before_its_name() -> None:
    assert name_of({"name": "recurrent", "cell": "nru"}) == "nru"
    assert name_of({"name": "mlp", "hidden": [3]}) == "mlp"
    assert name_of({"hidden": [3]}) is None


@pytest.mark.parametrize(
    ("before", "over", "after"),
    [
        ({"name": "adam", "lr": 1}, {"lr": 2}, {"name": "adam", "lr": 2}),
        (
            {"name": "adam", "lr": 1},
            {"name": "adam", "eps": 3},
            {"name": "adam", "lr": 1, "eps": 3},
        ),
        ({"name": "adam", "lr": 1}, {"name": "lstm"}, {"name": "lstm"}),
        ({"lr": 1}, {"name": "sgd"}, {"name": "sgd", "lr": 1}),
        ({}, {"name": "sgd"}, {"name": "sgd"}),
    ],
)
def test_options_stay_with_what_they_are_of(
    before: dict[str, Any], over: dict[str, Any], after: dict[str, Any]
) -> None:
    assert laid_over({"optimiser": before}, {"optimiser": over}) == {"optimiser": after}


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ({"cell": "lstm", "t_max": 5}, {**LSTM, "t_max": 5}),
        ({"cell": "nru"}, {"cell": "nru", "hidden_size": 6, "num_layers": 2, "dropout": 0.2}),
        ({"cell": "nru", "hidden_size": 3},
         {"cell": "nru", "hidden_size": 3, "num_layers": 2, "dropout": 0.2}),
        ({"name": "mlp"}, {"name": "mlp", "hidden": [6, 6]}),
        ({"name": "mlp", "hidden": [4]}, {"name": "mlp", "hidden": [4]}),
    ],
)  # fmt: skip
def test_a_network_keeps_its_sizes_but_not_the_options_of_its_cell(
    model: dict[str, Any], after: dict[str, Any]
) -> None:
    assert laid_over({"model": LSTM}, {"model": model}) == {"model": after}


def test_the_widths_of_a_perceptron_go_to_a_cell() -> None:
    found = laid_over(
        {"model": {"name": "mlp", "hidden": [7], "init": "he"}}, {"model": {"cell": "gru"}}
    )
    assert found == {"model": {"cell": "gru", "hidden": [7]}}


def test_the_widths_of_a_perceptron_do_not_go_where_none_are_taken() -> None:
    without = {
        name
        for name, one in MODELS.items()
        if "hidden" not in inspect.signature(one.make).parameters
    }
    assert {*NO_LAYERS} == without
    found = laid_over({"model": {"name": "mlp", "hidden": [7]}}, {"model": {"name": "resnet"}})
    assert found == {"model": {"name": "resnet"}}


def test_tables_in_tables_follow_the_same_rule() -> None:
    before = {"model": {"name": "resnet", "depth": 18}, "steps": 3}
    assert merged(before, {"model": {"depth": 34}})["model"] == {"name": "resnet", "depth": 34}
    assert merged(before, {"model": {"name": "convnet"}}) == {
        "model": {"name": "convnet"},
        "steps": 3,
    }


def test_nothing_is_changed_in_place() -> None:
    before = {"optimiser": {"name": "adam", "betas": {"a": 1}}}
    laid_over(before, {"optimiser": {"betas": {"a": 2}, "lr": 1}})
    assert before == {"optimiser": {"name": "adam", "betas": {"a": 1}}}


def test_a_named_cell_is_the_variant_that_has_it_or_goes_alone_in_the_sizes_of_the_first() -> None:
    name, experiment = load(str(TINY), ["model.cell=lstm", "seeds=[0]"])
    assert [run.label for run in runs_of(name, experiment)] == ["LSTM"]
    name, experiment = load(str(TINY), ["model.cell=nru", "seeds=[0]"])
    (run,) = runs_of(name, experiment)
    assert run.label == "nru"
    assert run.model_dump()["model"] == {
        **{"cell": "nru", "hidden_size": 6, "num_layers": 2, "dropout": 0.2}
    }


def test_a_variant_that_is_named_is_changed_whatever_it_chooses() -> None:
    gru = tiny("model.cell=nru", label="GRU")
    assert gru.label == "GRU (model.cell=nru)"
    assert gru.model["hidden_size"] == 6
    gem = tiny_stream("strategy=agem", label="GEM")
    assert (gem.label, gem.strategy) == ("GEM (strategy.name=agem)", {"name": "agem"})
    name, experiment = load(str(TINY_STREAM), ["strategy=agem"])
    (alone,) = runs_of(name, experiment)
    assert alone.model_dump()["strategy"] == {"name": "agem"}


def test_another_optimiser_leaves_the_rest_of_its_variant() -> None:
    found = tiny_optimiser("MTL2L, PES", "optimiser=sgd", "optimiser.lr=0.5")
    assert found.optimiser == {"name": "sgd", "lr": 0.5}
    assert found.meta is not None
    assert found.meta.method == "pes"
