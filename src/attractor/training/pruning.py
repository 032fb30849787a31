"""The smallest weights removed: a network is trained, pruned, and trained again."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attractor.errors import InputError
from attractor.state import Nested
from attractor.training.process import Row
from attractor.training.supervised import Supervised


def smallest(model: nn.Module, share: float) -> list[Tensor]:
    """Which weights stay when a share of all, those nearest to zero, goes.

    Args:
        model: whose parameters are compared, all with each other.
        share: of them that goes, at least 0 and below 1; rounded to whole weights.

    Example:
        >>> layer = nn.Linear(3, 1)
        >>> layer.weight.data = torch.tensor([[0.5, -0.1, 2.0]])
        >>> layer.bias.data = torch.tensor([-1.0])
        >>> smallest(layer, 0.5)
        [tensor([[False, False,  True]]), tensor([True])]

    Departs from the paper: all layers are compared with each other; Han et al. have a threshold for
    each, and Frankle and Carbin a share. Biases go too, as with M2SGD.

    References:
        Han et al. (2015), Learning both weights and connections for efficient neural networks,
        arXiv:1506.02626.
    """
    if not 0 <= share < 1:
        raise InputError(
            f"expected a share of weights of at least 0 and below 1, but got {share}. Try 0.5."
        )
    parameters = list(model.parameters())
    sizes = torch.cat([p.abs().flatten() for p in parameters])
    kept = torch.ones_like(sizes, dtype=torch.bool)
    kept[sizes.argsort(stable=True)[: round(share * len(sizes))]] = False
    parts = kept.split_with_sizes([p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]


def hold(model: nn.Module, optimiser: Optimizer, kept: Sequence[Tensor]) -> None:
    """Set all other weights of a network to zero, now and after each step of an optimiser.

    Args:
        model: whose parameters `kept` are for.
        optimiser: of the network.
        kept: which weights stay, one for each parameter.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters(), 0.1)
        >>> hold(model, sgd, [torch.tensor([[True, False]]), torch.tensor([True])])
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> sgd.step()
        >>> model.weight[0, 1].item()
        0.0
    """
    pairs = list(zip(model.parameters(), kept, strict=True))

    @torch.no_grad()
    def clear(*_: object) -> None:
        for parameter, mask in pairs:
            parameter.masked_fill_(~mask, 0)

    clear()
    optimiser.register_step_post_hook(clear)


class Dense:
    """The training of the whole network, before it is pruned; its rows are told apart as such.

    Args:
        training: the training.
    """

    def __init__(self, training: Supervised) -> None:
        self.training, self.planned = training, training.plan.steps

    @property
    def step(self) -> int:
        return self.training.step

    @property
    def done(self) -> bool:
        return self.training.done

    def advance(self) -> list[Row]:
        return [{**row, "split": f"dense {row['split']}"} for row in self.training.advance()]

    def state_dict(self) -> Nested:
        return self.training.state_dict()

    def load_state_dict(self, state: Nested) -> None:
        self.training.load_state_dict(state)
