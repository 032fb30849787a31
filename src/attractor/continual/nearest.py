"""Exemplars near the mean of their class, and a layer that answers with the nearest mean."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NearestMean(nn.Linear):
    r"""A linear layer that, in evaluation, says how near the features are to each class's mean.

    In training :math:`W \varphi + b`; in evaluation, once means are known,
    :math:`\hat\varphi^\top \hat\mu_c`, which is largest where :math:`\| \hat\varphi - \hat\mu_c \|`
    is least, and minus infinity for classes without a mean.

    Args:
        layer: whose weights it has; they are shared.

    Example:
        >>> layer = NearestMean(nn.Linear(2, 3))
        >>> layer.remember(1, torch.tensor([[0.0, 1.0]]))
        >>> layer.remember(2, torch.tensor([[1.0, 0.0]]))
        >>> layer.eval()(torch.tensor([[3.0, 4.0]]))
        tensor([[  -inf, 0.8000, 0.6000]])
    """

    known: Tensor
    means: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.register_buffer("means", torch.zeros_like(layer.weight.detach()))
        self.register_buffer("known", torch.zeros(len(layer.weight), dtype=torch.bool))

    def remember(self, label: int, features: Tensor) -> None:
        """Take the mean of some features, ``(samples, features)``, as that of a class."""
        self.means[label] = F.normalize(features.mean(0), dim=0)
        self.known[label] = True

    def forward(self, x: Tensor) -> Tensor:
        if self.training or not bool(self.known.any()):
            return F.linear(x, self.weight, self.bias)
        near = F.linear(F.normalize(x, dim=-1), self.means)
        return near.masked_fill(~self.known, -torch.inf)


def herded(features: Tensor, count: int) -> Tensor:
    r"""Samples whose means follow the mean of all: the k-th brings that of the first k nearest.

    Args:
        features: of all samples.
        count: how many to choose, at most.

    Shape:
        features ``(samples, features)``; ``(count,)``, the numbers of the samples in their order.

    Example:
        >>> herded(torch.tensor([[0.0], [1.0], [2.0], [9.0]]), 2)  # the mean is 3
        tensor([2, 1])

    References:
        Rebuffi et al. (2017), iCaRL, algorithm 4.
    """
    mean, total = features.mean(0), torch.zeros_like(features[0])
    open_ = torch.ones(len(features), dtype=torch.bool, device=features.device)
    chosen = []
    for k in range(1, min(count, len(features)) + 1):
        far = (mean - (features + total) / k).square().sum(1)
        best = int(far.masked_fill(~open_, torch.inf).argmin())
        open_[best] = False
        total = total + features[best]
        chosen.append(best)
    return torch.tensor(chosen)
