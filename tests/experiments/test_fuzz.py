"""Two thousand damaged inputs, the same each time: each works, or is refused in a sentence."""

import copy
import datetime
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from attractor.cli.tables import results_table
from attractor.errors import InputError
from attractor.experiments.files import read_toml
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.report import build
from attractor.results import summary
from attractor.runs.read import read_runs
from experiments.helpers import TINY

CONFIGURATIONS, FOLDERS = 1400, 600
FILES = [TINY.with_name(name) for name in ("tiny.toml", "tiny-stream.toml", "tiny-optimisers.toml")]


def nested(depth: int, kind: type) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if kind is dict else [value]
    return value


ODD: list[Any] = [
    *(0, -1, 1, 3, 10**18, 10**400, -(10**400), 0.5, -0.0, 1e308, -1e308, 1e-320),
    *(float("nan"), float("inf"), True, False, "", " ", ".", "..", "../../../x", "/etc/passwd"),
    *("x" * 5000, "\x1b[31mred\x07", "[/b]", "LSTM [big]", "%{x}", "</script>", "\u202e", "\n"),
    *(
        "supervised",
        "continual",
        "tiny.toml",
        "a\x00b",
        "no.such:Thing",
        "os:system",
        ":",
        "os:path.x",
    ),
    *([], [[]], [1, "a"], [{}], ["GRU", "GRU"], {}, {"name": 3}, {"name": "er"}, {"a": {"b": 1}}),
    *(nested(30, list), nested(30, dict), datetime.date(2026, 1, 2)),
]
KEYS = [
    *("base", "kind", "version", "seeds", "budget", "title", "label", "experiment", "seed"),
    *("variant", "model", "train", "task", "stream", "network", "strategy", "meta", "optimiser"),
    *("steps", "tasks", "name", "grid", "also", "features", "cell", "hidden", "compose", "changes"),
    *("", "x" * 3000, "a.b", "\x1b[2J", "[/b]", "split", "step", "test", "loss", "accuracy"),
]
TEXTS = [
    "[" * 3000 + "]" * 3000,
    '{"a":' * 3000 + "1" + "}" * 3000,
    "a" + ".a" * 3000 + " = 1\n",
    "x = " + "[" * 3000 + "]" * 3000 + "\n",
    "x = " + "{a=" * 3000 + "1" + "}" * 3000 + "\n",
    "x = " + "9" * 9000 + "\n",
    '{"step": ' + "9" * 9000 + ', "split": "valid", "loss": 1}\n',
    '{"step": 1, "split": "valid", "loss": ' + "9" * 5000 + "}\n",
    "\x00\xff",
    "null\n",
]


