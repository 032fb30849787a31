"""Images as sequences: order, permutation, scale and splits."""

import numpy as np
import pytest
import torch
from torch import Tensor

from attractor.errors import InputError
from attractor.tasks import Data
from attractor.tasks.images.task import Images, ImageTask, Order, Reading, split_off

PIXELS = 784
TIMED: list[Order] = ["rows", "pixels", "permuted"]
FIRST_OF_SEED_0 = [60, 361, 167, 578, 107, 772, 313, 626]


class Numbered(ImageTask):
    """Images that hold their own number, so that each can be told from all others."""

    reference = "none"

    def __init__(self, order: Order = "pixels", *, trailing: bool = False) -> None:
        splits = split_off(numbered(100), valid=20, test=10)
        super().__init__(splits, order=order, permutation_seed=3, trailing=trailing, white=255)


def halves(task: ImageTask) -> list[Data]:
    assert task.valid is not None
    return [task.train, task.valid, task.test]


def numbered(count: int) -> Images:
    y = torch.arange(count)
    return Images(y.reshape(count, 1, 1).repeat(1, 2, 3).to(torch.uint8), y % 10)


def reading(order: Order, seed: int = 0, *, trailing: bool = False) -> Reading:
    return Reading(28, 28, order=order, permutation_seed=seed, trailing=trailing, white=255)


def image() -> Tensor:
    return torch.randint(0, 256, (5, 28, 28), dtype=torch.uint8)


def test_rows_come_one_after_the_other() -> None:
    x = image()
    assert torch.equal(reading("rows")(x), x.float() / 255)


def test_pixels_come_row_by_row() -> None:
    x = image()
    read = reading("pixels")(x)
    assert read.shape == (5, PIXELS, 1)
    assert torch.equal(read.squeeze(-1), x.float().reshape(5, PIXELS) / 255)


def test_a_shrunk_pixel_is_the_mean_of_what_it_covers() -> None:
    x = image()
    read = Reading(28, 28, order="rows", side=14, white=255, mean=0.5, std=0.25)(x)
    means = x.double().reshape(5, 14, 2, 14, 2).mean((2, 4)) / 255
    torch.testing.assert_close(read.double(), (means - 0.5) / 0.25, rtol=0, atol=1e-5)


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
    assert torch.equal(permuted, plain[:, read.permutation])
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
    assert long.shape[1] == short.shape[1] + 1 == reading(order, trailing=True).steps
    assert torch.equal(long[:, :-1], short)
    assert (long[:, -1] == 0).all()


def test_psmnist_has_785_steps() -> None:
    assert reading("permuted", trailing=True)(image()).shape == (5, 785, 1)


def test_no_image_is_in_two_splits_and_none_is_lost() -> None:
    parts = halves(Numbered())
    assert [len(part.y) for part in parts] == [70, 20, 10]
    assert torch.cat([part.x[:, 0, 0] for part in parts]).tolist() == list(range(100))


def test_held_out_batches_are_in_order_and_whole() -> None:
    batches = list(Numbered().held_out("valid", 8))
    assert [len(batch) for batch in batches] == [8, 8, 4]
    seen = torch.cat([batch.x[:, 0, 0] for batch in batches]) * 255
    assert seen.round().tolist() == list(range(70, 90))


def test_training_batches_come_from_the_training_split_with_their_answers() -> None:
    sampler = Numbered().batches(35, generator=torch.Generator().manual_seed(0))
    numbers = []
    for _ in range(2):
        batch = sampler.draw()
        number = (batch.x[:, 0, 0] * 255).round().long()
        assert torch.equal(number % 10, batch.y)
        numbers += number.tolist()
    assert sorted(numbers) == list(range(70))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(InputError, match="known order .* but got 'columns'"):
        reading("columns")  # type: ignore[arg-type]


def test_the_training_split_is_not_held_out() -> None:
    with pytest.raises(InputError, match=r"known split \(test, valid\), but got 'train'"):
        next(Numbered().held_out("train", 8))  # type: ignore[arg-type]


def colours() -> Tensor:
    return torch.randint(0, 256, (5, 3, 4, 6), dtype=torch.uint8)


def coloured(order: Order, *, trailing: bool = False) -> Reading:
    return Reading(4, 6, channels=3, order=order, trailing=trailing, white=255)


def test_a_colour_image_at_once_keeps_its_channels_apart() -> None:
    x = colours()
    assert torch.equal(coloured("image")(x), x / 255)
    assert torch.equal(coloured("flat")(x), x.reshape(5, 72) / 255)
    assert coloured("image").input_size == 3
    assert coloured("flat").input_size == 72


def test_a_step_shows_all_colours_of_a_pixel_or_of_a_row() -> None:
    x = colours()
    pixels, rows = coloured("pixels")(x), coloured("rows", trailing=True)(x)
    assert pixels.shape == (5, 24, 3)
    assert rows.shape == (5, 5, 18) == (5, coloured("rows", trailing=True).steps, 18)
    assert torch.equal(pixels[2, 8], x[2, :, 1, 2] / 255)
    assert torch.equal(rows[2, 1, 6:9], x[2, :, 1, 2] / 255)
    read = coloured("permuted")
    assert read.permutation is not None
    assert torch.equal(read(x), pixels[:, read.permutation])


class Coloured(ImageTask):
    """Random images, dark in red and bright in blue."""

    reference = "none"

    def __init__(self, *, normalise: bool) -> None:
        generator = torch.Generator().manual_seed(0)
        x = (
            torch.rand(60, 3, 4, 4, generator=generator)
            * torch.tensor([50, 100, 250])[:, None, None]
        )
        images = Images(x.to(torch.uint8), torch.arange(60) % 10)
        super().__init__(
            split_off(images, valid=20, test=10),
            order="image",
            permutation_seed=0,
            trailing=False,
            white=255,
            normalise=normalise,
        )


def test_normalised_channels_have_mean_0_and_deviation_1_without_the_test_set() -> None:
    plain, task = Coloured(normalise=False), Coloured(normalise=True)
    seen = np.concatenate([plain.read(part.x).double().numpy() for part in halves(plain)[:2]])
    mean, std = seen.mean((0, 2, 3), keepdims=True), seen.std((0, 2, 3), keepdims=True)
    for part in halves(task):
        expected = (plain.read(part.x).double().numpy() - mean) / std
        np.testing.assert_allclose(task.read(part.x).numpy(), expected, atol=1e-5)


def test_the_trailing_step_of_a_normalised_image_is_zero() -> None:
    read = Reading(4, 6, channels=3, trailing=True, white=255, mean=0.5, std=0.25)
    x = colours()
    assert (read(x)[:, -1] == 0).all()
    torch.testing.assert_close(read(x)[:, :-1], (coloured("rows")(x) - 0.5) / 0.25)


def test_normalise_is_a_truth_value() -> None:
    with pytest.raises(InputError, match="expected normalise to be true or false"):
        Coloured(normalise="yes")  # type: ignore[arg-type]
