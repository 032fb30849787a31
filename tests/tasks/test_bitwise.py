"""Copying and recalling vectors of bits."""

import math
import re

import pytest
import torch
from torch import Generator

from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, BitCopy, BitRecall
from tasks.models import saying


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_what_is_asked_of_a_copy_is_what_was_shown() -> None:
    task = BitCopy(5, least=2, bits=3)
    batch = task.draw(50, generator=seeded())
    lengths = set()
    for x, y in zip(batch.x, batch.y, strict=True):
        (delimiter,) = torch.nonzero(x[:, 3])[:, 0].tolist()
        lengths.add(delimiter)
        assert torch.equal(y[delimiter + 1 : 2 * delimiter + 1].float(), x[:delimiter, :3])
        assert (y[: delimiter + 1] == IGNORE).all()
        assert (y[2 * delimiter + 1 :] == IGNORE).all()
        assert x[delimiter + 1 :].abs().sum() == 0
    assert lengths == {2, 3, 4, 5}
    assert 0.4 < batch.y[batch.y != IGNORE].float().mean() < 0.6


def test_what_is_asked_of_recall_is_the_item_after_the_query() -> None:
    task = BitRecall(4, least=2, length=2, bits=3)
    batch = task.draw(40, generator=seeded())
    counts = set()
    for x, y in zip(batch.x, batch.y, strict=True):
        starts = torch.nonzero(x[:, 3])[:, 0].tolist()
        ask, end = torch.nonzero(x[:, 4])[:, 0].tolist()
        items = [x[s + 1 : s + 3, :3] for s in starts]
        query = x[ask + 1 : end, :3]
        (place,) = [n for n, item in enumerate(items) if torch.equal(item, query)]
        counts.add(len(items))
        assert torch.equal(y[end + 1 : end + 3].float(), items[place + 1])
        assert int((y != IGNORE).sum()) == 6
    assert counts == {2, 3, 4}


def test_validation_has_the_longest_sequences_and_the_test_goes_beyond() -> None:
    copy = BitCopy(4, bits=2, beyond=9)
    for split, length in (("valid", 4), ("test", 9)):
        batch = next(copy.held_out(split, 20))  # type: ignore[arg-type]
        assert ((batch.y != IGNORE).sum((1, 2)) == 2 * length).all()
    recall = BitRecall(3, beyond=7)
    batch = next(recall.held_out("test", 20))
    assert (batch.x[:, :, 8].sum(1) == 7).all()
    assert (next(recall.held_out("valid", 20)).x[:, :, 8].sum(1) == 3).all()


def test_the_loss_is_binary_cross_entropy_over_the_bits_asked() -> None:
    y = torch.tensor([[[IGNORE, IGNORE], [1, 0]], [[IGNORE, IGNORE], [IGNORE, IGNORE]]])
    batch = Batch(torch.zeros(2, 2, 3), y)
    output = torch.tensor([[[9.0, 9.0], [2.0, -1.0]], [[5.0, 5.0], [5.0, 5.0]]])
    expected = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))) / 2
    task = BitCopy(bits=2)
    assert float(task.loss(saying(output), batch)) == pytest.approx(expected)
    found = task.measure(saying(output), batch)
    assert found["loss"][0] == pytest.approx(2 * expected)
    assert found["loss"][1] == 2
    assert found["accuracy"] == (2.0, 2)
    assert task.measure(saying(output / 100), batch)["accuracy"] == (2.0, 2)  # the sign decides
    assert task.measure(saying(-output), batch)["accuracy"] == (0.0, 2)
    batch.weight = torch.tensor([0.25, 0.75])
    assert float(task.loss(saying(output), batch)) == pytest.approx(expected / 4)


def test_knowing_nothing_costs_the_baseline() -> None:
    task = BitRecall()
    batch = task.draw(5, generator=seeded())
    output = torch.zeros(batch.y.shape)
    assert float(task.loss(saying(output), batch)) == pytest.approx(task.baseline)


@pytest.mark.parametrize("task", [BitCopy(3, bits=2), BitRecall(3, bits=2)])
def test_a_model_of_another_size_is_told_which(task: BitCopy | BitRecall) -> None:
    batch = task.draw(4, generator=seeded())
    steps = batch.y.shape[1]
    for wrong in ((4, steps, 3), (4, 2)):
        model = saying(torch.zeros(wrong))
        shapes = rf"of the shape \(4, {steps}, 2\), but the model gives {re.escape(str(wrong))}"
        for judge in (task.loss, task.measure):
            with pytest.raises(InputError, match=rf"{shapes}\. Try a model of output_size=2"):
                judge(model, batch)


def test_bad_options() -> None:
    with pytest.raises(InputError, match="expected least, the shortest, to be at most most=3"):
        BitCopy(3, least=4)
    with pytest.raises(InputError, match="with room to spare"):
        BitRecall(3, length=1, bits=2)
    with pytest.raises(InputError, match="expected bits to be at least 1"):
        BitCopy(bits=0)
