"""Synthetic run folders."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.report import build, write
from attractor.runs.read import load_runs

WriteRun = Callable[..., Path]
RATES = {"LSTM": 0.006, "GRU": 0.009, "NRU": 0.014}


def write_run(
    root: Path,
    label: str = "LSTM",
    seed: int = 0,
    *,
    status: str = "done",
    steps: int = 1000,
    every: int = 50,
    config: dict[str, Any] | None = None,
) -> Path:
    """Write the folder of a run whose loss falls as an exponential, at the label's own rate."""
    settings: dict[str, Any] = {
        "version": 1,
        "experiment": "copy-memory",
        "title": "Copying a sequence after a long wait",
        "description": "Ten symbols must be remembered for 100 steps and then repeated.",
        "budget": "quick",
        "label": label,
        "seed": seed,
        "task": {"name": "copy", "length": 10, "delay": 100},
        "model": {"cell": label.lower(), "hidden_size": 128},
        "train": {"steps": steps, "batch_size": 32, "lr": 0.001},
    } | (config or {})
    folder = root / str(settings["experiment"]) / f"{label.encode().hex()[:12]}-{seed}"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(tomli_w.dumps(settings), encoding="utf-8")
    environment = {"python": "3.11.4", "torch": "2.13.0", "threads": 2, "started": "2026-03-01"}
    (folder / "environment.json").write_text(json.dumps(environment))

    rate = RATES.get(label, 0.005)
    last = steps if status == "done" else steps // 2
    lines = []
    loss = 0.0
    for step in range(every, last + 1, every):
        wave = 1 + 0.1 * math.sin(step * (seed + 2) / 70)
        loss = 2.3 * math.exp(-rate * step / 2) * wave + 0.02 + 0.004 * seed
        lines.append({"step": step, "split": "train", "loss": loss, "gradient_norm": 2 * loss})
        if step % (2 * every) == 0:
            score = {"loss": 1.1 * loss, "accuracy": 1 - 0.4 * loss / 1.3}
            lines.append({"step": step, "split": "valid", **score})
    test = {"loss": 1.1 * loss, "accuracy": 1 - 0.4 * loss / 1.3}
    if status == "done":
        lines.append({"step": steps, "split": "test", **test})
        done = {"steps": steps, "seconds": 61.0 + seed, "parameters": 68736, "test": test}
        (folder / "done.json").write_text(json.dumps(done))
    elif status == "failed":
        failed = {"step": last, "reason": "the loss became NaN"}
        (folder / "failed.json").write_text(json.dumps(failed))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if status == "unfinished":
        text += '{"step": 5'
    (folder / "metrics.jsonl").write_text(text)
    return folder


def as_today(folder: Path, **more: Any) -> Path:
    """Give a run the configuration that its experiment and label have today, and more tables."""
    (run,) = load_runs([folder])
    name, experiment = load(run.experiment, [f"seeds=[{run.seed}]"])
    (found,) = runs_of(name, experiment, [run.label])
    content = found.model_dump(exclude_none=True) | {"budget": run.budget}
    for table, values in more.items():
        content[table] = content[table] | values
    (folder / "config.toml").write_text(tomli_w.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(name="write_run", scope="session")
def _write_run() -> WriteRun:
    return write_run


@pytest.fixture(scope="session")
def runs_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three variants with three seeds each; of NRU one failed and one is unfinished."""
    root = tmp_path_factory.mktemp("runs")
    for label in RATES:
        for seed in range(3):
            status = {("NRU", 1): "failed", ("NRU", 2): "unfinished"}.get((label, seed), "done")
            write_run(root, label, seed, status=status)
    return root


@pytest.fixture(scope="module")
def address(runs_root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write(build(load_runs([runs_root])), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def visit(browser: Any) -> Any:
    """Opens an address and keeps what the page says and asks for, which must be nothing."""

    def open_page(address: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.complaints = []
        page.requests = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        page.wait_for_function("'ready' in document.documentElement.dataset", timeout=60_000)
        return page

    return open_page
