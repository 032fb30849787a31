"""A small network of attention, for learners that torch can run side by side."""

from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from attractor.cells.init import uniform_


class Attention(nn.Module):
    r"""Reads a sequence by self-attention, and answers once: a learner for meta-training.

    .. math::
        h &= E x + P, \qquad
        h \leftarrow h + O \, \text{softmax}(q k^\top / \sqrt{d}) \, v, \qquad
        h \leftarrow h + W_2 \, \text{relu}(W_1 \, \text{norm}(h)), \qquad y = R \, \text{mean}(h)

    with :math:`q, k, v` linear in the layer norm of :math:`h`; as many such blocks as `layers`.
    :math:`P`, a vector for each step, is a table and no matrix for rules that ask.

    Args:
        shape: of a step of the sequence.
        outputs: numbers in an answer.
        width: of :math:`h`.
        layers: blocks.
        steps: of a sequence, at most.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, time, features)``; the answer ``(batch, outputs)``.

    Example:
        >>> Attention([7], 10)(torch.zeros(2, 7, 7)).shape
        torch.Size([2, 10])
    """

    table_parameters: ClassVar = ("places",)

    def __init__(
        self,
        shape: list[int],
        outputs: int,
        *,
        width: int = 16,
        layers: int = 1,
        steps: int = 32,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(shape[0], width)
        self.places = nn.Parameter(torch.empty(steps, width))
        blocks = [(width, 3 * width), (width, width), (width, 2 * width), (2 * width, width)]
        self.blocks = nn.ModuleList(nn.Linear(*one) for _ in range(layers) for one in blocks)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.readout = nn.Linear(width, outputs)
        for part in (self.embed, *self.blocks, self.readout):
            uniform_(part.weight, part.in_features**-0.5, generator)
            nn.init.zeros_(part.bias)
        nn.init.normal_(self.places, 0.0, 0.1, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x) + self.places[: x.shape[1]]
        for layer in range(len(self.norms) // 2):
            qkv, out, up, down = self.blocks[4 * layer : 4 * layer + 4]
            before, between = self.norms[2 * layer : 2 * layer + 2]
            q, k, v = qkv(before(h)).chunk(3, dim=-1)
            h = h + out(torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v)
            h = h + down(torch.relu(up(between(h))))
        y: Tensor = self.readout(h.mean(1))
        return y
