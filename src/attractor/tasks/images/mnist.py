"""MNIST, read as sequences."""

from attractor.tasks.images.files import PublishedImages


class MNIST(PublishedImages):
    """Sequential MNIST: name a digit whose pixels come one after the other.

    Of the 60,000 training images the last 10,000 are for validation, unless `validation` says
    another number; the 10,000 test images are the test set. Pixels are divided by 255.

    Args:
        order: ``"rows"`` (28 steps of 28), ``"pixels"`` (784 steps of 1) or ``"permuted"`` (784
            steps of 1, in one fixed random order: psMNIST);
            ``"flat"`` (one vector) or ``"image"`` (one channel), at once.
        permutation_seed: draws that order.
        trailing: end each sequence with a step of zeros, at which to answer; psMNIST has 785
            steps with it.
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
        >>> task = MNIST(order="permuted", trailing=True)  # doctest: +SKIP
        >>> next(task.held_out("test", 100)).x.shape  # doctest: +SKIP
        torch.Size([100, 785, 1])

    Departs from the paper: the permutation is drawn by torch, so it is not that of any paper;
    the code behind the thesis shuffles the training images before it splits off the validation
    set.

    References:
        Le et al. (2015), A simple way to initialize recurrent networks of rectified linear
        units, arXiv:1504.00941; LeCun et al. (1998), Gradient-based learning applied to document
        recognition (the images); Chandar (2020), section 4.3.4.
    """

    reference = "le2015simple"
    dataset = "mnist"
