"""Dark experience replay."""

from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.checks import number, whole
from attractor.continual.replay.ahead import Ahead
from attractor.continual.replay.episodes import Episodes, MemoryKind
from attractor.continual.strategies.base import Loss, Strategy
from attractor.tasks import Batch
from attractor.tasks.answers import answer, asked, counts, cross_entropy
from attractor.tasks.streams import Stream

Memories = tuple[Batch, Tensor] | None
"""Samples, and what was said to them when they came; nothing if there are none."""


class DER(Strategy):
    r"""Dark experience replay: keep giving memories the outputs they had when they were stored.

    .. math::
        L = L_V + \alpha\, \frac{1}{|B_M| C} \sum_{i \in B_M} \| h_\theta(x_i) - z_i \|^2

    where :math:`z_i` are the outputs, before the softmax, that the network of that time gave to the
    sample, and C is their number. Needs no boundaries between tasks.

    Args:
        size: samples kept in all.
        alpha: :math:`\alpha`, the weight of the old answers.
        replay: memories in each :math:`B_M`.
        memory: ``"reservoir"`` (the paper's), ``"classes"``, ``"ring"`` or ``"hard"`` (of each
            task).

    Example:
        >>> DER(200).alpha
        0.5

    Departs from the paper: the squared distance is divided by the number of outputs, as the
    authors' code does. Outputs that are minus infinity, as those of other tasks' heads, and steps
    at which nothing is asked do not count.

    References:
        Buzzega et al. (2020), Dark experience for general continual learning, arXiv:2004.07211,
        equation 5.
    """

    reference = "buzzega2020dark"
    adds_samples = True

    def __init__(
        self,
        size: int = 500,
        *,
        alpha: float = 0.5,
        replay: int = 10,
        memory: MemoryKind = "reservoir",
    ) -> None:
        self.size, self.memory = whole("size", size, 1), memory
        self.alpha, self.replay = number("alpha", alpha, 0), whole("replay", replay, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.episodes = Episodes(
            self.memory, self.size, len(stream), generator=generator, stream=stream
        )
        self._ahead: Ahead[Memories] = Ahead(generator)
        self._said: tuple[nn.Module, Batch, Tensor] | None = None
        return model

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)
        self._ahead.forget()

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        loss = self._heard(model, batch, base)
        old = self._ahead.look("replayed", self.memories)
        if old is None:
            return loss
        batch, said = old
        return loss + self.alpha * distance(answer(model, batch), said, asked(batch))

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        assert self._said is not None
        model, last, said = self._said
        if last is not batch:  # something else was asked in between
            with torch.no_grad():
                said = answer(model, batch)
        self._ahead.take("replayed", self.memories)
        self.episodes.add(batch, said)

    def _heard(self, model: nn.Module, batch: Batch, base: Loss) -> Tensor:
        """The loss on a batch; what the model said on the way is noted."""
        heard: list[Tensor] = []

        def note(model: nn.Module, inputs: object, output: Any) -> None:
            if isinstance(output, PackedSequence):
                output = pad_packed_sequence(output, batch_first=True)[0]
            heard.append(output.detach())

        hook = model.register_forward_hook(note)
        try:
            loss = base(model, batch)
        finally:
            hook.remove()
        self._said = (model, batch, heard[-1])
        return loss

    def memories(self, generator: Generator) -> Memories:
        """What is replayed next, if anything is kept."""
        if not len(self.episodes):
            return None
        batch, (said,) = self.episodes.draw_with(self.replay, generator, extra=1)
        return batch, said

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
        self._ahead.forget()


def distance(output: Tensor, said: Tensor, y: Tensor) -> Tensor:
    r"""The mean squared distance of outputs from what was said before.

    Where nothing is asked, or an output is minus infinity, nothing counts. A head that has grown
    since is compared in the outputs that it had.

    Shape:
        output ``(samples, classes)`` or ``(samples, time, classes)``, said likewise, perhaps with
        fewer classes and other steps; y as the answers that are asked, or with one for each output.

    Example:
        >>> float(distance(torch.ones(2, 3), torch.zeros(2, 3), torch.tensor([0, 1])))
        1.0
    """
    there = counts(y)
    if output.ndim > 2:
        steps = min(output.shape[1], said.shape[1])
        output, said, there = output[:, :steps], said[:, :steps], there[:, :steps]
    output = output[..., : said.shape[-1]]
    there = said.isfinite() & (there if there.ndim == said.ndim else there[..., None])
    return (output - said).masked_fill(~there, 0).square().sum() / there.sum().clamp(min=1)
