"""The training that the tests of this folder have in common: Adam on batches of 32."""

import itertools
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from attractor.tasks import Batch, Split, Task
from attractor.training import evaluate as measured


def updates(
    task: Task,
    loss: Callable[[Batch], Tensor],
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    seed: int,
) -> Iterator[int]:
    """Train for as long as somebody counts along."""
    trained = list(parameters)
    sampler = task.batches(32, generator=torch.Generator().manual_seed(seed))
    optimiser = torch.optim.Adam(trained, lr=lr)
    for done in itertools.count(1):
        optimiser.zero_grad()
        torch.autograd.backward(loss(sampler.draw()))
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        yield done


def evaluate(task: Task, model: nn.Module, split: Split) -> tuple[float, float]:
    """Loss and accuracy on held-out sequences."""
    found = measured(model, task, split, 250)
    return found["loss"], found["accuracy"]
