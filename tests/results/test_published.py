"""Published numbers belong to an experiment, a variant of it, and a paper that is cited."""

import tomllib
from pathlib import Path

import pytest

from attractor import results
from attractor.experiments.table import EXPERIMENTS, load
from attractor.references import year
from attractor.results import published

CONTENT = tomllib.loads(Path(str(results.__file__)).with_name("published.toml").read_text())
NAMES = sorted({table["experiment"] for table in CONTENT["number"]})


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_variants_and_documents_are_cited(name: str) -> None:
    assert name in EXPERIMENTS
    labels = load(name)[1].variants()
    for number in published(name):
        assert number.row in labels
        assert year(number.document)


def test_shares_are_shares() -> None:
    for name in NAMES:
        for number in published(name):
            if number.column in ("accuracy", "sparsity"):
                assert 0 < number.value < 1
