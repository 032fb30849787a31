"""About so many samples of all earlier tasks, at least one of each."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attractor import InputError
from attractor.continual import ER, Learner, MetaSGDCL
from attractor.continual.replay.slots import Slots, shares
from attractor.models import MLP
from attractor.tasks import Batch
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import permuted_images


def test_shares_are_those_of_the_script() -> None:
    u = torch.rand(4, generator=torch.Generator().manual_seed(3), dtype=torch.float64).numpy()
    expected = np.ceil(7 * np.exp(u) / np.exp(u).sum()).astype(int).tolist()
    assert shares(7, 4, generator=torch.Generator().manual_seed(3)) == expected
    assert len(set(expected)) > 1


def test_each_group_gives_its_share() -> None:
    memory = Slots(5, groups=3)
    for group in range(3):
        memory.add((torch.arange(5) + 10 * group,), group)
    g = torch.Generator().manual_seed(0)
    (found,) = memory.draw([1, 9, 3], [0, 1, 2], generator=g)
    assert memory.drawn([1, 9, 3], [0, 1, 2]) == [1, 5, 3]
    assert (found // 10).tolist() == [0] + 5 * [1] + 3 * [2]
    assert len(set(found.tolist())) == 9


@pytest.mark.parametrize(
    "strategy",
    [
        ER("hard", 20, replay=6, shared=True),
        ER("ring", 80, replay=6, shared=True, balanced=True),
        MetaSGDCL(size=20, replay=6, shared=True),
    ],
    ids=["er", "balanced", "metasgd_cl"],
)
def test_what_is_replayed_is_shared_out(strategy: Any) -> None:
    seen: list[list[int]] = []

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        if len(batch) > 5:
            seen.append(torch.bincount(batch.places, minlength=4).tolist())
        return cross_entropy(model, batch)

    g = torch.Generator().manual_seed(0)
    stream = permuted_images(dataset="digits", tasks=4, generator=g)
    learner = Learner(
        MLP([64, 8, 10], generator=g), stream, strategy, batch_size=5, iterations=6, loss=loss
    )
    while not learner.done:
        learner.advance()
    last = [one for one in seen if one[3] == 5]
    assert last
    assert all(min(one) >= 1 and 6 <= sum(one[:3]) <= 8 for one in last)
    assert len({tuple(one) for one in last}) > 1  # drawn anew each time


def test_a_reservoir_has_no_tasks_to_share_among() -> None:
    with pytest.raises(InputError, match="keeps tasks apart .* but got 'reservoir'"):
        ER("reservoir", 50, shared=True)
    with pytest.raises(InputError, match="each=False"):
        ER("ring", 50, shared=True, each=False)
