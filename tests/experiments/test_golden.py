"""Small runs of every kind give the numbers that they gave before, byte for byte.

The files are of one processor and one torch, where bits can be compared; elsewhere the test is
skipped. ``python tests/experiments/test_golden.py FOLDER`` writes them again, for a change that is
meant to move bits and says so.

When the kinds of runs became one loop, one maker and one form of data, these moved, and no other
number did, to the last bit:

- accuracies are exact shares (0.076), where they were means in single precision (0.07599999755);
- every row of a supervised run has ``gradient_norm``, and the first step is logged like all others,
  by ``log_every``;
- the rows of a stream are of the split ``test``, which is what they are measured on;
- features are pretrained by the one loop, which draws other batches;
- evolution strategies draw the first batch of a pair before they move the rule;
- streams also tell that their training loss should shrink;
- ``done.json`` tells under ``measures`` what each number is, and under ``split`` whose it is.

Since then streams also end with ``task_spread``, ``memory_bytes`` and ``seconds_per_task`` (a time,
which is not kept here); no number moved.
"""

import json
import re
import sys
from pathlib import Path

import pytest
import torch

import attractor.cells.layer.recurrent as recurrent
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.tasks.images.task import Images
from attractor.tasks.streams.incremental import SETTINGS

GOLDEN = Path(__file__).with_name("golden")
HERE = {"torch": torch.__version__, "processor": torch.backends.cpu.get_cpu_capability()}


def runs() -> dict[str, RunConfig]:
    """The runs by the name of their files."""
    found = {}
    for path in sorted(GOLDEN.glob("*.toml")):
        name, experiment = load(str(path))
        for config in runs_of(name, experiment):
            label = re.sub(r"[^a-z0-9]+", "-", config.label.lower())
            found[f"{name}-{label}"] = config
    return found


def small_images(half: str, root: object, batches: int = 5) -> Images:
    """Images of 8 by 8 bytes, the brighter the later their class."""
    y = torch.arange(40) % 10
    noise = torch.randint(20, (40, 3, 8, 8), generator=torch.Generator().manual_seed(len(half)))
    return Images((noise + 20 * y[:, None, None, None]).to(torch.uint8), y)


def numbers(config: RunConfig, out: Path) -> tuple[str, dict[str, object]]:
    train(config, out)
    folder = run_folder(out, config)
    return (folder / "metrics.jsonl").read_text(), json.loads((folder / "done.json").read_text())


@pytest.mark.skipif(
    json.loads((GOLDEN / "environment.json").read_text()) != HERE,
    reason="bits are compared where they were written",
)
@pytest.mark.parametrize("name", runs())
def test_same_bytes(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"]._replace(load=small_images))
    monkeypatch.setattr(recurrent, "fused", no_kernel)
    rows, done = numbers(runs()[name], tmp_path_factory.mktemp("golden"))
    assert rows == (GOLDEN / f"{name}.jsonl").read_text()
    expected = (GOLDEN / f"{name}.json").read_text()
    assert written({key: done[key] for key in json.loads(expected)}) == expected


def written(done: dict[str, object]) -> str:
    return json.dumps(done, indent=1) + "\n"


def no_kernel(*arguments: object) -> None:
    """Bits are those of the time loop: a kernel adds in another order."""


def write(out: Path) -> None:
    """Write all files again."""
    vars(recurrent)["fused"] = no_kernel
    SETTINGS["cifar10"] = SETTINGS["cifar10"]._replace(load=small_images)
    for name, config in runs().items():
        rows, done = numbers(config, out)
        done = {
            key: done[key]
            for key in done
            if key not in ("seconds", "seconds_per_task", "log", "sha256")
        }
        (GOLDEN / f"{name}.jsonl").write_text(rows)
        (GOLDEN / f"{name}.json").write_text(written(done))
    (GOLDEN / "environment.json").write_text(json.dumps(HERE, indent=1) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
