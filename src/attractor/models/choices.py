"""What trains a cell's choices of where to read, beside the loss of the task: REINFORCE."""

from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.cells import (
    AuxiliaryReward,
    Baseline,
    DNTMCell,
    Recurrent,
    TARDISCell,
    initial_baseline,
    log_likelihoods,
    reinforce_loss,
)
from attractor.checks import number, one_of
from attractor.errors import InputError
from attractor.tasks import IGNORE, Penalised

Reward = Literal["likelihood", "auxiliary"]


class Drawn(NamedTuple):
    """Choices of where to read, and what the steps that are asked, the last ones, had before them.

    Shape:
        log_prob ``(time, batch)``, how likely each choice was; read ``(asked, batch, features)``,
        or ``None`` for a cell that does not say; shown ``(batch, asked, features)``.
    """

    log_prob: Tensor
    read: Tensor | None
    shown: Tensor


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
        said ``(batch, asked, output_size)``, y ``(batch, asked)``, or bits in the shape of said;
        the loss is a scalar.

    Example:
        >>> layer = Recurrent("tardis", 3, 8, estimator="reinforce", batch_first=True)
        >>> choices = Choices(layer, 8, "auxiliary")
        >>> x, y = torch.randn(2, 5, 3), torch.randint(8, (2, 5))
        >>> output, _, states = layer(x, return_states=True)
        >>> choices(output, drawn(x, states), y).shape
        torch.Size([])

    Departs from the paper: the mean over the steps that are asked, not their sum, as the loss of
    the task is a mean; the discount, which the thesis does not say, is 0.9; the auxiliary answer
    sees words as the layer does, embedded.

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
                f"REINFORCE to train, but got {' and '.join(str(one) for one in layer.cells)}. Try "
                "cell='tardis', estimator='reinforce'."
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
                size,
                layer.input_size,
                output_size,
                generator=generator,
                device=state.r.device,
                dtype=state.r.dtype,
            )
        start = initial_baseline(like=torch.empty(0, device=next(layer.parameters()).device))
        self.register_buffer("mean", start.mean)
        self.register_buffer("variance", start.variance)

    def forward(self, said: Tensor, seen: Drawn, y: Tensor) -> Tensor:
        """The loss of the choices; moves the averages."""
        if self.auxiliary is None or seen.read is None:
            rewards, answers = log_likelihoods(said, y).T, 0.0
        else:
            rewards = self.auxiliary(seen.read, seen.shown.transpose(0, 1), y.transpose(0, 1))
            answers = -rewards.sum() / (y != IGNORE).sum().clamp(min=1)
        before = Baseline(self.mean, self.variance)
        loss, after = reinforce_loss(seen.log_prob, rewards, before, discount=self.discount)
        self.mean, self.variance = after
        return loss / len(rewards) + answers

    def priced(self, said: Tensor, seen: Drawn, also: Tensor | float = 0.0) -> Penalised:
        """An answer with what its choices cost once it is known what was asked, and what else."""
        return Penalised(said, partial(self._taught, said, seen, also))

    def _taught(self, said: Tensor, seen: Drawn, also: Tensor | float, y: Tensor) -> Tensor:
        """What teaches the choices: its gradient counts, while its value says nothing and is zero.

        An answer to a whole sequence is one to its last step.
        """
        if said.dim() == 2:
            said, y = said.unsqueeze(1), y.unsqueeze(1)
        _expect_likelihoods(said, y)
        cost: Tensor = self(said, seen, y)
        return cost - cost.detach() + also

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """As ever, with as many averages as were saved."""
        if (saved := state_dict.get(f"{prefix}mean")) is not None:
            self.mean = self.mean.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _expect_likelihoods(said: Tensor, y: Tensor) -> None:
    """Refuse answers that are neither classes nor bits, of which nothing here is a likelihood."""
    most = 1 if y.shape == said.shape else said.shape[-1] - 1
    asked = y[y != IGNORE]
    if bool(((asked != asked.long()) | (asked < 0) | (asked > most)).any()):
        raise InputError(
            f"expected right answers that are whole numbers from 0 to {most} for a reward, which "
            f"is their likelihood, but got {asked.min():g} to {asked.max():g}. Leave reward out, "
            "or ask for classes or bits."
        )


def _draws(part: nn.Module) -> bool:
    """Whether a module is a cell that draws where to read, and lets no gradient through."""
    if isinstance(part, TARDISCell):
        return part.estimator == "reinforce"
    return isinstance(part, DNTMCell) and part.discrete


def drawn(x: Tensor | PackedSequence, states: Any, asked: int | None = None) -> Drawn:
    """The choices that are in the states of a layer which has read x.

    Args:
        x: what was read, ``(batch, time, features)`` or packed.
        states: what the layer gave with ``return_states=True``.
        asked: how many of the last steps are; ``None`` means all. Packed sequences are moved so
            that all end at the last step.

    Example:
        >>> layer = Recurrent("tardis", 3, 8, estimator="reinforce", batch_first=True)
        >>> x = torch.randn(2, 5, 3)
        >>> drawn(x, layer(x, return_states=True)[2], asked=1).shown.shape
        torch.Size([2, 1, 3])
    """
    log_prob, read = states.log_prob[:, 0], getattr(states, "r", None)
    read = None if read is None else read[:, 0]
    if isinstance(x, PackedSequence):
        x, lengths = pad_packed_sequence(x)
        x, log_prob = _moved(x, lengths), _moved(log_prob, lengths)
        x, read = x.transpose(0, 1), None if read is None else _moved(read, lengths)
    first = 0 if asked is None else x.shape[1] - asked
    return Drawn(log_prob, None if read is None else read[first:], x[:, first:])


def _moved(x: Tensor, lengths: Tensor) -> Tensor:
    """Ragged sequences ``(time, batch, ...)`` moved to end together, with zeros before them."""
    steps = torch.arange(len(x), device=x.device).unsqueeze(1) - (len(x) - lengths.to(x.device))
    index = steps.clamp(min=0).view(*steps.shape, *[1] * (x.dim() - 2)).expand_as(x)
    return x.gather(0, index) * (steps >= 0).view(*steps.shape, *[1] * (x.dim() - 2))
