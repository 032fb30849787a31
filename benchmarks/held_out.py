"""Held-out loss of `anytime` at its weights and at its average, beside Adam with a cosine schedule.

Run it with ``python benchmarks/held_out.py [seeds]``; ten minutes for three seeds on one core. Five
small trainings, each with its number of updates; Adam at each of four rates, of which the table has
the best by the mean over the seeds. The characters of the Penn treebank are looked for in the
folder that ``ATTRACTOR_DATA`` names, and left out if they are not there.
"""

import gzip
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.models import MLP
from attractor.optimisers import Anytime, attach
from attractor.tasks import MNIST, Digits, Task

RATES = (1e-3, 3e-3, 1e-2, 3e-2)


class Rows(nn.Module):
    """An nn.LSTM over the rows of a digit."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.lstm(x)[0][:, -1])
        return y


class Characters(nn.Module):
    """A small transformer that reads characters from left to right."""

    def __init__(self, symbols: int, length: int, width: int = 64) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, symbols)
        self.mask = nn.Transformer.generate_square_subsequent_mask(length)

    def forward(self, x: Tensor) -> Tensor:
        h = self.symbols(x) + self.places.weight
        y: Tensor = self.out(self.layers(h, mask=self.mask, is_causal=True))
        return y


def convolutions() -> nn.Module:
    """Two layers of filters and a linear one."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 36, 10),
    )


class Training(NamedTuple):
    """A network, its batches, how many, and its held-out loss."""

    model: Callable[[], nn.Module]
    batches: Callable[[torch.Generator], Callable[[], tuple[Tensor, Tensor]]]
    updates: int
    held_out: list[tuple[Tensor, Tensor]]


def of(task: Task, model: Callable[[], nn.Module], updates: int, size: int = 32) -> Training:
    """A training on a task of the library."""

    def batches(generator: torch.Generator) -> Callable[[], tuple[Tensor, Tensor]]:
        sampler = task.batches(size, generator=generator)

        def draw() -> tuple[Tensor, Tensor]:
            batch = sampler.draw()
            return batch.x, batch.y

        return draw

    rest = [(batch.x, batch.y) for batch in task.held_out("test", 1000)]
    return Training(model, batches, updates, rest)


def characters(folder: Path, updates: int, length: int = 64) -> Training | None:
    """A training on the characters of the Penn treebank."""
    files = [folder / f"ptb.char.{part}.txt.gz" for part in ("train", "valid")]
    if not all(file.is_file() for file in files):
        return None
    texts = [gzip.decompress(file.read_bytes()).decode().split() for file in files]
    known = {symbol: i for i, symbol in enumerate(sorted({*texts[0]}))}
    train, valid = (torch.tensor([known[s] for s in text if s in known]) for text in texts)

    def windows(data: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        found = torch.stack([data[i : i + length + 1] for i in starts.tolist()])
        return found[:, :-1], found[:, 1:].flatten()

    def batches(generator: torch.Generator) -> Callable[[], tuple[Tensor, Tensor]]:
        return lambda: windows(
            train, torch.randint(len(train) - length, (32,), generator=generator)
        )

    rest = [windows(valid, torch.arange(i, i + 6400, length)) for i in range(0, 25600, 6400)]
    return Training(lambda: Characters(len(known), length), batches, updates, rest)


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, of one answer or of one for each character."""
    return F.cross_entropy(model(x).flatten(0, -2), y)


def held_out(training: Training, model: nn.Module) -> float:
    """Mean loss on what was not trained on."""
    with torch.no_grad():
        found = [(loss_of(model, x, y).item(), len(y)) for x, y in training.held_out]
    return sum(loss * count for loss, count in found) / sum(count for _, count in found)


def run(training: Training, make: Any, seed: int, *, cosine: bool) -> list[float]:
    """Train once; the held-out loss at the weights, and at their average if there is one."""
    torch.manual_seed(seed)
    model = training.model()
    optimiser = attach(make, model)
    draw = training.batches(torch.Generator().manual_seed(seed))
    for update in range(training.updates):
        if cosine:
            share = (1 + math.cos(math.pi * update / training.updates)) / 2
            optimiser.param_groups[0]["lr"] = optimiser.defaults["lr"] * share
        optimiser.zero_grad()
        loss_of(model, *draw()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    found = [held_out(training, model)]
    if hasattr(optimiser, "eval"):
        optimiser.eval()
        found.append(held_out(training, model))
    return found


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    folder = Path(os.environ.get("ATTRACTOR_DATA", ".")) / "ptb"
    digits = Digits(order="flat")
    trainings = {
        "digits MLP, 600": of(digits, lambda: MLP([64, 32, 10]), 600),
        "digits nn.LSTM, 600": of(Digits(order="rows"), Rows, 600),
        "MNIST ConvNet, 400": of(MNIST(order="image"), convolutions, 400),
        "MNIST tanh MLP, 1000": of(
            MNIST(order="flat"), lambda: MLP([784, 64, 10], activation="tanh"), 1000
        ),
        "PTB transformer, 400": characters(folder, 400),
    }
    for name, training in trainings.items():
        if training is None:
            continue
        rule = Anytime.pretrained()
        ours = [run(training, rule, seed, cosine=False) for seed in seeds]
        means = [sum(one) / len(one) for one in zip(*ours, strict=True)]
        print(name, "anytime", [f"{mean:.4f}" for mean in means], flush=True)
        for rate in RATES:

            def adam(params: Any, rate: float = rate) -> torch.optim.Optimizer:
                return torch.optim.Adam(params, lr=rate)

            theirs = [run(training, adam, seed, cosine=True)[0] for seed in seeds]
            print(name, f"cosine Adam {rate:g}: {sum(theirs) / len(theirs):.4f}", flush=True)


if __name__ == "__main__":
    main()
