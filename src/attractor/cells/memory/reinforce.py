r"""REINFORCE for cells that choose where to read: rewards in, a loss for the choices out.

A cell with discrete addressing puts the logarithm of the probability of its choice into its
state; ``layer(x, return_states=True)`` gives it for every step. Nothing is kept on a module: the
running averages are a value that the training loop hands on.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, positive
from attractor.cells.init import uniform_
from attractor.errors import InputError


class Baseline(NamedTuple):
    """Running averages of the reward of each step ``(time,)``, and of its variance ``()``."""

    mean: Tensor
    variance: Tensor


def initial_baseline(steps: int = 0, *, like: Tensor | None = None) -> Baseline:
    """No reward seen yet; `reinforce_loss` makes it longer where a sequence is.

    Example:
        >>> initial_baseline(3)
        Baseline(mean=tensor([0., 0., 0.]), variance=tensor(0.))
    """
    like = torch.empty(0) if like is None else like
    return Baseline(like.new_zeros(steps), like.new_zeros(()))


def discounted_returns(rewards: Tensor, discount: float) -> Tensor:
    r""":math:`G_t = \sum_{j \ge t} \gamma^{j-t} R_j`, for rewards ``(time, ...)``.

    Example:
        >>> discounted_returns(torch.tensor([1.0, -2.0, 4.0]), 0.5)
        tensor([1., 0., 4.])
    """
    returns: list[Tensor] = []
    following = torch.zeros_like(rewards[0])
    for reward in reversed(rewards.unbind()):
        following = reward + discount * following
        returns.append(following)
    return torch.stack(returns[::-1])


@torch.no_grad()
def learning_signal(
    rewards: Tensor, baseline: Baseline, *, discount: float, decay: float = 0.9
) -> tuple[Tensor, Baseline]:
    r"""How much better than expected each choice turned out, and the new averages.

    .. math::
        b_j &\leftarrow \rho \, b_j + (1 - \rho) \, \overline{R_j} \\
        v &\leftarrow \rho \, v + (1 - \rho) \, \mathrm{Var}(R - b) \\
        G_t &= \sum_{j \ge t} \gamma^{j-t} (R_j - b_j) / \max(1, \sqrt v)

    Args:
        rewards: the reward of each step, zero where nothing is asked.
        baseline: the averages so far.
        discount: :math:`\gamma`.
        decay: :math:`\rho`.

    Shape:
        rewards ``(time, batch)``, the signal likewise.

    Example:
        >>> rewards = torch.tensor([[-1.0, -3.0], [0.0, 0.0]])
        >>> signal, baseline = learning_signal(rewards, initial_baseline(2), discount=0.9)
        >>> baseline.mean
        tensor([-0.2000,  0.0000])
    """
    steps = len(rewards)
    mean = F.pad(baseline.mean, (0, max(0, steps - len(baseline.mean))))
    now = decay * mean[:steps] + (1 - decay) * rewards.mean(1)
    centred = rewards - now.unsqueeze(1)
    variance = decay * baseline.variance + (1 - decay) * centred.var(correction=0)
    signal = discounted_returns(centred, discount) / variance.sqrt().clamp_min(1.0)
    return signal, Baseline(torch.cat([now, mean[steps:]]), variance)


def reinforce_loss(
    log_probs: Tensor,
    rewards: Tensor,
    baseline: Baseline,
    *,
    discount: float,
    decay: float = 0.9,
) -> tuple[Tensor, Baseline]:
    r"""A loss whose gradient is REINFORCE's with a baseline, discount and normalised variance.

    .. math::
        -\frac{1}{N} \sum_{i=1}^N \sum_t G^{(i)}_t \log \bar w_t^{r(i)}

    where :math:`G_t` is the `learning_signal`. Add it to the loss of the task, which trains all
    that is not behind a choice. No gradient goes into the rewards.

    Args:
        log_probs: ``states.log_prob`` of the layer: how likely each choice was.
        rewards: what each step earned, such as the log-likelihood of its answer or the output of
            `AuxiliaryReward`; zero where nothing is asked.
        baseline: the averages so far, from `initial_baseline` or the last call.
        discount: :math:`\gamma`, from 0 to 1.
        decay: how slowly the averages change.

    Shape:
        rewards ``(time, batch)``; log_probs likewise, or with more steps, of which the first then
        came before anything was rewarded; the loss is a scalar.

    Example:
        >>> from attractor.cells import Recurrent
        >>> layer = Recurrent("tardis", 3, 8, estimator="reinforce")
        >>> output, _, states = layer(torch.randn(5, 2, 3), return_states=True)
        >>> rewards = -output.square().mean(-1)
        >>> loss, baseline = reinforce_loss(
        ...     states.log_prob[:, 0], rewards, initial_baseline(), discount=0.9
        ... )
        >>> loss.shape, baseline.mean.shape
        (torch.Size([]), torch.Size([5]))

    Departs from the paper: the thesis gives no value for the discount, and says of baseline and
    variance only that they are those of Mnih and Gregor, whose running averages these are.

    References:
        Williams (1992), Simple statistical gradient-following algorithms for connectionist
        reinforcement learning; Mnih and Gregor (2014), Neural variational inference and learning
        in belief networks, arXiv:1402.0030; Chandar (2020), equations 3.13 to 3.16.
    """
    before = len(log_probs) - len(rewards)
    if log_probs.dim() != 2 or before < 0 or log_probs.shape[1:] != rewards.shape[1:]:
        raise InputError(
            "reinforce_loss expects log_probs and rewards of shape (time, batch), but got "
            f"{tuple(log_probs.shape)} and {tuple(rewards.shape)}. From a layer, choose one of "
            "its cells: states.log_prob[:, 0]."
        )
    if not 0 <= discount <= 1:
        raise InputError(f"reinforce_loss expects a discount from 0 to 1, but got {discount!r}.")
    signal, baseline = learning_signal(rewards, baseline, discount=discount, decay=decay)
    ahead = torch.arange(before, 0, -1).to(signal).unsqueeze(1)
    signal = torch.cat([discount**ahead * signal[:1], signal])
    return -(signal * log_probs).sum() / log_probs.shape[1], baseline


def log_likelihoods(said: Tensor, y: Tensor) -> Tensor:
    """The logarithm of the likelihood of each answer; zero where nothing is asked.

    Shape:
        said ``(..., classes)`` and y ``(...)``, whole numbers; or both ``(..., bits)``. The result
        is ``(...)``.

    Example:
        >>> log_likelihoods(torch.zeros(2, 4), torch.tensor([3, -100])).abs()  # log 4
        tensor([1.3863, 0.0000])
        >>> log_likelihoods(torch.zeros(1, 2), torch.tensor([[1, -100]]))  # log 2
        tensor([-0.6931])
    """
    if y.shape == said.shape:
        bits = F.binary_cross_entropy_with_logits(said, y.clamp(min=0).to(said), reduction="none")
        return -(bits * (y >= 0)).sum(-1)
    return -F.cross_entropy(said.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)


class AuxiliaryReward(nn.Module):
    r"""The reward of a read: how well the answer follows from what was read and the input alone.

    .. math::
        R'_j = \log \mathrm{softmax}(W^o_r \bar r_j + W^o_x x_j)[y_j]

    Rewarding the likelihood of the model's own answer lets it rely on its controller and makes
    any read look good. This reward does not see the controller. Minimise ``-rewards.mean()`` to
    train the two matrices, and nothing else: no gradient goes into :math:`r` or :math:`x`.

    Args:
        read_size: features of what is read, ``states.r`` of a TARDIS.
        input_size: features of the input.
        output_size: number of answers.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        r ``(..., read_size)``, x ``(..., input_size)``, y ``(...)`` whole numbers or
        ``(..., output_size)`` bits, -100 where nothing is asked; the result is ``(...)``, zero
        where nothing is asked.

    Example:
        >>> reward = AuxiliaryReward(6, 3, 10)
        >>> r, x, y = torch.randn(5, 2, 6), torch.randn(5, 2, 3), torch.randint(10, (5, 2))
        >>> reward(r, x, y).shape
        torch.Size([5, 2])

    Departs from the paper: nothing, but it leaves open whether r is all that was read or its
    content; here it is all.

    References:
        Chandar (2020), equation 3.17.
    """

    def __init__(
        self,
        read_size: int,
        input_size: int,
        output_size: int,
        *,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        to: Placement = {"device": device, "dtype": dtype}
        self.read_size = positive(type(self), "read_size", read_size)
        self.input_size = positive(type(self), "input_size", input_size)
        self.output_size = positive(type(self), "output_size", output_size)
        self.weight_ro = nn.Parameter(torch.empty(output_size, read_size, **to))
        self.weight_io = nn.Parameter(torch.empty(output_size, input_size, **to))
        uniform_(self.weight_ro, read_size**-0.5, generator)
        uniform_(self.weight_io, input_size**-0.5, generator)

    def forward(self, r: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The reward of each step."""
        logits = F.linear(r.detach(), self.weight_ro) + F.linear(x.detach(), self.weight_io)
        return log_likelihoods(logits, y)

    def extra_repr(self) -> str:
        return f"{self.read_size}, {self.input_size}, {self.output_size}"
