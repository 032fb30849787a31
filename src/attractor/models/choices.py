"""What trains a cell's choices of where to read, beside the loss of the task: REINFORCE."""

from typing import Any, Literal

import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells import (
    AuxiliaryReward,
    Baseline,
    DNTMCell,
    Recurrent,
    TARDISCell,
    initial_baseline,
    reinforce_loss,
)
from attractor.checks import number, one_of
from attractor.errors import InputError
from attractor.tasks.batch import IGNORE

Reward = Literal["likelihood", "auxiliary"]


class Choices(nn.Module):
    r"""The loss of a layer's choices, from how good the answers after them were.

    .. math::
        -\frac{1}{N T} \sum_{i=1}^N \sum_{t=1}^T G^{(i)}_t \log \bar w_t^{r(i)}

    with the discounted, centred and scaled rewards G of `attractor.cells.reinforce_loss`. The
    reward of a step is the log-likelihood of the model's own answer there, or that of an answer
    from what was read and the input alone, whose two matrices are trained here too. The running
    averages of the rewards are buffers, so that a run goes on with them.

    Args:
        layer: one layer in one direction of a cell whose state has ``log_prob``: a TARDIS with
            ``estimator="reinforce"``, or a D-NTM with ``discrete=True``.
        output_size: answers that are told apart.
        reward: ``"likelihood"``, or ``"auxiliary"`` for a cell whose state has what was read, r.
        discount: of later rewards, from 0 to 1.
        generator: draws the initial weights of the auxiliary answer.

    Shape:
        x ``(batch, time, features)``, said ``(batch, time, output_size)``, y ``(batch, time)``;
        the loss is a scalar.

    Example:
        >>> import torch
        >>> layer = Recurrent("tardis", 3, 8, estimator="reinforce", batch_first=True)
        >>> choices = Choices(layer, 8, "auxiliary")
        >>> x, y = torch.randn(2, 5, 3), torch.randint(8, (2, 5))
        >>> output, _, states = layer(x, return_states=True)
        >>> choices(x, output, states, y).shape
        torch.Size([])

    Departs from the paper: the mean over steps, not their sum, as the loss of the task is a mean;
    the discount, which the thesis does not say, is 0.9.

    References:
        Chandar (2020), equations 3.13 to 3.17.
    """

    mean: Tensor
    variance: Tensor

    def __init__(
        self,
        layer: Recurrent,
        output_size: int,
        reward: Reward,
        *,
        discount: float = 0.9,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        one_of("reward", reward, ("likelihood", "auxiliary"))
        self.discount = number("discount", discount, 0, 1)
        if len(layer.cells) != 1 or not any(map(_draws, layer.modules())):
            raise InputError(
                "expected one layer in one direction of a cell that draws where to read, for "
                f"REINFORCE to train, but got {layer}. Try cell='tardis', estimator='reinforce'."
            )
        state = layer.initial_state(1)
        self.auxiliary: AuxiliaryReward | None = None
        if reward == "auxiliary":
            if not hasattr(state, "r"):
                raise InputError(
                    f"expected a cell whose state has what was read, but {type(state).__name__} "
                    "has not. Try reward='likelihood', or cell='tardis'."
                )
            size = state.r.shape[-1]
            self.auxiliary = AuxiliaryReward(
                size, layer.input_size, output_size, generator=generator
            )
        start = initial_baseline()
        self.register_buffer("mean", start.mean)
        self.register_buffer("variance", start.variance)

    def forward(self, x: Tensor, said: Tensor, states: Any, y: Tensor) -> Tensor:
        """The loss of the choices in `states`; moves the averages."""
        if self.auxiliary is None:
            rewards, answers = likelihoods(said, y).T, 0.0
        else:
            rewards = self.auxiliary(states.r[:, 0], x.transpose(0, 1), y.T)
            answers = -rewards.sum() / (y != IGNORE).sum().clamp(min=1)
        before = Baseline(self.mean, self.variance)
        log_probs = states.log_prob[:, 0]
        loss, after = reinforce_loss(log_probs, rewards, before, discount=self.discount)
        self.mean, self.variance = after
        return loss / len(log_probs) + answers

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """As ever, with as many averages as were saved."""
        if (saved := state_dict.get(f"{prefix}mean")) is not None:
            self.mean = self.mean.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _draws(part: nn.Module) -> bool:
    """Whether a module is a cell that draws where to read, and lets no gradient through."""
    if isinstance(part, TARDISCell):
        return part.estimator == "reinforce"
    return isinstance(part, DNTMCell) and part.discrete


def likelihoods(said: Tensor, y: Tensor) -> Tensor:
    """The logarithm of the likelihood of each answer; zero where nothing is asked.

    Example:
        >>> import torch
        >>> likelihoods(torch.zeros(1, 2, 4), torch.tensor([[3, -100]])).abs()  # log 4
        tensor([[1.3863, 0.0000]])
    """
    losses = F.cross_entropy(
        said.flatten(0, -2), y.flatten(), ignore_index=IGNORE, reduction="none"
    )
    return -losses.view(y.shape)
