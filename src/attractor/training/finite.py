"""Numbers that a network can learn from."""

import math

from torch import Tensor

from attractor.errors import InputError

AT_ONCE = 2**22
"""Numbers that are looked at together, so that large data need little memory beside them."""


def expect_finite(values: Tensor, what: str) -> None:
    """Refuse samples with NaN or infinity among them, and tell the first such place.

    Args:
        values: samples first.
        what: in words.

    Example:
        >>> import torch
        >>> expect_finite(torch.tensor([[1.0], [torch.nan]]), "the inputs")
        Traceback (most recent call last):
        ...
        attractor.errors.InputError: expected finite numbers in the inputs, but sample 1 has NaN \
at [0]. Fill in what is missing, or leave the sample out.
    """
    if not values.is_floating_point() or not values.numel():
        return
    rows = max(1, AT_ONCE // math.prod(values.shape[1:]))
    for start in range(0, len(values), rows):
        some = values[start : start + rows]
        beyond = ~some.isfinite()
        if beyond.any():
            sample, *place = beyond.nonzero()[0].tolist()
            value = some[beyond][0].item()
            where = f" at {place}" if place else ""
            raise InputError(
                f"expected finite numbers in {what}, but sample {start + sample} has "
                f"{'NaN' if math.isnan(value) else value}{where}. Fill in what is missing, or "
                "leave the sample out."
            )
