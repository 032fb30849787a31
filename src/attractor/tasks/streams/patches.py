"""Features of photographs that nobody trains: how much each image is like some whitened patches."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import number, whole
from attractor.errors import InputError

EVEN = 10.0
"""Added to the variance of a patch, in squared steps of a byte, before it is divided by."""
RIDGE = 0.1
"""Added to the variance of each direction of patches before they are whitened."""
DRAWN = 20_000
"""Patches of which mean and covariance are taken."""


@dataclass(frozen=True, eq=False)
class PatchFeatures:
    r"""How much the patches of an image are like some filters, and unlike them, quarter by quarter.

    A patch p, of s x s pixels and all channels, is brought to mean 0 and deviation 1,
    :math:`\hat p`, and whitened; with the filters :math:`d_k` and a threshold of :math:`\alpha`

    .. math::
        a_k = d_k^\top W (\hat p - \mu), \qquad
        f = \big[\max(0, a_k - \alpha),\ \max(0, -a_k - \alpha)\big]_k

    f is averaged over each of four quarters of the image, and each feature brought to mean 0 and
    deviation 1 on the images from which the patches are.

    Args:
        filters: :math:`d_k^\top W`, by channel, row and column of a patch.
        offset: :math:`d_k^\top W \mu`.
        threshold: :math:`\alpha`.
        mean: of each feature.
        deviation: of each feature.

    Shape:
        filters ``(filters, channels, s, s)``, offset ``(filters,)``, mean and deviation
        ``(8 * filters,)``; from ``(images, channels, height, width)``, numbers from 0 to 255, to
        ``(images, 8 * filters)``.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> images = torch.randint(256, (20, 3, 12, 12), generator=g)
        >>> patch_features(images, 5, generator=g)(images).shape
        torch.Size([20, 40])

    Departs from the paper: filters are patches drawn at random, and features are the mean of a
    quarter instead of the sum.

    References:
        Coates, Ng and Lee (2011), An analysis of single-layer networks in unsupervised feature
        learning, section 3; Coates and Ng (2011), The importance of encoding versus training with
        sparse coding and vector quantization (random patches, thresholds of both signs).
    """

    filters: Tensor
    offset: Tensor
    threshold: float
    mean: Tensor
    deviation: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return (self.raw(x) - self.mean) / self.deviation

    def raw(self, x: Tensor) -> Tensor:
        """The features before they are brought to one size."""
        x, size = x.float(), self.filters.shape[-1]
        centre, spread = local(x, size)
        # a filter sees the mean of a patch in proportion to the sum of its entries
        seen = F.conv2d(x, self.filters) - self.filters.sum((1, 2, 3))[:, None, None] * centre
        a = seen / spread - self.offset[:, None, None]
        f = torch.cat([F.relu(a - self.threshold), F.relu(-a - self.threshold)], 1)
        return F.adaptive_avg_pool2d(f, 2).flatten(1)


def patch_features(
    images: Tensor, count: int, *, size: int = 6, threshold: float = 0.25, generator: Generator
) -> PatchFeatures:
    """Features whose filters are whitened patches of some images, drawn at random.

    Args:
        images: from which patches, their whitening and the scale of features are taken.
        count: of filters.
        size: s, pixels of a patch's edge.
        threshold: below which likeness counts as none.
        generator: draws the patches.

    Shape:
        images ``(images, channels, height, width)``, numbers from 0 to 255.
    """
    whole("count", count, 1)
    number("threshold", threshold, 0)
    if images.ndim != 4:
        raise InputError(
            "expected images of the shape (images, channels, height, width) to take patches of, "
            f"but got {tuple(images.shape)}. Try the stream incremental_images."
        )
    if whole("size", size, 1) >= min(images.shape[-2:]):
        raise InputError(
            f"expected patches smaller than the images, of {tuple(images.shape[-2:])} pixels, but "
            f"got size={size}. Try {min(images.shape[-2:]) // 2}."
        )
    images = images.float()
    patches = drawn(images, max(DRAWN, count), size, generator)
    mu = patches.mean(0)
    values, vectors = torch.linalg.eigh((patches - mu).T @ (patches - mu) / len(patches))
    W = (vectors / (values.clamp(min=0) + RIDGE).sqrt()) @ vectors.T
    d = (patches[:count] - mu) @ W
    d = d / d.norm(dim=1, keepdim=True).clamp(min=1e-12)
    filters = (d @ W).reshape(count, images.shape[1], size, size)
    nothing = torch.zeros(8 * count)
    found = PatchFeatures(filters, d @ W @ mu, threshold, nothing, nothing + 1)
    seen = torch.cat([found.raw(some) for some in torch.split(images, 500)])
    deviation = seen.std(0).clamp(min=1e-6)
    return PatchFeatures(filters, found.offset, threshold, seen.mean(0), deviation)


def drawn(images: Tensor, count: int, size: int, generator: Generator) -> Tensor:
    """Patches at random places of random images, each brought to mean 0 and deviation 1.

    Shape:
        ``(count, channels * size * size)``.
    """
    many, _, height, width = images.shape
    image = torch.randint(many, (count,), generator=generator)
    row = torch.randint(height - size + 1, (count,), generator=generator)
    column = torch.randint(width - size + 1, (count,), generator=generator)
    span = torch.arange(size)
    rows, columns = row[:, None, None] + span[:, None], column[:, None, None] + span
    patches = images.permute(0, 2, 3, 1)[image[:, None, None], rows, columns]
    flat = patches.permute(0, 3, 1, 2).flatten(1)
    variance = flat.var(1, correction=0, keepdim=True)
    return (flat - flat.mean(1, keepdim=True)) / (variance + EVEN).sqrt()


def local(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The mean of each patch of images, and its deviation.

    Shape:
        ``(images, 1, rows, columns)`` each.
    """
    means = F.avg_pool2d(x.mean(1, keepdim=True), size, stride=1)
    squares = F.avg_pool2d(x.square().mean(1, keepdim=True), size, stride=1)
    return means, ((squares - means.square()).clamp(min=0) + EVEN).sqrt()
