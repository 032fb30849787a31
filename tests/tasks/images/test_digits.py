"""The digits that come with the package."""

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.tasks import Digits
from attractor.tasks.images.digits import digits_splits, load_digits


def test_the_file_holds_the_published_digits() -> None:
    x, y = load_digits()
    assert x.shape == (1797, 8, 8)
    assert x.dtype == torch.uint8
    assert x.max() == 16
    assert y.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    # the first digit as UCI prints it
    assert x[0, 0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert y[:10].tolist() == list(range(10))


def test_the_split_is_fixed_and_holds_every_digit_once() -> None:
    splits = digits_splits()
    assert [len(part.y) for part in splits] == [1297, 250, 250]
    seen = np.concatenate([part.x.flatten(1).numpy() for part in splits])
    assert len(np.unique(seen, axis=0)) == 1797
    assert torch.equal(Digits(order="permuted").test.x, splits.test.x)


def test_every_class_is_in_every_split() -> None:
    for part in digits_splits():
        assert part.y.bincount(minlength=10).min() > 0


@pytest.mark.parametrize(
    ("order", "shape"),
    [("rows", (5, 9, 8)), ("pixels", (5, 65, 1)), ("permuted", (5, 65, 1))],
)
def test_shapes_with_a_trailing_step(order: str, shape: tuple[int, ...]) -> None:
    task = Digits(order=order, trailing=True)  # type: ignore[arg-type]
    x = next(task.held_out("test", 5)).x
    assert x.shape == shape
    assert x.max() == 1
    assert x.min() == 0


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(InputError, match="mean 'permuted'"):
        Digits(order="permute")  # type: ignore[arg-type]
