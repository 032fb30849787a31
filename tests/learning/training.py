"""The training that the tests of this folder have in common: Adam on batches of 32."""

import itertools
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from attractor.tasks import Task
from attractor.tasks.base import Split


def updates(
    task: Task,
    loss: Callable[[Tensor, Tensor], Tensor],
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    seed: int,
) -> Iterator[int]:
    """Train for as long as somebody counts along."""
    trained = list(parameters)
    sampler = task.sampler(32, generator=torch.Generator().manual_seed(seed))
    optimiser = torch.optim.Adam(trained, lr=lr)
    for done in itertools.count(1):
        x, y = sampler.draw()
        optimiser.zero_grad()
        loss(x, y).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        yield done


@torch.no_grad()
def evaluate(task: Task, model: nn.Module, split: Split) -> tuple[float, float]:
    """Loss and accuracy on held-out sequences."""
    model.eval()
    totals = torch.zeros(2)
    batches = list(task.held_out(split, 250))
    for x, y in batches:
        found = task.metrics(model(x), y)
        totals += torch.stack([found["loss"], found["accuracy"]]) / len(batches)
    model.train()
    return totals[0].item(), totals[1].item()
