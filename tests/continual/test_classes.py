"""Which classes are right, and what is written of a learner."""

import csv
from functools import partial
from pathlib import Path

import pytest
import torch

from attractor import InputError
from attractor.continual import ER, confusion, per_class, to_csv, top_k, train
from attractor.models import MLP
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream, split_images, stream_of


def test_confusion_agrees_with_the_accuracies_and_counts_every_sample() -> None:
    stream = split_images(dataset="digits", size=5)
    g = torch.Generator().manual_seed(0)
    result = train(MLP([64, 24, 10], generator=g), stream, ER("classes", 50), iterations=80)
    found = confusion(result.model, stream)
    sizes = [sum(len(b) for b in task.held_out("test", 100)) for task in stream]
    assert int(found.sum()) == sum(sizes)
    right = sum(float(a) * n for a, n in zip(result.matrix[-1], sizes, strict=True))
    assert int(found.diagonal().sum()) == round(right)
    assert torch.allclose(per_class(found) * found.sum(1), found.diagonal().float())
    assert top_k(result.model, stream, 1) == pytest.approx(right / sum(sizes))
    assert top_k(result.model, stream, 10) == 1.0
    assert top_k(result.model, stream, 1) < top_k(result.model, stream, 3) < 1.0
    with pytest.raises(InputError, match="at most the 10 outputs of the model, but got 11. Try 5"):
        top_k(result.model, stream, 11)


def test_an_answer_that_is_no_class_of_the_stream_is_not_taken_for_its_last() -> None:
    data = Data(torch.eye(4)[[0, 3, 3, 1]], torch.tensor([0, 1, 2, 1]))
    stream = Stream("one", [ArrayTask("a", 0, data, data, (0, 1, 2))])
    found = confusion(torch.nn.Identity(), stream)
    assert found.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_a_stream_that_asks_for_numbers_has_no_classes_to_confuse() -> None:
    data = (torch.zeros(4, 3), torch.rand(4, 2))
    stream = stream_of("sizes", [(data, data)], asks="numbers")
    for ask in (confusion, partial(top_k, k=1)):
        with pytest.raises(InputError, match="asks for classes, but 'sizes' asks for numbers"):
            ask(torch.nn.Linear(3, 2), stream)


def test_all_that_is_measured_goes_into_a_table(tmp_path: Path) -> None:
    stream = split_images(dataset="digits", size=5)
    path = tmp_path / "rows.csv"
    train(MLP([64, 8, 10]), stream, iterations=3, callbacks=[to_csv(path)])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows if row["split"] == "train"] == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
    ]
    tests = [row for row in rows if row["split"] == "test"]
    assert [row["task"] for row in tests] == ["1", "2"]
    assert float(tests[1]["task_2"]) >= 0
