"""Add two numbers, digit by digit from the back."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.errors import InputError
from attractor.measures import ACCURACY, Measure
from attractor.tasks.answers import priced
from attractor.tasks.associative_recall import bits_of
from attractor.tasks.batch import Batch
from attractor.tasks.generated import Generated


class BinaryAddition(Generated):
    r"""Add two binary numbers whose digits come in pairs, the lowest first.

    The numbers are drawn evenly, the first from 0 to :math:`2^{n-1}` and the second from 0 to
    :math:`2^{n-1} - 1`, so that the sum has n digits. At each step the model says s, and its digit
    is :math:`\tanh(s)`, rounded. It is trained on the mean of :math:`(\tanh(s) - y)^2`; a model
    that sees one pair of digits alone cannot know the carry.

    Args:
        digits: n.

    Shape:
        x ``(batch, digits, 2)``, y ``(batch, digits)`` of 0 and 1.

    Example:
        >>> task = BinaryAddition(4)
        >>> batch = task.draw(1, generator=torch.Generator().manual_seed(12))
        >>> batch.x[0].int().T.tolist(), batch.y[0].tolist()  # 6 + 3 = 9, from the back
        ([[0, 1, 1, 0], [1, 1, 0, 0]], [1, 0, 0, 1])

    Departs from the paper: it does not say which loss is trained on; here it is the squared error
    of the tanh.

    References:
        Kuo et al. (2018), DecayNet, appendix B.
    """

    reference = "kuo2018decaynet"
    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": Measure("min", "squared error", log=True),
        "accuracy": ACCURACY,
        "sums": ACCURACY,
    }
    answers = "each step"
    input_size = 2
    output_size = 1

    def __init__(self, digits: int = 16) -> None:
        self.digits = whole("digits", digits, 2)
        if digits > 60:
            raise InputError(
                f"expected at most 60 digits, which whole numbers of 64 bits can hold, but got "
                f"{digits}. Try digits=60."
            )

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        """A fresh batch, decided by the generator alone."""
        half = 2 ** (self.digits - 1)
        one = torch.randint(half + 1, (batch_size,), generator=generator)
        other = torch.randint(half, (batch_size,), generator=generator)
        digits = bits_of(torch.stack([one, other, one + other], -1), self.digits).transpose(1, 2)
        return Batch(digits[..., :2].float(), digits[..., 2])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        said, penalty = _digits(model, batch)
        errors = (said - batch.y).square().mean(1)
        loss: Tensor = errors.mean() if batch.weight is None else errors @ batch.weight.to(errors)
        return loss if penalty is None else loss + penalty

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        said, _ = _digits(model, batch)
        right = said.round() == batch.y
        errors = (said - batch.y).square()
        return {
            "loss": (errors.sum().item(), errors.numel()),
            "accuracy": (float(right.sum()), right.numel()),
            "sums": (float(right.all(1).sum()), len(batch)),
        }


def _digits(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """What the model says of each digit, and the penalty on top, if it has one."""
    said, penalty = priced(model, batch)
    if said.shape != (*batch.y.shape, 1):
        raise InputError(
            f"expected one number at each of {batch.y.shape[1]} steps, but the model gives "
            f"{tuple(said.shape)} for {len(batch)} sequences. Try a SequenceTagger with 1 output."
        )
    return torch.tanh(said.squeeze(-1)), penalty
