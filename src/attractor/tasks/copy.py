"""The copying memory task: say again, after a long silence, what was said at the start."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import flag, whole
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.generated import Generated

BLANK = 0
"""The token of silence; the symbols are 1 to n, and the marker is n + 1."""


def copy_tokens(symbols: Tensor, lags: Tensor, marker: int) -> tuple[Tensor, Tensor]:
    """Input and answer tokens of the task, for given symbols and one lag per sequence.

    Args:
        symbols: what to remember.
        lags: steps from the last symbol to the marker, the marker included.
        marker: the token that says "start recall".

    Shape:
        symbols ``(batch, k)``, lags ``(batch,)``; both results ``(batch, max(lags) + 2k)``.

    Example:
        >>> x, y = copy_tokens(torch.tensor([[3, 5]]), torch.tensor([3]), marker=9)
        >>> x
        tensor([[3, 5, 0, 0, 9, 0, 0]])
        >>> y
        tensor([[0, 0, 0, 0, 0, 3, 5]])
    """
    batch_size, k = symbols.shape
    steps = int(lags.max()) + 2 * k
    sequence = torch.arange(batch_size)[:, None]
    recall = (k + lags)[:, None]
    x = torch.full((batch_size, steps), BLANK)
    x[:, :k] = symbols
    x[sequence, recall - 1] = marker
    over = torch.arange(steps) >= recall + k
    y = torch.full((batch_size, steps), BLANK).masked_fill(over, IGNORE)
    y[sequence, recall + torch.arange(k)] = symbols
    return x, y


class CopyMemory(Generated):
    r"""Copying memory task: recall k symbols after T steps.

    The first k inputs are symbols drawn uniformly, with replacement, from n; T - 1 blanks
    follow, then the marker "start recall", then k blanks. The answer is blank for T + k steps,
    then the k symbols in their order. All T + 2k steps count in the loss, so the best that a
    model without memory can do, which is to guess the symbols, has the cross entropy

    .. math::
        \frac{k \ln n}{T + 2k}

    which is .173 at T = 100 and .095 at T = 200.

    With ``variable=True`` every sequence has a lag of its own, drawn uniformly from 1 to T, so
    that counting steps is of no use. Shorter sequences are padded at their end, to the longest
    of the batch, with blanks at which nothing is asked.

    Args:
        lag: T, the number of steps from the last symbol to the marker; the longest, if variable.
        symbols: n, the number of different symbols.
        length: k, the number of symbols to remember.
        variable: draw a lag for each sequence.
        problems: how many problems follow each other in a sequence, without a reset of the network
            between them, so that it must learn to forget.
        random_labels: ask for symbols that have nothing to do with those shown, so that nothing
            can be learnt: does training explode?

    Shape:
        x one-hot ``(batch, problems * (T + 2k), n + 2)``; y ``(batch, problems * (T + 2k))``, 0
        for blank and 1 to n for the symbols. With ``variable=True``, T is the longest lag of the
        batch.

    Example:
        >>> task = CopyMemory(lag=100)
        >>> batch = task.draw(4, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, batch.y.shape, task.output_size
        (torch.Size([4, 120, 10]), torch.Size([4, 120]), 9)
        >>> round(task.baseline, 3)
        0.173

    Departs from the paper: nothing in the fixed form; the thesis prints the baseline as
    k ln n / (T + 2n), a slip that its own figures do not follow. In the variable form, the
    range from 1 to T is that of the code behind the thesis, which draws one lag for a whole
    batch; here each sequence has its own, so that a step of training sees many lags. Of a memory
    that is reset only once in several examples the thesis says no more; here they are one sequence,
    and gradients go through all of it.

    References:
        Arjovsky et al. (2016), Unitary evolution recurrent neural networks, arXiv:1511.06464;
        Henaff et al. (2016), Recurrent orthogonal networks and long-memory tasks,
        arXiv:1602.06662 (the variable form); Chandar (2020), section 4.3.1.
    """

    reference = "arjovsky2016unitary"

    def __init__(
        self,
        lag: int = 100,
        *,
        symbols: int = 8,
        length: int = 10,
        variable: bool = False,
        problems: int = 1,
        random_labels: bool = False,
    ) -> None:
        self.lag = whole("lag", lag, 1)
        self.symbols = whole("symbols", symbols, 2)
        self.length = whole("length", length, 1)
        self.variable = flag("variable", variable)
        self.problems = whole("problems", problems, 1)
        self.random_labels = flag("random_labels", random_labels)
        self.marker = self.symbols + 1
        self.input_size = self.symbols + 2
        self.output_size = self.symbols + 1
        self.answers = "each step"

    @property
    def baseline(self) -> float:
        """The loss of a model without memory; in the variable form, over all steps asked."""
        lag = (1 + self.lag) / 2 if self.variable else self.lag
        return self.length * math.log(self.symbols) / (lag + 2 * self.length)

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        drawn = [self._problem(batch_size, generator) for _ in range(self.problems)]
        x, y = (torch.cat(parts, 1) for parts in zip(*drawn, strict=True))
        return Batch(F.one_hot(x, self.input_size).float(), y)

    def _problem(self, batch_size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """The tokens of one problem for each sequence, and the answers."""
        symbols = self._symbols(batch_size, generator)
        if self.variable:
            lags = torch.randint(1, self.lag + 1, (batch_size,), generator=generator)
        else:
            lags = torch.full((batch_size,), self.lag)
        x, y = copy_tokens(symbols, lags, self.marker)
        if self.random_labels:
            y = copy_tokens(self._symbols(batch_size, generator), lags, self.marker)[1]
        return x, y

    def _symbols(self, batch_size: int, generator: Generator) -> Tensor:
        shape = (self.length, batch_size)
        return torch.randint(1, self.symbols + 1, shape, generator=generator).T
