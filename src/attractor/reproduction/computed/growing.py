"""Networks that grow between two tasks: what noise on the copied units does to each kind."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator, Tensor, nn
from torch.optim import Adam

from attractor.continual import grow
from attractor.models import MLP, SequenceClassifier
from attractor.reproduction.computed.found import Found
from attractor.tasks import ArrayTask
from attractor.tasks.streams import split_images
from attractor.training import Plan, Supervised

SEEDS, STEPS, SMALL, LARGE = 5, 300, 12, 48
CONDITION = "log10 of the condition number of the recurrent matrix"


def noise(data: Path | None) -> Iterator[Found]:
    """Accuracy on digits 5 to 9 of networks that learnt 0 to 4 and then grew fourfold.

    The perceptron reads an image at once, the LSTM row by row; both are trained by Adam at 0.005
    for 300 updates of ten images before and after.
    """
    flat = split_images(dataset="digits", size=5, root=data).arrays()
    rows = [by_rows(task) for task in flat]
    for seed in range(SEEDS):
        g = Generator().manual_seed(seed)
        perceptron = MLP([64, SMALL, 10], generator=g)
        recurrent = SequenceClassifier("lstm", 8, SMALL, 10, generator=g)
        for name, model, tasks in (
            ("feed-forward", perceptron, flat),
            ("recurrent", recurrent, rows),
        ):
            trained(model, tasks[0], seed)
            for how, size in (("with noise", 1.0), ("without noise", 0.0)):
                draws = Generator().manual_seed(seed)
                wider = grow(model, hidden_size=LARGE, noise=size, generator=draws)
                found = trained(wider, tasks[1], seed + 100)
                yield Found(f"{name}, {how}", "accuracy on the task after growth", found, seed)


def preserved(data: Path | None = None) -> Iterator[Found]:
    """What widening networks from 12 units to 48 changes at once (001, sections 5.4.2 and 5.4.3).

    Of ten untrained networks in double precision the one that is furthest from what is said. "As
    printed" has noise that is zero in sum on the weights into copies, and not on those out of them.
    Condition numbers count up to 1e16, beyond which doubles do not tell them from infinity.
    """
    changes: dict[str, list[float]] = {}
    conditions: dict[str, list[float]] = {}
    for seed in range(10):
        g = Generator().manual_seed(seed)
        perceptron = MLP([8, SMALL, 10], generator=g).double()
        recurrent = SequenceClassifier("lstm", 8, SMALL, 10, generator=g).double()
        flat, rows = (torch.randn(size, generator=g).double() for size in ((20, 8), (20, 30, 8)))
        for how, size in (("with noise", 1.0), ("without noise", 0.0)):
            wider = grow(perceptron, hidden_size=LARGE, noise=size, generator=g)
            changes.setdefault(f"feed-forward, {how}", []).append(changed(perceptron, wider, flat))
            wider = grow(recurrent, hidden_size=LARGE, noise=size, generator=g)
            changes.setdefault(f"recurrent, {how}", []).append(changed(recurrent, wider, rows))
            conditions.setdefault(f"recurrent, {how}", []).append(conditioned(wider))
        noisy = into_copies(grow(perceptron, hidden_size=LARGE, noise=0.0, generator=g), g)
        changes.setdefault("feed-forward, noise as printed", []).append(
            changed(perceptron, noisy, flat)
        )
    for row, found in changes.items():
        yield Found(row, "largest change of the outputs", max(found))
    yield Found("recurrent, without noise", CONDITION, min(conditions["recurrent, without noise"]))
    yield Found("recurrent, with noise", CONDITION, max(conditions["recurrent, with noise"]))


@torch.no_grad()
def into_copies(wider: nn.Module, generator: Generator) -> nn.Module:
    """Noise on the weights into the copies of each hidden unit, zero in sum over these."""
    first = next(wider.parameters())
    for unit in torch.unique(first, dim=0):
        copies = (first == unit).all(1).nonzero().flatten()
        drawn = torch.randn(len(copies), first.shape[1], generator=generator).double()
        first[copies] += first.std() * (drawn - drawn.mean(0))
    return wider


def conditioned(wider: nn.Module) -> float:
    """log10 of the largest singular value of the recurrent matrix over the smallest."""
    matrix = wider.get_parameter("recurrent.cells.0.weight_hh").detach()
    values = torch.linalg.svdvals(matrix)
    return float(torch.log10(values[0] / values[-1].clamp_min(1e-16 * values[0])))


@torch.no_grad()
def changed(model: nn.Module, wider: nn.Module, x: Tensor) -> float:
    """How far the outputs of a wider network are from those of the one it grew from, at most."""
    return float((wider(x) - model(x)).abs().max())


def by_rows(task: ArrayTask) -> ArrayTask:
    """The digits of a task as sequences of eight rows."""
    return replace(
        task,
        train=task.train._replace(x=task.train.x.reshape(-1, 8, 8)),
        test=task.test._replace(x=task.test.x.reshape(-1, 8, 8)),
    )


def trained(model: nn.Module, task: ArrayTask, seed: int) -> float:
    """Train a network on a task; its accuracy on the test samples."""
    run = Supervised(
        model,
        task,
        Adam(model.parameters(), 0.005),
        Plan(STEPS, 10, log_every=STEPS, eval_every=None),
        generator=Generator().manual_seed(seed),
    )
    while not run.done:
        run.advance()
    return run.measure("test")["accuracy"]
