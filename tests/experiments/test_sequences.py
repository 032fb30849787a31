"""The sequence experiments: every published one is there, in full and quickly."""

from pathlib import Path

import pytest

from attractor.experiments.table import load
from attractor.experiments.train import build, runs_of
from attractor.runs.drive import Context
from attractor.tasks.data import data_root

NAMES = (
    "psmnist",
    "copy",
    "variable-copy",
    "denoise",
    "ptb-char",
    "ptb-word",
    "strokes",
    "ntm-copy",
    "ntm-recall",
    "snli",
    "draw",
    "addition",
    "rows-mnist",
    "copy-200",
    "variable-copy-200",
    "copy-random-labels",
    "copy-2000",
    "copy-reset",
    "nru-claims",
    "decay-regularisers",
    "ptb-char-tardis",
    "tardis-rewards",
)
QUICK = [f"{name}-quick" for name in NAMES]
FOLDERS = {
    "psmnist": "MNIST",
    "ptb": "ptb",
    "strokes": "mnist-strokes",
    "snli": "sick",
    "draw": "MNIST",
    "rows": "FashionMNIST",
    "decay-regularisers": "MNIST",
}


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_full_and_a_quick_budget(name: str) -> None:
    budgets = {load(one)[1].budget for one in (name, f"{name}-quick")}
    assert budgets == {"full", "quick"}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_every_variant_of_a_quick_one_takes_a_step(name: str, tmp_path: Path) -> None:
    for start, folder in FOLDERS.items():
        if name.startswith(start) and not (data_root() / folder).exists():
            pytest.skip(f"{name} needs {folder}")
    title, experiment = load(name, ["train.log_every=1", "seeds=[0]"])
    for config in runs_of(title, experiment, []):
        context = Context(data=None, out=tmp_path, stop=lambda: False)
        (row,) = build(config, context).process.advance()
        assert row["loss"] > 0
