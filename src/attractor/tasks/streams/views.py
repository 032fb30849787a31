"""The same data seen anew: permuted pixels, rotated images, noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import flag, whole
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data, classes_of, unchanged
from attractor.tasks.streams.stream import Stream


@dataclass(frozen=True, eq=False)
class Permuted:
    """Reorder the features of a vector, or the steps of a sequence."""

    order: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return x.index_select(1, self.order)


@dataclass(frozen=True)
class Rotated:
    """Turn images anticlockwise about their centre; what comes in at the corners is `fill`.

    Shape:
        from ``(batch, height, width)`` to ``(batch, height * width)``.
    """

    degrees: float
    fill: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        angle = math.radians(self.degrees)
        height, width = x.shape[1:]
        # the grid says where each pixel comes from, in units of half the height and half the width
        turn = torch.tensor(
            [
                [math.cos(angle), -math.sin(angle) * height / width, 0.0],
                [math.sin(angle) * width / height, math.cos(angle), 0.0],
            ],
            device=x.device,
        )
        grid = F.affine_grid(turn[None], [1, 1, height, width], align_corners=False)
        grid = grid.expand(len(x), -1, -1, -1)
        turned = F.grid_sample(x[:, None].float() - self.fill, grid, align_corners=False)
        return (turned + self.fill).flatten(1)


def permuted(
    train: Data,
    test: Data,
    *,
    tasks: int = 10,
    identity_first: bool = True,
    name: str = "permuted",
    generator: Generator,
) -> Stream:
    """A stream in which each task sees all features in a random order of its own.

    Args:
        train: the training samples, vectors or sequences.
        test: the test samples.
        tasks: how many.
        identity_first: leave the first task as it is; else it is permuted too.
        name: of the stream.
        generator: draws the orders.

    Shape:
        x ``(samples, features)`` or ``(samples, time, features)``, of which time is permuted.

    Example:
        >>> data = Data(torch.arange(8.0).reshape(2, 4), torch.tensor([0, 1]))
        >>> stream = permuted(data, data, tasks=2, generator=torch.Generator().manual_seed(0))
        >>> stream[0].first("test", 9).x[0], stream[1].first("test", 9).x[0]
        (tensor([0., 1., 2., 3.]), tensor([0., 2., 3., 1.]))

    Departs from the paper: Kirkpatrick et al. do not say whether the first task is permuted; the
    thesis's scripts leave it, GEM and A-GEM permute it.

    References:
        Goodfellow et al. (2014), An empirical investigation of catastrophic forgetting, section
        4.1; Kirkpatrick et al. (2017), Overcoming catastrophic forgetting, section 2.1.
    """
    whole("tasks", tasks, 1)
    if train.x.shape[1] != test.x.shape[1]:
        raise InputError(
            f"expected training and test samples of one size, but got {train.x.shape[1]} and "
            f"{test.x.shape[1]} to permute. Pad or project the inputs first."
        )
    views: list[Callable[[Tensor], Tensor]] = [
        Permuted(torch.randperm(train.x.shape[1], generator=generator)) for _ in range(tasks)
    ]
    if flag("identity_first", identity_first):
        views[0] = unchanged
    return _seen(train, test, views, [f"permutation {i + 1}" for i in range(tasks)], name)


def rotated(
    train: Data,
    test: Data,
    degrees: Sequence[float],
    *,
    fill: float = 0.0,
    name: str = "rotated",
) -> Stream:
    """A stream in which each task sees all images turned by an angle of its own.

    Args:
        train: the training images.
        test: the test images.
        degrees: the angle of each task, anticlockwise.
        fill: the value of what comes in at the corners.
        name: of the stream.

    Shape:
        x ``(samples, height, width)``; the model is shown ``(samples, height * width)``.

    Example:
        >>> data = Data(torch.arange(4.0).reshape(1, 2, 2), torch.tensor([0]))
        >>> rotated(data, data, [0, 90])[1].first("test", 9).x  # was [[0, 1], [2, 3]]
        tensor([[1., 3., 0., 2.]])

    References:
        Lopez-Paz and Ranzato (2017), Gradient episodic memory, section 5.1.
    """
    views = [Rotated(float(angle), fill) for angle in degrees]
    return _seen(train, test, views, [f"{angle:g} degrees" for angle in degrees], name)


def _seen(
    train: Data,
    test: Data,
    views: Sequence[Callable[[Tensor], Tensor]],
    names: Sequence[str],
    name: str,
) -> Stream:
    classes = classes_of(train.y)
    tasks = [
        ArrayTask(names[i], i, train, test, classes, read=view) for i, view in enumerate(views)
    ]
    return Stream(name, tasks)


@dataclass(frozen=True)
class ShuffledPixels:
    """Shuffle a random part of each sample's values among themselves, a new part each time.

    So many samples in a row as `together` says have one part and one shuffle.
    """

    fraction: float
    together: int = 1

    def __call__(self, x: Tensor, generator: Generator) -> Tensor:
        flat = x.flatten(1)
        rows, features = flat.shape
        part = round(self.fraction * features)
        groups = -(-rows // self.together)
        keys = torch.rand(groups, features, generator=generator)
        places = keys.argsort(1)[:, :part].to(x.device)
        again = torch.rand(groups, part, generator=generator).argsort(1).to(x.device)
        if self.together > 1:
            group = torch.arange(rows, device=x.device) // self.together
            places, again = places[group], again[group]
        noisy = flat.scatter(1, places, flat.gather(1, places.gather(1, again)))
        return noisy.view_as(x)


def inject_noise(
    stream: Stream, fraction: float, *, together: int = 1, anew: bool = False
) -> Stream:
    """The stream with a part of each training sample's values shuffled; test samples stay clean.

    Args:
        stream: the clean stream.
        fraction: how much of each sample is shuffled; the thesis has 0.1 to 0.5.
        together: samples in a row that are shuffled in the same way; the authors' scripts shuffle
            those of a batch alike.
        anew: let memories keep the clean samples, and shuffle them anew whenever they are replayed,
            as the authors' scripts do; else they are as noisy as when they were first seen.

    Example:
        >>> data = Data(torch.arange(10.0)[None], torch.tensor([0]))
        >>> noisy = inject_noise(Stream("one", [ArrayTask("a", 0, data, data, (0,))]), 0.3)
        >>> x = noisy[0].samples(torch.tensor([0]), torch.Generator().manual_seed(1)).x
        >>> int((x != data.x).sum()), torch.equal(x.sort().values, data.x)
        (2, True)

    Departs from the paper: the thesis does not say whether the part is the same for all samples;
    by default it is not. Their scripts are ``together=10, anew=True``, with batches of 10.

    References:
        Kuo (2021), thesis, section 6.1.5, figure 6.7.
    """
    if not 0 <= fraction <= 1:
        raise InputError(f"expected a fraction from 0 to 1, but got {fraction}. Try 0.1.")
    tasks = stream.arrays()
    if any(one.noise is not None for one in tasks):
        raise InputError(
            f"expected a stream without noise, but {stream.name!r} has some, which would be lost. "
            "Inject noise once, into the clean stream."
        )
    noise = ShuffledPixels(fraction, whole("together", together, 1))
    raw = True if flag("anew", anew) else None
    noisy = [replace(one, noise=noise, raw=raw) for one in tasks]
    percent = f"{100 * fraction:.10g}%"
    return replace(stream, name=f"{stream.name}, {percent} noise", tasks=noisy)
