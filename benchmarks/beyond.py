"""A learned rule against tuned optimisers, on data, networks and horizons it was not trained on.

::

    python benchmarks/beyond.py test --out runs/beyond
    python benchmarks/beyond.py table --out runs/beyond

`test` takes the ``anytime.safetensors`` of ``attractor meta train anytime`` in the folder, else the
weights of the package; it goes on after the last complete training if interrupted. The data sets
are looked for as everywhere: ``ATTRACTOR_DATA``, else the user's cache folder.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from attractor.estimates import estimate
from attractor.files import write_atomic
from attractor.meta import Problem, Trial, compare
from attractor.models import MLP, ConvNet
from attractor.optimisers import Anytime, Maker, load_rule
from attractor.tasks import CIFAR10, MNIST
from attractor.tasks.images.task import ImageTask

GRIDS: dict[str, tuple[float, ...]] = {
    "SGD": (0.03, 0.1, 0.3, 1.0, 3.0),
    "SGD, momentum 0.9": (0.003, 0.01, 0.03, 0.1, 0.3),
    "Adam": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
}
"""Rates of the hand-made optimisers, three apart."""

UNTUNED = {"SGD, momentum 0.9": 0.01, "Adam": 1e-3}
"""Those that torch's documentation has."""

SEEDS = {1000: range(5), 10_000: range(3)}
TUNING_SEED = 100


def maker(name: str, rate: float, rule: Anytime) -> Maker:
    if name == "SGD":
        return partial(torch.optim.SGD, lr=rate)
    if name == "Adam":
        return partial(torch.optim.Adam, lr=rate)
    if name == "SGD, momentum 0.9":
        return partial(torch.optim.SGD, lr=rate, momentum=0.9)
    return rule if name == "Anytime" else Anytime()


def small_convnet(task: ImageTask) -> Problem:
    side = task.features[-1]
    return Problem(
        lambda g: ConvNet((1, side, side), channels=(8, 8), kernel_size=3, generator=g), task, 32
    )


UNSEEN: dict[str, Any] = {
    "MNIST, MLP 784-100-100-10 tanh": lambda: Problem(
        lambda g: MLP([784, 100, 100, 10], activation="tanh", generator=g),
        MNIST(order="flat"),
        128,
    ),
    "MNIST 14x14, ConvNet": lambda: small_convnet(MNIST(order="image", side=14)),
    "grey CIFAR-10, MLP 784-32-10 relu": lambda: Problem(
        lambda g: MLP([784, 32, 10], generator=g),
        CIFAR10(order="flat", grey=True, batches=2),
        128,
    ),
}
"""By name, what makes a problem of the test; none of its data and networks was trained on."""


def test(out: Path, only: str, horizons: list[int]) -> None:
    """Tune the rates on the validation images of each problem, then compare on its test images."""
    path = out / "anytime.safetensors"
    rule = load_rule(path) if path.exists() else Anytime.pretrained("default")
    assert isinstance(rule, Anytime)
    done = read_results(out)

    def run(name: str, rate: float, steps: int, seed: int, split: str) -> dict[str, Any]:
        key = (title, steps, name, rate, seed, split)
        if key not in done:
            began = time.time()
            [curve] = compare(
                {name: maker(name, rate, rule)}, problem, steps=steps, seeds=[seed], split=split
            )
            done[key] = summary(curve)
            with (out / "test.jsonl").open("a") as file:
                file.write(json.dumps([key, done[key]]) + "\n")
            print(key, done[key], round(time.time() - began), flush=True)
        return done[key]

    for title, make in UNSEEN.items():
        if only not in title:
            continue
        problem = make()
        best: dict[str, float] = {}
        for steps in horizons:
            first = steps == min(SEEDS)
            rates = {("Anytime", 1.0), ("Anytime, untrained", 1.0)}
            for name in GRIDS if first else ["SGD, momentum 0.9", "Adam"]:  # to save time
                valid = partial(run, name, steps=steps, seed=TUNING_SEED, split="valid")
                tried = tune(valid, GRIDS[name], best.get(name))
                best[name] = min(tried, key=lambda rate: tried[rate]["loss"])
                accurate = max(tried, key=lambda rate: tried[rate]["accuracy"])
                rates |= {(name, best[name]), (name, accurate)}
            rates |= {*UNTUNED.items()} if first else set()
            for seed in SEEDS[steps]:
                for name, rate in sorted(rates):
                    run(name, rate, steps, seed, "test")


