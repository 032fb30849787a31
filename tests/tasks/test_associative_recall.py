"""The associative recall task, against sequences written by hand."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.errors import InputError
from attractor.tasks import IGNORE, AssociativeRecall
from attractor.tasks.associative_recall import recall_sequences


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def spoken(x: torch.Tensor, bits: int) -> str:
    """A sequence ``(time, features)`` in letters, with spaces between."""
    return " ".join(numbers(x, bits))


def numbers(x: torch.Tensor, bits: int) -> list[str]:
    """A sequence ``(time, features)`` in letters: a delimiter, a question mark, or a number."""
    said = []
    for step in x.int().tolist():
        value = sum(bit << n for n, bit in enumerate(step[:bits]))
        said.append("|" if step[bits] else "?" if step[bits + 1] else str(value))
    return said


def test_two_sequences_of_different_length() -> None:
    items = torch.tensor([[[1, 2], [3, 0], [5, 7]], [[6, 5], [4, 7], [0, 0]]])
    x, y = recall_sequences(items, torch.tensor([3, 2]), torch.tensor([1, 0]), bits=3)
    assert spoken(x[0], 3) == "| 1 2 | 3 0 | 5 7 ? 3 0 ? 0 0"
    assert spoken(x[1], 3) == "| 6 5 | 4 7 ? 6 5 ? 0 0 0 0 0"
    assert [v for v in y[0].tolist() if v != IGNORE] == [5, 7]
    assert y[0, -2:].tolist() == [5, 7]
    assert y[1, 10:12].tolist() == [4, 7]
    assert (y[1, 12:] == IGNORE).all()


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    items=st.integers(2, 5),
    length=st.integers(1, 3),
    bits=st.integers(3, 6),
    fixed=st.booleans(),
)
def test_the_answer_follows_the_question(
    seed: int, items: int, length: int, bits: int, fixed: bool
) -> None:
    task = AssociativeRecall(items, least=None if fixed else 2, length=length, bits=bits)
    batch = task.draw(4, generator=seeded(seed))
    for x, y in zip(batch.x, batch.y, strict=True):
        said = numbers(x, bits)
        first, second = (n for n, word in enumerate(said) if word == "?")
        listed = [tuple(said[n + 1 : n + 1 + length]) for n in range(0, first, length + 1)]
        assert len(set(listed)) == len(listed)
        assert len(listed) == items if fixed else 2 <= len(listed) <= items
        place = listed.index(tuple(said[first + 1 : second]))
        answer = y[second + 1 : second + 1 + length]
        assert tuple(map(str, answer.tolist())) == listed[place + 1]
        assert (y != IGNORE).sum() == length


def test_every_number_of_items_and_every_place_is_asked() -> None:
    x = AssociativeRecall(4, length=1, bits=6).draw(500, generator=seeded()).x
    seen = set()
    for row in range(500):
        said = numbers(x[row], 6)
        first = said.index("?")
        listed = [said[n + 1] for n in range(0, first, 2)]
        seen.add((len(listed), listed.index(said[first + 1])))
    assert seen == {(n, place) for n in (2, 3, 4) for place in range(n - 1)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": 1}, "items to be at least 2, but got 1"),
        ({"items": 3, "least": 4}, "at most items=3, but got 4. Try least=None"),
        ({"bits": 17}, "at most 16 bits"),
        ({"items": 5, "bits": 2, "length": 1}, "allow 5 different items, .* have 4 values"),
        ({"length": 0}, "length to be at least 1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AssociativeRecall(**options)


def test_knowing_nothing_costs_the_baseline() -> None:
    task = AssociativeRecall(bits=3, length=2, items=4)
    batch = task.draw(5, generator=seeded())

    class Nothing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros(*x.shape[:2], task.output_size)

    assert float(task.loss(Nothing(), batch)) == pytest.approx(task.baseline)
