"""``attractor meta``: what diverges and what was mistyped get one sentence each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attractor.optimisers import load_rule
from experiments.helpers import TINY_OPTIMISERS as LEARNED
from experiments.helpers import called

WILD = ("--set", "meta.perturb=1e38")


def plain(text: str) -> Any:
    """What JSON says, but for infinities and NaN, which it does not have."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_an_optimiser_that_diverges_does_not_hide_the_others() -> None:
    command = ("meta", "test", "sgd:lr=1e38", "sgd:lr=0.1", "--steps", "5", "--seeds", "2")
    done = called(*command)
    assert done.returncode == 0, done.stderr
    assert "sgd:lr=1e38, seed 1: diverged" in done.stderr
    assert re.search(r"sgd:lr=0.1 +\d\.\d+ +\d\.\d+ +\d\.\d+ +\d\.\d+ +2 +0", done.stdout)
    assert re.search(r"sgd:lr=1e38 +- +- +- +- +2 +2", done.stdout)
    rows = plain(called(*command, "--json", "-q").stdout)
    assert [(row["optimiser"], row["diverged"]) for row in rows] == [
        ("sgd:lr=0.1", 0),
        ("sgd:lr=1e38", 2),
    ]


@pytest.mark.parametrize("learners", [1, 10])
def test_a_meta_training_that_diverges_keeps_the_last_good_weights(
    learners: int, tmp_path: Path
) -> None:
    out = tmp_path / "rule.safetensors"
    few = ("--set", f"meta.learners={learners}")
    done = called("meta", "train", LEARNED, "--only", "LSTM", "--out", out, *WILD, *few, "-q")
    kept = tmp_path / "rule.diverged.safetensors"
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert re.fullmatch(
        r"attractor: LSTM, seed 0: learners diverged in .*the rule's last good weights are kept, "
        rf"which are its initial ones. Try .* The weights are in {kept}\.\n",
        done.stderr,
    )
    assert not out.exists()
    assert all(p.isfinite().all() for p in load_rule(kept).parameters())
    card = plain(called("meta", "card", kept, "--json").stdout)
    assert card["diverged"].startswith("learners diverged")
    assert card["updates of the rule"] == 0


def test_a_run_whose_meta_training_diverges_is_not_done(tmp_path: Path) -> None:
    done = called("run", LEARNED, "--only", "LSTM", "--seed", "0", *WILD, "--out", tmp_path, "-q")
    assert done.returncode == 1
    assert "learners diverged in all rounds (2)" in done.stderr
    assert list(tmp_path.rglob("failed.json"))
    assert not list(tmp_path.rglob("done.json"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["test", "sgd:lr=-1"], "that SGD can use, but got {'lr': -1.0}: Invalid learning"),
        (["train", LEARNED, "--only", "LSTM", "--out", "rule"],
         "to end in .safetensors, but got rule. Try rule.safetensors"),
        (["train", LEARNED, "--only", "LSTM", "--out", "r.safetensors", "--set", "meta.steps=[5]"],
         r"steps to be a whole number .* but got \[5\]"),
    ],
)  # fmt: skip
def test_bad_input(arguments: list[str | Path], text: str, tmp_path: Path) -> None:
    done = called("meta", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.search(text, " ".join(done.stderr.split())), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())
