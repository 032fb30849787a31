"""Networks that grow between two tasks: what noise on the copied units does to each kind."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from torch import Generator, nn
from torch.optim import Adam

from attractor.continual import grow
from attractor.models import MLP, SequenceClassifier
from attractor.reproduction.computed.found import Found
from attractor.tasks import ArrayTask
from attractor.tasks.streams import split_images
from attractor.training import Plan, Supervised

SEEDS, STEPS, SMALL, LARGE = 5, 300, 12, 48


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
