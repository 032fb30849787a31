"""Kuzushiji-MNIST, read as sequences."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from attractor.checks import one_of
from attractor.tasks.images.files import load_images, standard_splits
from attractor.tasks.images.task import ImageTask, Order, split_off

Source = Literal["all", "test"]


class KMNIST(ImageTask):
    """Sequential Kuzushiji-MNIST: name a cursive character whose pixels come one by one.

    Of the 60,000 training images the last 10,000 are for validation; the 10,000 test images are
    the test set. With ``source="test"`` only the test images are used, which are easier to come
    by: the first 8,000 for training, 1,000 for validation and the last 1,000 for test. Such
    numbers do not compare with published ones. Pixels are divided by 255.

    Args:
        order: ``"rows"`` (28 steps of 28), ``"pixels"`` (784 steps of 1) or ``"permuted"`` (784
            steps of 1, in one fixed random order);
            ``"flat"`` (one vector) or ``"image"`` (one channel), at once.
        permutation_seed: draws that order.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        source: ``"all"`` images, or those of the ``"test"`` set alone.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, 28, 28)`` or ``(batch, 784, 1)``, one step more with `trailing`; y
        ``(batch,)``.

    Example:
        >>> task = KMNIST(source="test")  # doctest: +SKIP
        >>> next(task.held_out("test", 100)).x.shape  # doctest: +SKIP
        torch.Size([28, 100, 28])

    Departs from the paper: the images are read as sequences, and part of the training set is
    kept for validation.

    References:
        Clanuwat et al. (2018), Deep learning for classical Japanese literature,
        arXiv:1812.01718.
    """

    reference = "clanuwat2018deep"

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
        source: Source = "all",
        root: str | Path | None = None,
    ) -> None:
        one_of("source", source, get_args(Source))
        if source == "test":
            splits = split_off(load_images("kmnist", "test", root), 1000, 1000)
        else:
            splits = standard_splits("kmnist", root)
        super().__init__(
            splits,
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=255,
        )
