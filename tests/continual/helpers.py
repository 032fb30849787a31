"""A small stream and a small network for the tests of strategies."""

from functools import cache

import torch
from torch import Tensor, nn

from attractor.models import MLP
from attractor.tasks import Batch, Shuffled, StoredTask
from attractor.tasks.streams import Stream, permuted_images


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def digits(tasks: int = 3) -> Stream:
    return permuted_images(dataset="digits", tasks=tasks, generator=seeded())


def mlp(*hidden: int, seed: int = 0) -> MLP:
    return MLP([64, *(hidden or (8, 8)), 10], init="xavier", generator=seeded(seed))


def batch(task: StoredTask, count: int = 10, seed: int = 0) -> Batch:
    return Shuffled(task, count, generator=seeded(seed)).draw()


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])
