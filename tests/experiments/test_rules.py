"""Meta-training into a file: stopped and taken up, with a card; and optimisers by name."""

import math
import re
from pathlib import Path

import pytest
import torch

from attractor.errors import InputError
from attractor.experiments.comparison import compare_on, rows
from attractor.experiments.kinds.supervised import SupervisedRun
from attractor.experiments.rules import named, read_card, train_rule
from attractor.meta import MetaTrainer
from attractor.meta.settings import measured
from attractor.optimisers import Rule, load_rule, shipped
from attractor.training.process import Row, Stopped
from experiments.helpers import tiny_optimiser as tiny


def weights(rule: Rule) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in rule.parameters()])


def stopped(config: SupervisedRun, out: Path) -> Rule:
    """The rule when its training is stopped after every single update."""
    while True:
        try:
            return train_rule(config, out, stop=lambda: True)
        except Stopped:
            assert not out.exists()


@pytest.mark.parametrize("label", ["LSTM", "MTL2L, PES"])
def test_stopped_training_gives_the_same_file(label: str, tmp_path: Path) -> None:
    config = tiny(label)
    whole = train_rule(config, tmp_path / "whole.safetensors")
    broken = stopped(config, tmp_path / "broken.safetensors")
    assert torch.equal(weights(whole), weights(broken))
    assert torch.equal(weights(load_rule(tmp_path / "broken.safetensors")), weights(whole))
    cards = [read_card(str(tmp_path / f"{name}.safetensors")) for name in ("whole", "broken")]
    for card in cards:
        card.pop("seconds")
    assert cards[0] == cards[1]
    assert not (tmp_path / "broken.safetensors.training").exists()


def test_a_rule_with_a_cell_of_ones_own_is_trained_into_a_file(tmp_path: Path) -> None:
    cell = "attractor.cells.gru:GRUCell"
    config = tiny("LSTM", f"optimiser={{name='lstm', hidden_size=3, cell='{cell}'}}")
    assert train_rule(config, tmp_path / "rule.safetensors").options["cell"] == cell


def test_a_card_tells_tasks_budget_seed_and_curve(tmp_path: Path) -> None:
    train_rule(tiny("LSTM"), tmp_path / "rule.safetensors")
    card = read_card(str(tmp_path / "rule.safetensors"))
    assert card["kind"] == "lstm"
    assert card["tasks"] == [{"name": "digits"}]
    assert card["model"] == {"name": "mlp", "hidden": [6], "dropout": 0.1}
    assert card["meta-training"]["learners"] == 2
    assert (card["seed"], card["batch size"], len(card["curve"])) == (0, 8, 6)


def test_learners_that_were_given_up_leave_no_hole_in_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MetaTrainer.advance

    def advance(trainer: MetaTrainer) -> list[Row]:
        first = trainer.estimator.round == 0
        rows = whole(trainer)
        return [] if first else rows

    assert measured(math.nan, 1.0) == measured(1.0, math.inf) == []
    monkeypatch.setattr(MetaTrainer, "advance", advance)
    train_rule(tiny("LSTM"), tmp_path / "rule.safetensors")
    card = read_card(str(tmp_path / "rule.safetensors"))
    assert (len(card["curve"]), card["updates of the rule"]) == (3, 3)


@pytest.mark.parametrize("label", ["LSTM", "MTL2L, PES"])
@pytest.mark.parametrize("steps", ["[5]", "[0, 5]", "-4", "[]"])
def test_steps_are_checked(label: str, steps: str, tmp_path: Path) -> None:
    match = f"steps to be a whole number of at least 1.*but got {re.escape(steps)}. Try steps=100"
    with pytest.raises(InputError, match=match):
        train_rule(tiny(label, f"meta.steps={steps}"), tmp_path / "rule.safetensors")


def test_checkpoints_of_another_training_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "rule.safetensors"
    with pytest.raises(Stopped):
        train_rule(tiny("LSTM"), out, stop=lambda: True)
    with pytest.raises(InputError, match="but they are of lstm-0-.*another --out"):
        train_rule(tiny("LSTM", "meta.lr=0.1"), out)


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SGD is made by hand"):
        train_rule(tiny("SGD"), tmp_path / "rule.safetensors")


def test_optimisers_by_name(tmp_path: Path) -> None:
    train_rule(tiny("LSTM"), tmp_path / "rule.safetensors")
    names = [str(tmp_path / "rule.safetensors"), "sgd:lr=0.5,momentum=0.9", *shipped()[:1]]
    curves = compare_on(names, "digits", hidden=[8], steps=40, batch_size=32, seeds=[0, 1])
    table = rows(curves)
    assert {row["optimiser"] for row in table} == set(names)
    assert table[0]["loss"] <= table[-1]["loss"]
    assert all(row["seeds"] == 2 for row in table)
    first = {curve.train[0] for curve in curves if curve.seed == 0}
    assert len(first) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdg", "known optimiser.*'sgd'"),
        ("sgd:lr=big", "options as sgd:lr=0.1,momentum=0.9, but got 'sgd:lr=big'"),
        ("sgd:rate=1", "known option of SGD .* got 'rate'"),
        ("sgd:lr=0.1,nesterov=1", "options that SGD can use, .*Nesterov .* momentum"),
        ("lstm/none", "known pretrained lstm"),
        ("meta_sgd", "comes with weights .*but meta_sgd does not: it is .* of one size"),
        ("global", "comes with weights .*but global does not"),
        ("none.safetensors", "there is no none.safetensors"),
    ],
)
def test_unknown_names(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.compile(message, re.DOTALL)):
        named(text)
