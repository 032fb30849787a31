"""Which methods of lifelong learning grow their network, on two tiny tasks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Generator, nn

from attractor.continual import STRATEGIES, grow, train
from attractor.models import MLP
from attractor.reproduction.computed.counts import size
from attractor.reproduction.computed.found import Found
from attractor.tasks.streams import permuted_images

EXPANDS = {
    "EWC": ("ewc", False),
    "iCaRL": ("icarl", False),
    "LwF": ("lwf", False),
    "GEM": ("gem", False),
    "HAT": ("hat", False),
    "Progressive Nets": ("progressive", True),
}
"""By the row of table 5.1, our strategy and whether "Model Expansion" is ticked; Net2Net is
`grow`. IMM, NCM, networks of experts and piggyback are not here."""


def expansions(data: Path | None = None) -> Iterator[Found]:
    """Methods whose growth is as ticked, and how much bigger each makes a network (001, 5.1)."""
    right = 0
    for row, (name, ticked) in EXPANDS.items():
        drawn = permuted_images(dataset="digits", tasks=2, generator=Generator().manual_seed(0))
        stream = replace(drawn, identity=True)  # HAT is told the task
        model: nn.Module = MLP([64, 16, 10], generator=Generator().manual_seed(0))
        before = size(model)
        strategy: Any = STRATEGIES[name]()
        after = size(train(model, stream, strategy, iterations=5, seed=0).model)
        grew = after / before
        right += (grew > 1.5) == ticked
        yield Found(row, "parameters after two tasks over before", grew)
    small = MLP([64, 16, 10], generator=Generator().manual_seed(0))
    wide = size(grow(small, hidden_size=32)) / size(small)
    yield Found("Net2Net", "parameters after two tasks over before", wide)
    yield Found("methods", "growth as ticked, of 7", right + (wide > 1.5))
