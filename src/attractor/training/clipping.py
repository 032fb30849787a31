"""Gradients that are cut to a norm, however large they are."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm


def cut_to_norm(parameters: Iterable[Tensor], limit: float) -> float:
    """Scale gradients down to a norm where theirs is larger; what it was.

    It is finite wherever the gradients are. That of ``torch.nn.utils.clip_grad_norm_`` is
    infinite once a gradient in single precision is above 1.8e19, whose square is too large, and
    the gradients become zero: a recurrent network comes there within 200 steps if it starts with
    large weights.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3e25, 4e25])
        >>> f"{cut_to_norm([weight], limit=1.0):.3g}"
        '5e+25'
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    parameters = [one for one in parameters if one.grad is not None]
    grads = [one.grad for one in parameters if one.grad is not None]
    norm = get_total_norm(grads)
    if not torch.isfinite(norm):
        norm = get_total_norm([grad.double() for grad in grads])
    clip_grads_with_norm_(parameters, limit, norm)
    return float(norm)
