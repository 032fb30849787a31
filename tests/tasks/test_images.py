"""Images as sequences: order, permutation, scale and splits."""

import pytest
import torch
from torch import Tensor

from attractor.errors import InputError
from attractor.tasks.images import Images, ImageTask, Order, Reading, split_off

PIXELS = 784
TIMED: list[Order] = ["rows", "pixels", "permuted"]
FIRST_OF_SEED_0 = [60, 361, 167, 578, 107, 772, 313, 626]


class Numbered(ImageTask):
    """Images that hold their own number, so that each can be told from all others."""

    reference = "none"

    def __init__(self, order: Order = "pixels", *, trailing: bool = False) -> None:
        splits = split_off(numbered(100), valid=20, test=10)
        super().__init__(splits, order=order, permutation_seed=3, trailing=trailing, white=255)


def numbered(count: int) -> Images:
    y = torch.arange(count)
    return Images(y.reshape(count, 1, 1).repeat(1, 2, 3).to(torch.uint8), y % 10)


def reading(order: Order, seed: int = 0, *, trailing: bool = False) -> Reading:
    return Reading(28, 28, order=order, permutation_seed=seed, trailing=trailing, white=255)


def image() -> Tensor:
    return torch.randint(0, 256, (5, 28, 28), dtype=torch.uint8)


def test_rows_come_one_after_the_other() -> None:
    x = image()
    assert torch.equal(reading("rows")(x), x.float().transpose(0, 1) / 255)


def test_pixels_come_row_by_row() -> None:
    x = image()
    read = reading("pixels")(x)
    assert read.shape == (PIXELS, 5, 1)
    assert torch.equal(read.squeeze(-1).T, x.float().reshape(5, PIXELS) / 255)


def test_at_once_an_image_is_a_vector_or_a_channel() -> None:
    x = image()
    assert torch.equal(reading("flat")(x), x.reshape(5, PIXELS) / 255)
    assert torch.equal(reading("image")(x), x.reshape(5, 1, 28, 28) / 255)
    with pytest.raises(InputError, match="order='flat', which has no steps"):
        reading("flat", trailing=True)


@pytest.mark.parametrize("seed", range(5))
def test_the_permutation_is_a_true_one(seed: int) -> None:
    order = reading("permuted", seed).permutation
    assert order is not None
    assert order.sort().values.tolist() == list(range(PIXELS))


def test_permuted_images_keep_every_pixel_in_one_fixed_order() -> None:
    x = image()
    read = reading("permuted")
    assert read.permutation is not None
    plain, permuted = reading("pixels")(x), read(x)
    assert torch.equal(permuted, plain[read.permutation])
    assert torch.equal(permuted, reading("permuted")(x))
    assert not torch.equal(permuted, reading("permuted", 1)(x))


def test_the_permutation_of_seed_0_stays_what_it_was() -> None:
    # numbers of different versions of the package compare only as long as this holds
    order = reading("permuted").permutation
    assert order is not None
    assert order[:8].tolist() == FIRST_OF_SEED_0


@pytest.mark.parametrize("order", TIMED)
def test_a_trailing_step_is_zero_and_the_rest_unchanged(order: Order) -> None:
    x = image()
    short, long = reading(order)(x), reading(order, trailing=True)(x)
    assert len(long) == len(short) + 1 == reading(order, trailing=True).steps
    assert torch.equal(long[:-1], short)
    assert (long[-1] == 0).all()


def test_psmnist_has_785_steps() -> None:
    assert reading("permuted", trailing=True)(image()).shape == (785, 5, 1)


def test_no_image_is_in_two_splits_and_none_is_lost() -> None:
    splits = Numbered().splits
    assert [len(part.y) for part in splits] == [70, 20, 10]
    assert torch.cat([part.x[:, 0, 0] for part in splits]).tolist() == list(range(100))


def test_held_out_batches_are_in_order_and_whole() -> None:
    batches = list(Numbered().held_out("valid", 8))
    assert [batch.x.shape[1] for batch in batches] == [8, 8, 4]
    seen = torch.cat([batch.x[0, :, 0] for batch in batches]) * 255
    assert seen.round().tolist() == list(range(70, 90))


def test_training_batches_come_from_the_training_split_with_their_answers() -> None:
    sampler = Numbered().sampler(35, generator=torch.Generator().manual_seed(0))
    numbers = []
    for _ in range(2):
        x, y = sampler.draw()
        number = (x[0, :, 0] * 255).round().long()
        assert torch.equal(number % 10, y)
        numbers += number.tolist()
    assert sorted(numbers) == list(range(70))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(InputError, match="known order .* but got 'columns'"):
        reading("columns")  # type: ignore[arg-type]


def test_the_training_split_is_not_held_out() -> None:
    with pytest.raises(InputError, match=r"known split \(test, valid\), but got 'train'"):
        Numbered().held_out("train", 8)  # type: ignore[arg-type]
