"""The denoising task: pick a few symbols out of a long noise, and say them at the end."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.generated import Generated

NOISE = 0
"""The token of noise; the symbols are 1 to n, and the marker is n + 1."""


def denoise_tokens(
    symbols: Tensor, positions: Tensor, lag: int, marker: int
) -> tuple[Tensor, Tensor]:
    """Input and answer tokens of the task, for given symbols and where they stand.

    Args:
        symbols: what to remember.
        positions: the step of each symbol, ascending and below `lag`.
        lag: steps before the marker.
        marker: the token that says "start recall".

    Shape:
        symbols and positions ``(batch, k)``; both results ``(batch, lag + 1 + k)``.

    Example:
        >>> symbols, positions = torch.tensor([[3, 5]]), torch.tensor([[1, 2]])
        >>> x, y = denoise_tokens(symbols, positions, lag=4, marker=9)
        >>> x
        tensor([[0, 3, 5, 0, 9, 0, 0]])
        >>> y
        tensor([[-100, -100, -100, -100, -100,    3,    5]])
    """
    batch_size, k = symbols.shape
    steps = lag + 1 + k
    x = torch.full((batch_size, steps), NOISE)
    x[torch.arange(batch_size)[:, None], positions] = symbols
    x[:, lag] = marker
    y = torch.full((batch_size, steps), IGNORE)
    y[:, lag + 1 :] = symbols
    return x, y


class Denoise(Generated):
    r"""Denoising task: recall the k symbols that stood somewhere in T steps of noise.

    k symbols are drawn uniformly, with replacement, from n, and put in their order at k
    different steps out of T, drawn uniformly without replacement; the other steps hold one
    noise symbol. The marker "start recall" follows, then k steps of noise, at which the symbols
    are to be said. Only these last k steps count in the loss, so a model without memory can do
    no better than :math:`\ln n`.

    Args:
        lag: T, the number of steps before the marker.
        symbols: n, the number of different symbols.
        length: k, the number of symbols to remember.

    Shape:
        x one-hot ``(batch, T + 1 + k, n + 2)``; y ``(batch, T + 1 + k)``, 1 to n at the last k
        steps and `IGNORE` before.

    Example:
        >>> task = Denoise(lag=100)
        >>> batch = task.draw(4, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, batch.y.shape, int((batch.y != IGNORE).sum())
        (torch.Size([4, 111, 10]), torch.Size([4, 111]), 40)
        >>> round(task.baseline, 3)
        2.079

    Departs from the paper: nothing in the inputs; the output has n + 1 classes, as in the code
    behind the thesis, though the class of noise is never asked.

    References:
        Jing et al. (2017), Gated orthogonal recurrent units: on learning to forget,
        arXiv:1706.02761; Chandar (2020), section 4.3.2.
    """

    reference = "jing2017gated"

    def __init__(self, lag: int = 100, *, symbols: int = 8, length: int = 10) -> None:
        self.lag = whole("lag", lag, 1)
        self.symbols = whole("symbols", symbols, 2)
        self.length = whole("length", length, 1)
        if lag < length:
            raise InputError(
                f"expected a lag of at least length={length}, so that the symbols find room in "
                f"the noise, but got lag={lag}. Try lag={10 * length}."
            )
        self.marker = self.symbols + 1
        self.input_size = self.symbols + 2
        self.output_size = self.symbols + 1
        self.answers = "each step"

    @property
    def baseline(self) -> float:
        """The loss of a model without memory."""
        return math.log(self.symbols)

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        symbols = torch.randint(1, self.symbols + 1, (self.length, batch_size), generator=generator)
        equal = torch.ones(batch_size, self.lag)
        positions = torch.multinomial(equal, self.length, generator=generator).sort(1).values
        x, y = denoise_tokens(symbols.T, positions, self.lag, self.marker)
        return Batch(F.one_hot(x, self.input_size).float(), y)