def tables(value: Any) -> Iterator[Any]:
    """A value and all tables and lists in it."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from tables(inner)


def changed(content: Any, chance: random.Random) -> None:
    """Damage one place of a nested value."""
    places = [one for one in tables(content) if one]
    if not places:
        return
    place = chance.choice(places)
    key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
    match chance.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[chance.choice(KEYS)] = copy.deepcopy(chance.choice([place[key], *ODD]))
        case _:
            place[key] = copy.deepcopy(chance.choice(ODD))


def torn(raw: bytes, chance: random.Random) -> bytes:
    """Damage the bytes of a file."""
    at = chance.randrange(len(raw) + 1)
    match chance.randrange(4):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
        case 2:
            return raw[:at] + raw[chance.randrange(len(raw) + 1) :]
        case _:
            return raw[:at] + chance.choice(TEXTS).encode() + raw[at:]


def option(chance: random.Random) -> str:
    """What may follow ``--set``."""
    parts = [chance.choice(KEYS) for _ in range(chance.choice([1, 2, 2, 3, 40]))]
    value = chance.choice([*ODD, *TEXTS])
    return ".".join(parts) + chance.choice(["=", "=", "=", ""]) + str(value)


def refusal(work: Callable[[], None]) -> str:
    """The sentence in which an input is refused; all other exceptions are mistakes of ours."""
    try:
        work()
    except InputError as error:
        return str(error)
    return ""


def use(path: Path, changes: list[str]) -> None:
    """All that is done with a configuration before it is run."""
    name, experiment = load(str(path), changes)
    out = path.with_name("out")
    for run in runs_of(name, experiment):
        assert (out / run.experiment / run.id).resolve().parent.parent == out
        assert run.to_toml()
        assert run.total is None or run.total > 0


def show(root: Path) -> None:
    """All that is done with the runs of a folder."""
    runs, damaged = read_runs([root])
    assert any(run.folder == root / "gru-0" for run in runs)
    assert "GRU" in build(runs, damaged=damaged)
    results_table(summary(runs))


@pytest.mark.parametrize("part", range(4))
def test_configurations(tmp_path: Path, part: int) -> None:
    chance = random.Random(f"configurations {part}")
    for file in FILES:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    fine = 0
    for number in range(part, CONFIGURATIONS, 4):
        path = tmp_path / f"odd-{number}.toml"
        content = read_toml(chance.choice(FILES))
        for _ in range(chance.choice([0, 1, 1, 2, 5])):
            changed(content, chance)
        raw = tomli_w.dumps(content).encode()
        path.write_bytes(torn(raw, chance) if chance.random() < 0.3 else raw)
        changes = [option(chance) for _ in range(chance.choice([0, 0, 0, 1, 2]))]
        refused = refusal(partial(use, path, changes))
        assert len(refused) < 2000, refused[:300]
        fine += not refused
    assert fine > 20  # not all damage is noticed, as when a title changes


def run_folder(root: Path, seed: int) -> Path:
    """The folder of a run as it should be."""
    folder = root / f"gru-{seed}"
    folder.mkdir(parents=True)
    config = {"experiment": "x", "title": "X", "budget": "quick", "label": "GRU", "seed": seed}
    config |= {"task": {"name": "digits"}, "train": {"steps": 40, "lr": 0.1}}
    (folder / "config.toml").write_text(tomli_w.dumps(config))
    test = {"accuracy": 0.5 + seed / 10, "loss": 1.5}
    rows: list[Any] = [{"step": n, "split": "valid", "loss": 2 - n / 40} for n in range(0, 40, 10)]
    rows += [{"step": 40, "split": "test", **test}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {
        "torch": "2",
        "threads": 1,
        "started": "2026-01-01",
        "command": "attractor run x",
    }
    (folder / "environment.json").write_text(json.dumps(environment))
    done = {"steps": 40, "seconds": 3.5, "parameters": 12, "test": test}
    (folder / ("failed.json" if seed == 7 else "done.json")).write_text(json.dumps(done))
    return folder


def damage(folder: Path, chance: random.Random) -> None:
    path = chance.choice(sorted(folder.iterdir()))
    raw = path.read_bytes()
    match chance.randrange(5):
        case 0:
            path.unlink()
            if chance.random() < 0.5:
                path.mkdir()
        case 1:
            path.write_bytes(torn(raw, chance))
        case _ if path.suffix == ".toml":
            content = read_toml(path)
            changed(content, chance)
            path.write_text(tomli_w.dumps(content))
        case _ if path.suffix == ".json":
            content = json.loads(raw)
            changed(content, chance)
            path.write_text(json.dumps(content, default=str))
        case _:
            rows = [json.loads(line) for line in raw.splitlines()]
            changed(rows, chance)
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


@pytest.mark.parametrize("part", range(4))
def test_run_folders(
    tmp_path: Path,
    part: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A whole run is always shown beside a damaged one."""
    monkeypatch.setattr(import_module("attractor.report.build"), "packed_script", str)
    chance = random.Random(f"folders {part}")
    for number in range(part, FOLDERS, 4):
        root = tmp_path / str(number)
        run_folder(root, 0)
        for _ in range(chance.choice([1, 1, 3])):
            try:
                damage(run_folder(root / str(_), chance.choice([1, 2, 7])), chance)
            except (json.JSONDecodeError, IsADirectoryError):
                continue
        refused = refusal(partial(show, root))
        shown = capsys.readouterr().out
        assert "one run of" in refused or "GRU" in shown  # unless two are of one seed
        assert "\x1b" not in shown
