"""Fashion-MNIST, read as sequences."""

from attractor.tasks.images.files import PublishedImages


class FashionMNIST(PublishedImages):
    """Sequential Fashion-MNIST: name a piece of clothing whose pixels come one after the other.

    Of the 60,000 training images the last 10,000 are for validation, unless `validation` says
    another number; the 10,000 test images are the test set. Pixels are divided by 255.

    Args:
        order: ``"rows"`` (28 steps of 28), ``"pixels"`` (784 steps of 1) or ``"permuted"`` (784
            steps of 1, in one fixed random order);
            ``"flat"`` (one vector) or ``"image"`` (one channel), at once.
        permutation_seed: draws that order.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        validation: how many of the training images, the last, are for validation; with 0 there
            is no such split, and all are trained on.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, 28, 28)`` or ``(batch, 784, 1)``, one step more with `trailing`; y
        ``(batch,)``.

    Example:
        >>> task = FashionMNIST()  # doctest: +SKIP
        >>> next(task.held_out("test", 100)).x.shape  # doctest: +SKIP
        torch.Size([28, 100, 28])

    Departs from the paper: the images are read as sequences, and part of the training set is
    kept for validation.

    References:
        Xiao et al. (2017), Fashion-MNIST: a novel image dataset for benchmarking machine
        learning algorithms, arXiv:1708.07747.
    """

    reference = "xiao2017fashion"
    dataset = "fashion_mnist"
