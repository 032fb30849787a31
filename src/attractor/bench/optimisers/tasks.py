"""What optimisers are compared on: networks, data, and numbers of updates."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from torch import Generator, nn

from attractor.bench.optimisers.networks import Characters, Rows, convolutions
from attractor.errors import unknown
from attractor.meta.learners import Problem
from attractor.meta.problems import seeded
from attractor.models import MLP, Point, ResNet, SequenceClassifier
from attractor.tasks import CIFAR10, MNIST, Digits, PTBCharacters, Quadratic

HORIZONS = (400, 1_000, 4_000, 10_000)
"""Updates of the whole benchmark, each a training of its own."""


class BenchTask(NamedTuple):
    """A training that optimisers are compared on.

    Args:
        title: what is trained on what.
        make: makes it; the quick one may have smaller images.
        quick: updates of the quick benchmark.
    """

    title: str
    make: Callable[[bool], Problem]
    quick: tuple[int, ...]


def digits_mlp(quick: bool) -> Problem:
    return Problem(lambda g: MLP([64, 32, 10], generator=g), Digits(order="flat"), 32)


def digits_zero(quick: bool) -> Problem:
    def model(generator: Generator) -> nn.Module:
        made = MLP([64, 32, 10], activation="tanh", generator=generator)
        for parameter in [*made.parameters()][-2:]:
            nn.init.zeros_(parameter)
        return made

    return Problem(model, Digits(order="flat"), 32)


def digits_lstm(quick: bool) -> Problem:
    return Problem(seeded(Rows), Digits(order="rows"), 32)


def digits_nru(quick: bool) -> Problem:
    def model(generator: Generator) -> nn.Module:
        return SequenceClassifier("nru", 8, 32, 10, generator=generator)

    return Problem(model, Digits(order="rows"), 32)


def mnist_convnet(quick: bool) -> Problem:
    return Problem(seeded(convolutions), MNIST(order="image"), 32)


def ptb_transformer(quick: bool) -> Problem:
    length = 64
    task = PTBCharacters(steps=length)
    return Problem(seeded(lambda: Characters(task.input_size, length)), task, 16 if quick else 32)


def cifar10_resnet20(quick: bool) -> Problem:
    """Batch norm takes the statistics of a batch in evaluation too: those that it collects in
    training belong to other weights than the average at which some optimisers are judged."""
    task = CIFAR10(order="image", normalise=True, batches=2, side=16 if quick else None)
    return Problem(lambda g: ResNet(20, track=False, generator=g), task, 16 if quick else 32)


def quadratic(quick: bool) -> Problem:
    return Problem(lambda g: Point(64, generator=g), Quadratic(64, condition=1e4), 1)


def logistic(quick: bool) -> Problem:
    return Problem(lambda g: MLP([64, 10], generator=g), Digits(order="flat"), 32)


TASKS: dict[str, BenchTask] = {
    "digits-mlp": BenchTask("MLP 64-32-10 on digits", digits_mlp, (100, 300)),
    "digits-zero": BenchTask(
        "MLP 64-32-10 of tanh with a last layer of zeros on digits", digits_zero, (100,)
    ),
    "logistic": BenchTask("logistic regression of digits", logistic, (100,)),
    "quadratic": BenchTask("quadratic of condition number 10⁴", quadratic, (100, 300)),
    "digits-lstm": BenchTask("nn.LSTM on the rows of digits", digits_lstm, (150,)),
    "digits-nru": BenchTask("attractor.NRU on the rows of digits", digits_nru, (100,)),
    "mnist-convnet": BenchTask("ConvNet on MNIST", mnist_convnet, (100,)),
    "ptb-transformer": BenchTask(
        "transformer on characters of the Penn Treebank", ptb_transformer, (50,)
    ),
    "cifar10-resnet20": BenchTask("ResNet-20 on CIFAR-10", cifar10_resnet20, (25,)),
}
"""Every task by its key. Batches have 32 samples, those of the quick transformer and ResNet-20 half
as many, and the latter sees images of 16 by 16."""


def horizons_of(task: str, *, quick: bool, asked: Sequence[int] = ()) -> Sequence[int]:
    """The numbers of updates of a task, unless others are asked for."""
    if task not in TASKS:
        raise unknown("task of the benchmark of optimisers", task, TASKS)
    return asked or (TASKS[task].quick if quick else HORIZONS)


@cache
def problem(task: str, quick: bool) -> Problem:
    """The task, made once in a process."""
    return TASKS[task].make(quick)
