"""The page about a trained run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.report.analysis import analysis
from experiments.helpers import tiny, tiny_stream


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


def test_learners_of_streams_and_of_levels_have_pages_too(tmp_path: Path) -> None:
    short = ["train.steps=2", "train.window=2", "train.after=2", "train.held_out=5"]
    _, levels = load("lifelong-copy-quick", short)
    level = runs_of("levels", levels, ["Small LSTM"])[0]
    for config in (tiny_stream(), level):
        train(config, tmp_path)
        text = analysis(run_folder(tmp_path, config))
        assert text.count('class="plot"') >= 2


@pytest.mark.browser
def test_figures_are_drawn_in_a_browser(tmp_path: Path, browser: Any) -> None:
    config = tiny("train.steps=5")
    train(config, tmp_path)
    (tmp_path / "page.html").write_text(analysis(run_folder(tmp_path, config)))
    page, complaints = browser.new_page(), []  # of 3-d plots the driver has remarks: no errors
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".plot .main-svg").count() >= page.locator(".plot").count() >= 4
    assert complaints == []
    page.close()


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folder of a run"):
        analysis(tmp_path)
