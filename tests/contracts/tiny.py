"""Tasks, streams and networks of tiny sizes, by which any is tried with any.

A configuration names them as ``contracts.tiny:streamed`` and so on.
"""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.optimisers import OPTIMISERS
from attractor.optimisers.files import load_pretrained, shipped
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream

CELL_OPTIONS: dict[str, dict[str, Any]] = {
    "decaynet": {"length": 4},
    "decaynet_gru": {"length": 4},
}
"""What a cell cannot do without."""

STRATEGY_OPTIONS: dict[str, dict[str, Any]] = {"freeze": {"after": 1}, "ewc": {"strength": 1.0}}
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"name": "mlp", "hidden": [6]},
    "hcn": {"name": "hcn", "hidden": [6, 6]},
    "recurrent": {"cell": "gru", "hidden_size": 5},
}
RULES: dict[str, dict[str, Any]] = {
    "sgd": {"name": "sgd", "lr": 0.01},
    "adam": {"name": "adam", "lr": 0.01},
    "anytime": {"name": "anytime"},
    "mtl2l": {"name": "mtl2l"},
}


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def task(place: int = 0, *, timed: bool, each_step: bool = False) -> ArrayTask:
    """Twelve samples of three classes: vectors of 4, or sequences of 4 steps of 2."""
    g = seeded(place)
    x = torch.randn(12, 4, 2, generator=g) if timed else torch.randn(12, 4, generator=g)
    y = torch.arange(12) % 3
    data = Data(x, y[:, None].repeat(1, 4) if each_step else y)
    return ArrayTask(f"task {place}", place, data, data, (0, 1, 2), valid=data)


def streamed(*, timed: bool) -> Stream:
    """Two such tasks."""
    return Stream("two", [task(place, timed=timed) for place in (0, 1)], identity=True)


def worded() -> ArrayTask:
    """Sequences of numbers that stand for words."""
    data = Data(torch.arange(48).reshape(12, 4) % 5, torch.arange(12) % 3)
    return ArrayTask("words", 0, data, data, (0, 1, 2), valid=data)


def pictured() -> ArrayTask:
    """Images of 8 by 8."""
    data = Data(torch.randn(12, 1, 8, 8, generator=seeded()), torch.arange(12) % 3)
    return ArrayTask("images", 0, data, data, (0, 1, 2), valid=data)


class Words(nn.Module):
    """A network with an embedding, as language models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.readout = nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.readout(self.embedding(x).mean(1))
        return answer


def silent(name: str, shown: Tensor) -> bool:
    """Whether an optimiser moves nothing: an untrained rule, if no weights for it fit its input."""
    entry = OPTIMISERS[name]
    if not entry.learned or not entry.kind.silent:
        return False
    known = [load_pretrained(*one.split("/")) for one in shipped() if one.startswith(f"{name}/")]
    inputs = shown[0].numel()
    return all(getattr(rule, "context_size", inputs) != inputs for rule in known)
