"""Sweeps over two settings have a map of what they came to."""

import json
from pathlib import Path
from typing import Any

from attractor.report.chapter import chapter
from attractor.report.figures import Figure
from attractor.runs.read import load_runs


def swept(
    root: Path,
    write_run: Any,
    cells: list[str],
    rates: list[float],
    without: tuple[tuple[str, float], ...] = (),
) -> Figure | None:
    """Accuracies that are known: 0.5 in the first place, 0.1 more a row, 0.01 more a column."""
    for row, cell in enumerate(cells):
        for column, rate in enumerate(rates):
            for seed in range(2):
                status = "failed" if (cell, rate) in without else "done"
                config = {"model": {"cell": cell}, "optimiser": {"lr": rate}}
                folder = write_run(
                    root, f"{row}-{column} {cell}", seed, status=status, config=config
                )
                if status == "done":
                    done = json.loads((folder / "done.json").read_text())
                    score = 0.5 + 0.1 * row + 0.01 * column + 0.002 * seed
                    done["test"] = {"accuracy": score}
                    (folder / "done.json").write_text(json.dumps(done))
    return chapter(load_runs([root])).grid


def test_a_sweep_over_two_settings_has_a_map(tmp_path: Path, write_run: Any) -> None:
    made = swept(tmp_path, write_run, ["<b>", "gru"], [0.1, 0.01, 10.0], without=(("gru", 0.1),))
    assert made is not None
    map_, numbers = made.traces
    assert map_["x"] == ["0.01", "0.1", "10.0"]  # by size
    assert map_["y"] == ["&lt;b&gt;", "gru"]
    assert map_["z"] == [[0.511, 0.501, 0.521], [0.611, None, 0.621]]
    assert numbers["text"] == ["51.1%", "50.1%", "52.1%", "61.1%", "62.1%"]
    assert made.layout["xaxis"]["title"]["text"] == "optimiser.lr"
    assert made.layout["yaxis"]["title"]["text"] == "model.cell"
    assert made.title == "Accuracy by setting"
    assert made.said == "the highest mean, 62.1%, is at model.cell gru and optimiser.lr 10.0"


def test_what_is_no_grid_has_no_map(tmp_path: Path, write_run: Any) -> None:
    assert swept(tmp_path / "line", write_run, ["gru"], [0.1, 0.2, 0.3]) is None
    holes = tuple(("gru", rate) for rate in (0.1, 0.2))
    assert swept(tmp_path / "holes", write_run, ["gru", "nru"], [0.1, 0.2, 0.3], holes) is None
    for number, cell in enumerate(("a", "b", "c")):  # as many places as variants squared
        config = {"model": {"cell": cell}, "optimiser": {"lr": number}}
        write_run(tmp_path / "each", cell, config=config)
    assert chapter(load_runs([tmp_path / "each"])).grid is None
