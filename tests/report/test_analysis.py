"""The page about a trained run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.report import build, inside
from attractor.report.analysis import analysis
from attractor.report.chapter import chapter
from attractor.report.inside import Inside, looked_into
from attractor.report.seen import eigenvalues_told
from attractor.runs.read import load_runs
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


def test_fixed_points_and_eigenvalues_are_told_in_sentences(tmp_path: Path) -> None:
    config = tiny("train.steps=5")
    train(config, tmp_path)
    text = analysis(run_folder(tmp_path, config))
    assert re.search(
        r"Under the mean input, \d+ of 64 starts led to one stable fixed point\.", text
    )
    assert re.search(r"modulus 0\.\d+, so a disturbance fades to 1/e in about [\d.]+ steps\.", text)
    assert "To second order, a gradient step lowers the loss for" in text
    assert "moved by half its own length, the loss rises from" in text
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', text, re.DOTALL)[0])
    (space,) = (one["layout"] for one in figures if "scene" in one["layout"])
    assert "height" not in space
    assert set(space["margin"].values()) == {0}
    titles = [space["scene"][f"{name}axis"]["title"]["text"] for name in "xyz"]
    assert [re.sub(r"\d+%", "N%", one) for one in titles] == [
        f"direction {place} (N%)" for place in (1, 2, 3)
    ]


def test_eigenvalues_that_are_all_positive_have_no_most_negative_one() -> None:
    assert eigenvalues_told([3.0, 0.6]).endswith(
        "none of the 2 is negative, and the smallest is 0.6."
    )
    assert eigenvalues_told([3.0, -0.6]).endswith("and the most negative of the 2 is -0.6.")


def test_the_best_variants_are_looked_into_and_the_others_named(
    tmp_path: Path, write_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, rate in enumerate((0.5, 0.9, 0.7, 0.8, 0.6)):
        folder = write_run(tmp_path, f"{number} net")
        done = json.loads((folder / "done.json").read_text())
        (folder / "done.json").write_text(json.dumps(done | {"test": {"accuracy": rate}}))
    write_run(tmp_path, "9 net", status="unfinished")
    monkeypatch.setattr(inside, "_inside", lambda label, run, *_: Inside(label, run.seed, (), ()))
    runs = load_runs([tmp_path])
    (found,) = looked_into(runs).values()
    assert [one.label for one in found] == ["1 net", "3 net", "2 net", "4 net"]
    said = "4 of 6 variants, the best first; not looked into: 0 net and 9 net."
    assert chapter(runs, found).looked_into == said
    assert said in build(runs, inside={"copy-memory/quick": found})


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folder of a run"):
        analysis(tmp_path)
