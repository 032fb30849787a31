"""Features of patches against loops over patches in NumPy, written from the equations."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.streams import patch_features
from attractor.tasks.streams.patches import PatchFeatures, drawn

Floats = NDArray[np.float64]


def images(count: int = 9, height: int = 8, width: int = 7) -> torch.Tensor:
    g = torch.Generator().manual_seed(3)
    smooth = torch.rand(count, 3, 1, width, generator=g) * torch.rand(
        count, 1, height, 1, generator=g
    )
    rough = torch.rand(count, 3, height, width, generator=g)
    return (255 * (0.7 * smooth + 0.3 * rough)).byte()


def even(patch: Floats) -> Floats:
    flat = patch.reshape(-1)
    scaled: Floats = (flat - flat.mean()) / np.sqrt(flat.var() + 10)
    return scaled


def by_loops(x: Floats, d: Floats, W: Floats, mu: Floats, size: int, alpha: float) -> Floats:
    """One image: each patch by itself, then the mean of each quarter."""
    rows, columns = x.shape[1] - size + 1, x.shape[2] - size + 1
    f = np.zeros((2 * len(d), rows, columns))
    for i in range(rows):
        for j in range(columns):
            a = d @ (W @ (even(x[:, i : i + size, j : j + size]) - mu))
            f[:, i, j] = np.concatenate([np.maximum(0, a - alpha), np.maximum(0, -a - alpha)])
    up, down = slice(0, -(-rows // 2)), slice(rows // 2, rows)
    left, right = slice(0, -(-columns // 2)), slice(columns // 2, columns)
    quarters = [f[:, i, j].mean((1, 2)) for i in (up, down) for j in (left, right)]
    return np.stack(quarters, 1).reshape(-1)


def test_features_are_those_of_loops_over_patches() -> None:
    x, size, alpha, count = images(), 3, 0.4, 5
    found = patch_features(
        x, count, size=size, threshold=alpha, generator=torch.Generator().manual_seed(1)
    )
    again = torch.Generator().manual_seed(1)
    patches = drawn(x.float(), 20_000, size, again).double().numpy()
    mu = patches.mean(0)
    covariance = (patches - mu).T @ (patches - mu) / len(patches)
    values, vectors = np.linalg.eigh(covariance)
    W = vectors @ np.diag(1 / np.sqrt(values + 0.1)) @ vectors.T
    d = (patches[:count] - mu) @ W.T
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    pixels = x.double().numpy()
    expected = np.stack([by_loops(one, d, W, mu, size, alpha) for one in pixels])
    np.testing.assert_allclose(found.raw(x).numpy(), expected, atol=2e-4)
    scaled = (expected - expected.mean(0)) / expected.std(0, ddof=1)
    seen = expected.std(0) > 1e-2
    assert seen.sum() > 20
    np.testing.assert_allclose(found(x).numpy()[:, seen], scaled[:, seen], atol=2e-2)


def test_filters_need_not_sum_to_zero() -> None:
    g = torch.Generator().manual_seed(4)
    filters, offset = torch.rand(2, 3, 3, 3, generator=g), torch.tensor([0.7, -0.2])
    found = PatchFeatures(filters, offset, 0.1, torch.zeros(16), torch.ones(16))
    flat = filters.double().reshape(2, -1).numpy()
    # without whitening, and with the offset as what the mean patch gives
    mu = np.linalg.pinv(flat) @ offset.double().numpy()
    expected = [by_loops(x, flat, np.eye(27), mu, 3, 0.1) for x in images().double().numpy()]
    np.testing.assert_allclose(found(images()).numpy(), np.stack(expected), atol=1e-4)


def test_patches_are_pieces_of_the_images_brought_to_one_size() -> None:
    x = images(4)
    patches = drawn(x.float(), 50, 3, torch.Generator().manual_seed(0)).numpy()
    pieces = np.stack(
        [
            even(one[:, i : i + 3, j : j + 3])
            for one in x.double().numpy()
            for i in range(6)
            for j in range(5)
        ]
    )
    distance = np.abs(patches[:, None] - pieces[None]).max(2).min(1)
    assert distance.max() < 1e-5
    assert len({tuple(row.round(4)) for row in patches}) > 30


def test_what_is_the_same_in_all_images_stays_finite() -> None:
    flat = torch.full((5, 3, 8, 8), 7, dtype=torch.uint8)
    found: PatchFeatures = patch_features(flat, 2, generator=torch.Generator().manual_seed(0))
    assert found(flat).isfinite().all()


def test_bad_settings_are_refused() -> None:
    g = torch.Generator()
    with pytest.raises(InputError, match=r"expected patches smaller than the images, of \(8, 7\)"):
        patch_features(images(), 2, size=7, generator=g)
    with pytest.raises(InputError, match=r"of the shape \(images, channels, height, width\)"):
        patch_features(torch.zeros(4, 20), 2, generator=g)
    with pytest.raises(InputError, match="expected threshold to be at least 0, but got -1"):
        patch_features(images(), 2, size=3, threshold=-1, generator=g)
