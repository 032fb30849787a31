"""What every task of the table promises."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, get_args

import pytest
import torch
from torch import Generator, Tensor

from attractor.tasks import (
    IGNORE,
    TASKS,
    Batch,
    BinaryAddition,
    BitTask,
    Generate,
    ImageTask,
    LanguageTask,
    Split,
    StrokeDigits,
    Task,
)
from attractor.tasks.data import DATASETS, data_root, verify
from tasks.models import saying
from tasks.written import WRITERS, written

OPTIONS: dict[str, dict[str, Any]] = {
    "cifar10": {"batches": 2},
    "generate": {"images": "digits"},
    "kmnist": {"source": "test"},
    "series": {"validation": 0.5},
    "snli": {"source": "dev"},
    "text": {"folder": "words"},
    "wikitext2": {"tokens": 100_000},
}
"""Options with which a task is tested, where the defaults need more than is easily had."""

FOLDERS = {
    "ptb_char": "ptb",
    "ptb_word": "ptb",
    "series": "ucr",
    "sick": "sick",
    "snli": "snli_1.0",
    "strokes": "mnist-strokes",
    "wikitext2": "wikitext-2",
}
"""Where the data are of tasks whose data sets are not in the catalogue."""

NEEDED = {
    "cifar10": {"train batch 1", "train batch 2", "test batch"},
    "kmnist": {"test images", "test labels"},
}
"""The parts of its data set that it then needs."""

SPLITS: tuple[Split, ...] = get_args(Split)
tasks = pytest.mark.parametrize("name", sorted(TASKS))
splits = pytest.mark.parametrize("split", SPLITS)


@cache
def made(name: str) -> Task:
    kind: Any = TASKS[name]
    root = {"root": written(name)} if name in WRITERS else {}
    task: Task = kind(**OPTIONS.get(name, {}), **root)
    return task


def make(name: str) -> Task:
    """The task, or a skip when its data is not on this machine."""
    if name in DATASETS:
        needed = NEEDED.get(name, DATASETS[name].parts.keys())
        for status in verify(name):
            if status.part in needed and status.state == "missing":
                pytest.skip(
                    f"{name} needs {status.path}; set ATTRACTOR_DATA to a folder that has it "
                    f"(now {data_root()}), or run `attractor data fetch {name}`"
                )
    if name in FOLDERS and not (data_root() / FOLDERS[name]).exists():
        pytest.skip(f"{name} needs {data_root() / FOLDERS[name]}")
    return made(name)


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def equal(one: Batch, other: Batch) -> bool:
    return torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def some(task: Task) -> Iterator[Batch]:
    yield task.batches(6, generator=seeded()).draw()
    for split in SPLITS:
        yield next(task.held_out(split, 6))


@tasks
def test_shapes_and_types(name: str) -> None:
    task = make(name)
    for batch in some(task):
        x, y = batch.x, batch.y
        assert x.dtype == (torch.int64 if task.symbolic else torch.float32)
        assert y.dtype == torch.int64
        assert len(batch) == len(x) == 6
        assert task.features[0] == task.input_size
        assert task.symbolic or batch.features == task.features
        if not isinstance(task, StrokeDigits):
            assert y.shape[:2] == ((6,) if task.answers == "once" else x.shape[:2])
        assert torch.isfinite(x).all()
        if task.symbolic:
            assert x.ndim == 2
            assert 0 <= x.min() <= x.max() < task.input_size
        else:
            assert x.ndim == (3 if task.timed else 4)


@tasks
def test_answers_are_classes(name: str) -> None:
    task = make(name)
    for batch in some(task):
        asked = batch.y[batch.y != IGNORE]
        assert asked.min() >= 0
        if isinstance(task, BitTask | BinaryAddition):
            assert asked.max() == 1
        elif not isinstance(task, Generate):
            assert asked.max() < task.output_size


def said(task: Task, batch: Batch) -> Tensor:
    """Answers of the form that a task asks for, all zero."""
    if isinstance(task, Generate):
        return torch.zeros(len(batch))
    if isinstance(task, BitTask):
        return torch.zeros(batch.y.shape)
    return torch.zeros(*batch.y.shape, task.output_size)


@tasks
def test_loss_and_measures_fit_a_model(name: str) -> None:
    task = make(name)
    for batch in some(task):
        output = torch.randn(said(task, batch).shape, generator=seeded(), requires_grad=True)
        loss = task.loss(saying(output), batch)
        assert loss.ndim == 0
        (gradient,) = torch.autograd.grad(loss, output)
        assert gradient.abs().sum() > 0
        found = task.measure(saying(output), batch)
        assert {*task.told({key: s / n for key, (s, n) in found.items()})} == {*task.measures}
        total, count = found["loss"]
        assert total / count == pytest.approx(loss.item(), rel=1e-5)
        assert count == int((batch.y != IGNORE).sum()) > 0
        assert 0 <= found.get("accuracy", (0.0, 0))[0] <= count


@tasks
def test_the_right_answer_has_full_accuracy(name: str) -> None:
    task = make(name)
    for batch in some(task):
        if isinstance(task, Generate):
            pytest.skip("nothing is asked for")
        if isinstance(task, BitTask | BinaryAddition):
            output = 9.0 * (2 * batch.y - int(isinstance(task, BitTask))).clamp(min=-1)
            output = output.view_as(said(task, batch))
        else:
            output = torch.nn.functional.one_hot(batch.y.clamp(min=0), task.output_size).float()
        right, count = task.measure(saying(output), batch)["accuracy"]
        assert right == count


@tasks
def test_batches_are_decided_by_the_generator(name: str) -> None:
    task = make(name)
    one, same, other = (task.batches(6, generator=seeded(seed)) for seed in (0, 0, 1))
    for _ in range(3):
        batch = one.draw()
        assert equal(batch, same.draw())
        assert not equal(batch, other.draw())


@tasks
def test_batches_leave_the_global_generator_alone(name: str) -> None:
    task = make(name)
    before = torch.get_rng_state()
    list(some(task))
    assert torch.equal(torch.get_rng_state(), before)


@tasks
def test_a_sampler_goes_on_bit_by_bit(name: str) -> None:
    task = make(name)
    one = task.batches(6, generator=seeded(0))
    for _ in range(3):
        one.draw()
    state = {key: value.clone() for key, value in one.state_dict().items()}
    expected = [one.draw() for _ in range(3)]
    other = task.batches(6, generator=seeded(1))
    other.load_state_dict(state)
    for batch in expected:
        assert equal(batch, other.draw())


@tasks
def test_a_batch_is_followed_by_another(name: str) -> None:
    sampler = make(name).batches(6, generator=seeded())
    batches = [sampler.draw() for _ in range(4)]
    assert not any(equal(one, other) for one, other in pairwise(batches))


@tasks
@splits
def test_held_out_batches_are_always_the_same(name: str, split: Split) -> None:
    task = make(name)
    first, second = task.held_out(split, 50), task.held_out(split, 50)
    for _ in range(3):
        assert equal(next(first), next(second))


@tasks
@splits
def test_held_out_sequences_do_not_depend_on_the_batch_size(name: str, split: Split) -> None:
    task = make(name)
    if isinstance(task, LanguageTask):
        pytest.skip("its pieces go on from each other: see the test of its measures")
    whole = next(task.held_out(split, 60))
    parts = task.held_out(split, 20)
    pieces = [next(parts) for _ in range(3)]
    for piece in pieces:  # ragged batches are as wide as their longest sequence
        rows, whole = whole[: len(piece)], whole[len(piece) :]
        assert torch.equal(rows.x[:, : piece.x.shape[1]], piece.x)
        assert torch.equal(rows.y, piece.y)


def rows(batches: Iterator[Batch]) -> set[bytes]:
    return {sequence.tobytes() for batch in batches for sequence in batch.x.contiguous().numpy()}


@tasks
def test_valid_and_test_share_no_sequence(name: str) -> None:
    task = make(name)
    if task.symbolic or isinstance(task, StrokeDigits):
        pytest.skip("a short piece may occur in two texts; strokes are of different digits")
    valid, test = (rows(task.held_out(split, 500)) for split in SPLITS)
    assert valid
    assert test
    assert not valid & test


def images(x: Tensor) -> set[bytes]:
    return {image.tobytes() for image in x.numpy()}


@pytest.mark.parametrize("name", [n for n, kind in TASKS.items() if issubclass(kind, ImageTask)])
def test_no_image_is_in_two_splits(name: str) -> None:
    task = make(name)
    assert isinstance(task, ImageTask)
    train, valid, test = (images(part.x) for part in (task.train, task.valid, task.test) if part)
    assert not train & valid
    assert not train & test
    assert not valid & test


@tasks
def test_a_task_names_its_paper(name: str) -> None:
    assert TASKS[name].reference
