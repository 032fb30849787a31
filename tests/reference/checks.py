"""Functions shared by the tests in this folder."""

from typing import Any

import numpy as np


def rng(seed: int = 0) -> np.random.Generator:
    """A seeded source of random numbers."""
    return np.random.default_rng(seed)


def close(actual: Any, expected: Any, atol: float = 1e-12) -> None:
    """Fail unless the two agree to ``atol``."""
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)
