"""Sequences of pen strokes."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.models import StrokeReader
from attractor.tasks import StrokeDigits
from attractor.tasks.batch import IGNORE
from attractor.tasks.data.root import data_root
from attractor.tasks.data.strokes import FILE, load_strokes
from attractor.tasks.strokes import VALIDATION


def write(root: Path, train: int = VALIDATION + 50, test: int = 60, label: int = 9) -> None:
    """A digit of class c has c + 2 steps, all but the last up and to the right, by its number."""
    arrays: dict[str, Any] = {}
    for half, count in (("train", train), ("test", test)):
        labels = np.arange(count) % 10
        labels[-1] = label
        lengths = labels + 2
        points = np.zeros((lengths.sum(), 4), np.int8)
        points[:, 0] = np.repeat(np.arange(count) % 100 + 1, lengths)
        points[:, 1] = -points[:, 0]
        ends = lengths.cumsum() - 1
        points[ends] = [0, 0, 1, 1]
        points[ends - labels - 1, 2] = labels == 7  # a stroke of one point
        arrays |= {f"{half}_points": points, f"{half}_labels": labels, f"{half}_lengths": lengths}
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    np.savez(root / FILE, **arrays)


def test_a_sequence_is_its_digits_one_after_the_other(tmp_path: Path) -> None:
    write(tmp_path)
    task = StrokeDigits(3, train=7, held=5, root=tmp_path)
    assert len(task) == 7
    for batch in (task.samples(torch.arange(7)), *task.held_out("test", 2)):
        for x, y, length in zip(batch.x, batch.y, batch.lengths, strict=True):  # type: ignore[arg-type]
            ends = torch.nonzero(x[:, 3])[:, 0].tolist()
            assert (torch.diff(torch.tensor([-1, *ends])) - 2).tolist() == y.tolist()
            assert length == ends[-1] + 1
            starts = [0, *(end + 1 for end in ends[:-1])]
            assert x[starts, :2].abs().sum() == 0  # from (0, 0), whatever the file says
            assert x[starts, 2].tolist() == (y == 7).tolist()  # and nothing else is set
            assert x[length:].abs().sum() == 0


def test_splits_are_drawn_from_different_digits_and_always_alike(tmp_path: Path) -> None:
    write(tmp_path)
    one, same = (StrokeDigits(2, train=300, held=40, root=tmp_path) for _ in range(2))
    for split, numbers in one.parts.items():
        assert torch.equal(numbers, same.parts[split])
    assert int(one.parts["train"].max()) < 50 <= int(one.parts["valid"].min())
    assert int(one.parts["test"].max()) < 60
    assert len({*one.parts["train"].flatten().tolist()}) == 50
    many = StrokeDigits(2, train=1, held=3000, root=tmp_path)
    assert int(many.parts["valid"].min()) >= 50  # no digit of training among 6,000


def test_each_split_has_a_seed_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, test=VALIDATION)
    task = StrokeDigits(2, train=9, held=9, root=tmp_path)
    assert not torch.equal(task.parts["valid"] - 50, task.parts["test"])


def test_sequences_of_more_digits_do_not_begin_as_those_of_fewer(tmp_path: Path) -> None:
    write(tmp_path)
    one, more = (StrokeDigits(n, train=30, held=9, root=tmp_path) for n in (2, 3))
    for split in ("train", "valid", "test"):
        flat = one.parts[split].flatten()
        assert not torch.equal(flat, more.parts[split].flatten()[: len(flat)])


def test_fresh_sequences_have_training_digits_alone(tmp_path: Path) -> None:
    write(tmp_path)
    task = StrokeDigits(2, train=7, held=5, root=tmp_path)
    found = task.draw(500, generator=torch.Generator().manual_seed(0))
    assert found.x[..., 0].max() == 50  # the number of a digit, counted from 1


def test_sequences_of_fewer_digits_count_as_much_as_others(tmp_path: Path) -> None:
    write(tmp_path)
    task = StrokeDigits(3, train=7, held=5, root=tmp_path)
    batch = task.samples(torch.arange(2))
    batch.y[1, 1:] = IGNORE
    said = torch.randn(2, 3, 10)
    each = -said.log_softmax(-1).gather(2, batch.y.clamp(min=0)[..., None])[..., 0]
    wanted = (each[0].mean() + each[1, 0]) / 2
    torch.testing.assert_close(task.loss(lambda x, y: said, batch), wanted)  # type: ignore[arg-type]


def test_the_loss_is_taught_and_the_measure_is_free(tmp_path: Path) -> None:
    write(tmp_path)
    task = StrokeDigits(2, train=7, held=5, root=tmp_path)
    batch = task.first("valid", 5)
    asked = []

    class Model(torch.nn.Module):
        def forward(self, x: object, said: object) -> torch.Tensor:
            asked.append(said)
            free = isinstance(said, int)
            right = torch.nn.functional.one_hot(batch.y, 10).float()
            return right.roll(1, -1) if free else 20 * right

    found = task.measure(Model(), batch)
    assert asked[0] == 2
    assert torch.is_tensor(asked[1])
    assert found["accuracy"] == (0.0, 10)
    assert found["error"] == (10.0, 10)
    assert found["loss"][0] < 1e-3


@pytest.mark.parametrize("reward", ["likelihood", "auxiliary"])
def test_choices_of_a_reader_are_taught_by_its_digits(reward: Any, tmp_path: Path) -> None:
    write(tmp_path)
    task = StrokeDigits(2, train=7, held=5, root=tmp_path)
    model = StrokeReader("tardis", 4, 8, 10, estimator="reinforce", reward=reward)
    batch, same = task.samples(torch.arange(7)), deepcopy(model)
    torch.manual_seed(0)
    loss = task.loss(model, batch)
    torch.autograd.backward(loss)
    torch.manual_seed(0)
    said, penalty = same(batch.inputs, batch.y)
    plain = torch.nn.functional.cross_entropy(said.flatten(0, 1), batch.y.flatten())
    torch.testing.assert_close(loss, plain)  # what teaches the choices has no value of its own
    torch.autograd.backward(plain + penalty(batch.y))
    for one, other in zip(model.parameters(), same.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad)
    taught = [p for name, p in model.recurrent.named_parameters() if "attention" in name]
    assert taught
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in taught)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the pen strokes of MNIST at"):
        StrokeDigits(root=tmp_path)
    write(tmp_path, label=12)
    with pytest.raises(InputError, match="expected labels from 0 to 9"):
        load_strokes("test", tmp_path)
    write(tmp_path, train=VALIDATION)
    with pytest.raises(InputError, match="expected more than 10000 training digits"):
        StrokeDigits(root=tmp_path)
    (tmp_path / FILE).write_bytes(b"no")
    with pytest.raises(InputError, match="expected pen strokes in"):
        load_strokes("train", tmp_path)
    np.savez(tmp_path / FILE, train_points=np.zeros((5, 3)), train_lengths=[5], train_labels=[1])
    with pytest.raises(InputError, match="expected points of 4 numbers"):
        load_strokes("train", tmp_path)


@pytest.mark.skipif(not (data_root() / FILE).exists(), reason="needs the pen strokes")
def test_five_digits_have_200_steps_on_average() -> None:
    task = StrokeDigits(5)
    assert (len(task), len(task.parts["valid"]), len(task.parts["test"])) == (
        200_000,
        20_000,
        20_000,
    )
    lengths = task.strokes["train"].lengths[task.parts["train"].numpy()].sum(1)
    assert lengths.mean() == pytest.approx(199, abs=1.5)  # as in the thesis
