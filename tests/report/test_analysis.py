"""The page about a trained run."""

import json
import re
from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.experiments.train import run_folder, train
from attractor.report.analysis import analysis
from experiments.helpers import tiny


def test_a_page_says_what_is_seen(tmp_path: Path) -> None:
    config = tiny("train.steps=5")
    train(config, tmp_path / "runs")
    folder = run_folder(tmp_path / "runs", config)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = analysis(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', text, re.DOTALL)[0])
    sentences = re.findall(r'<p class="caption">(.*?)</p>', text, re.DOTALL)
    assert len(figures) == len(sentences) - 1 >= 4
    assert all(re.search(r"\d", one) for one in sentences[:-1])
    assert "https://" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folder of a run"):
        analysis(tmp_path)
