"""How images of incremental streams are moved, and what the streams are called."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attractor.tasks.streams import incremental_images
from attractor.tasks.streams.incremental import SETTINGS, Shifted
from tasks.streams.test_kinds import small_cifar100


def views(x: Tensor, pixels: int) -> set[tuple[float, ...]]:
    """An image at every place that it can be moved to, and all of them mirrored."""
    _, height, width = x.shape
    wide = F.pad(x, [pixels] * 4)
    moved = [
        wide[:, down : down + height, right : right + width]
        for down in range(2 * pixels + 1)
        for right in range(2 * pixels + 1)
    ]
    return {tuple(one.flatten().tolist()) for each in moved for one in (each, each.flip(2))}


@pytest.mark.parametrize("pixels", [0, 1, 2])
def test_images_are_moved_to_every_place_and_mirrored(pixels: int) -> None:
    x = torch.arange(1.0, 13.0).reshape(2, 2, 3)
    drawn = Shifted(pixels)(x.expand(1000, 2, 2, 3), torch.Generator().manual_seed(0))
    assert {tuple(one.flatten().tolist()) for one in drawn} == views(x, pixels)


def test_a_stream_is_called_by_the_part_that_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "cifar100", SETTINGS["cifar100"]._replace(load=small_cifar100))
    assert incremental_images(dataset="cifar100").name == "incremental cifar100"
    assert incremental_images(dataset="cifar100", part="first").name == "first classes of cifar100"
