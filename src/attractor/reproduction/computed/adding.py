"""An LSTM that adds binary numbers, and an NRU that copies: what their gates and memory do."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.dynamics import gates
from attractor.models import SequenceTagger
from attractor.reproduction.computed.found import Found
from attractor.reproduction.computed.memories import SEEDS
from attractor.tasks import CopyMemory
from attractor.training import fit


def additions(many: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Pairs of numbers as bits ``(many, 16, 2)``, lowest first, and the bits of their sums."""
    top = 2**16 - 1
    first = torch.randint(round(top / 2) + 1, (many,), generator=generator)
    second = torch.randint(top // 2 + 1, (many,), generator=generator)
    places = torch.arange(16)
    x = torch.stack([first, second], -1)[:, None, :] >> places[None, :, None] & 1
    y = (first + second)[:, None] >> places & 1
    return x.float(), y[..., None].float()


class Adder(nn.Module):
    """An LSTM that answers at each step with the tanh of one number; rounded, it is a bit."""

    def __init__(self, hidden: int, generator: Generator) -> None:
        super().__init__()
        self.tagger = SequenceTagger("lstm", 2, hidden, 1, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = torch.tanh(self.tagger(x))
        return answer


@cache
def trained_adder(seed: int = 0, steps: int = 3000) -> tuple[Adder, float]:
    """An adder of 32 units after SGD with rate 0.1, and the share of sums that it has right."""
    generator = Generator().manual_seed(seed)
    model = Adder(32, generator)
    x, y = additions(4000, generator)

    def loss(answer: Tensor, right: Tensor) -> Tensor:
        return (answer - right).square().sum(1).mean()

    sgd = {"name": "sgd", "lr": 0.1}
    fit(model, (x, y), optimiser=sgd, loss=loss, steps=steps, batch_size=10, seed=seed)
    x, y = additions(1000, Generator().manual_seed(1))
    with torch.no_grad():
        right = (model.eval()(x).round() == y).flatten(1).all(1)
    return model, float(right.float().mean())


def adder_gates(pairs: int, seed: int = 0) -> Tensor:
    """Forget gates ``(16, pairs, 32)`` of a trained adder while it adds."""
    model, _ = trained_adder(seed)
    x, _ = additions(pairs, Generator().manual_seed(2))
    return gates(model.tagger.recurrent, x.movedim(1, 0)).gate("f")


def jumps(data: Path | None = None) -> Iterator[Found]:
    """How much forget gates of a trained adder jump from step to step (002, figure 6)."""
    for seed in SEEDS:
        _, share = trained_adder(seed)
        f = adder_gates(100, seed)
        change = f[1:] - f[:-1]
        turns = (change[1:] * change[:-1] < 0).double().mean()
        yield Found("adder", "sums that are right", share, seed)
        yield Found("adder", "steps after which a gate turns", float(turns), seed)
        largest = change.abs().amax(0).mean()
        yield Found("adder", "largest jump of a gate in 16 steps", float(largest), seed)


def copier(
    cell: str, task: CopyMemory, steps: int, seed: int = 0, **options: Any
) -> tuple[SequenceTagger, Any]:
    """A network after a quick training on the copying task, and the rows it logged."""
    generator = Generator().manual_seed(seed)
    model = SequenceTagger(
        cell, task.input_size, 64, task.output_size, generator=generator, **options
    )
    optimiser = {"name": "adam", "lr": 2e-3}
    plan: dict[str, Any] = {"batch_size": 20, "clip": 1.0, "eval_every": steps, "log_every": 10}
    fitted = fit(model, task, optimiser=optimiser, steps=steps, eval_batches=2, seed=seed, **plan)
    return model, fitted.rows


def memory_changes(model: SequenceTagger, task: CopyMemory) -> Tensor:
    """How much each number of an NRU's memory changes: ``(time, 20, numbers)``."""
    batch = task.batches(20, generator=Generator().manual_seed(1)).draw()
    found = gates(model.recurrent, batch.x.movedim(0, 1))
    return (found.states["m"] - found.before["m"]).abs()


def writes(data: Path | None = None) -> Iterator[Found]:
    """When an NRU that copies after 30 steps changes its memory (001, figure 4.2)."""
    task = CopyMemory(30)
    for seed in SEEDS:
        model, rows = copier("nru", task, 1500, seed)
        change = memory_changes(model, task).mean((1, 2))
        loss = [row["loss"] for row in rows if row.get("split") == "train"][-1]
        waiting = float(change[10:39].mean())
        yield Found("NRU", "loss over that without memory", loss / task.baseline, seed)
        for part, steps in (("first", change[:10]), ("last", change[-10:])):
            column = f"change in the {part} 10 steps over that while it waits"
            yield Found("NRU", column, float(steps.mean()) / waiting, seed)