def tune(
    valid: Callable[[float], dict[str, float]], grid: tuple[float, ...], before: float | None
) -> dict[float, dict[str, float]]:
    """What each rate gives: those of the grid, and further ones while the edge is best.

    After a shorter horizon, whose best rate was `before`, it begins with that and its neighbours.
    """
    near = [rate for rate in grid if before is None or 0.2 < rate / before < 5]
    tried = {rate: valid(rate) for rate in near}
    while True:
        best = min(tried, key=lambda rate: tried[rate]["loss"])
        if best == min(tried):
            wanted = best / 3
        elif best == max(tried):
            wanted = best * 3
        else:
            return tried
        wanted = next((r for r in grid if math.isclose(r, wanted, rel_tol=0.2)), wanted)
        tried[wanted] = valid(wanted)


def summary(curve: Trial) -> dict[str, float]:
    last = curve.train[-max(1, len(curve.train) // 20) :]
    return {
        "train": sum(last) / len(last),
        "loss": curve.loss[-1],
        "accuracy": curve.accuracy[-1],
    }


def read_results(out: Path) -> dict[tuple[Any, ...], dict[str, float]]:
    path = out / "test.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(key): value for key, value in map(json.loads, lines)}


def table(out: Path) -> str:
    """All that was measured on test images, as Markdown: means, 95% intervals, and every seed."""
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    tuning: dict[tuple[Any, ...], dict[float, dict[str, float]]] = {}
    for (title, steps, name, rate, _, split), values in read_results(out).items():
        if split == "test":
            found.setdefault((title, steps, name, rate), []).append(values)
        else:
            tuning.setdefault((title, steps, name), {})[rate] = values
    lines = []
    heading: tuple[Any, ...] = ()
    for (title, steps, name, rate), runs in sorted(found.items()):
        if heading != (title, steps):
            heading = (title, steps)
            lines += ["", f"**{title}, {steps:,} steps, {len(runs)} seeds**", ""]
            lines += ["| optimiser | rate | held-out loss | accuracy, % | training loss | seeds |"]
            lines += ["|---|---|---|---|---|---|"]
        tried = tuning.get((title, steps, name), {})
        cells = [name, f"{rate:.3g}, {best_for(rate, tried)}" if tried else ""]
        for what, scale, digits in (("loss", 1, 4), ("accuracy", 100, 2), ("train", 1, 4)):
            got = estimate([scale * one[what] for one in runs])
            cells.append(f"{got.mean:.{digits}f} ± {got.half_width or 0:.{digits}f}")
        cells.append(" ".join(f"{one['loss']:.4f}" for one in runs))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines[1:]) + "\n"


def best_for(rate: float, tried: dict[float, dict[str, float]]) -> str:
    reasons = []
    if rate == min(tried, key=lambda r: tried[r]["loss"]):
        reasons.append("loss")
    if rate == max(tried, key=lambda r: tried[r]["accuracy"]):
        reasons.append("accuracy")
    return "tuned for " + " and ".join(reasons) if reasons else "untuned"


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["test", "table"])
    parser.add_argument("--out", type=Path, default=Path("runs/beyond"))
    parser.add_argument("--only", default="", help="problems with this in their name")
    parser.add_argument("--horizons", type=int, nargs="+", default=sorted(SEEDS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "test":
        test(given.out, given.only, given.horizons)
    else:
        text = table(given.out)
        write_atomic(given.out / "table.md", text)
        print(text)


if __name__ == "__main__":
    main()
