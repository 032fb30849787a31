"""How well, and how fast, recurrent networks tell time series apart, beside what is usual.

Four data sets of the UCR and UEA archives with their own halves, every method with one setting for
all of them: `RecurrentClassifier` with three cells and its defaults, torch's own LSTM in the same
training, one nearest neighbour by dynamic time warping, logistic regression, ROCKET with 2,000
kernels, and where aeon is installed (pip install aeon) its ROCKET with as many and its MiniRocket
with its defaults. Nothing is chosen by the test half. Networks and ROCKETs have seeds from 0.
Seconds are those of a processor for a fit and the answers to the test half, on one thread; aeon's
code is compiled before, on a quarter of the training series.

    python benchmarks/time_series.py DATA [--sets CBF ...] [--seeds 3] [--out results.json]

What is in the file of --out already is not done again. Series that are not equally long are padded
with zeros for logistic regression and all ROCKETs; where they are, warping is kept within a tenth
of their length.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from attractor.estimates import estimate
from attractor.estimators import RecurrentClassifier
from attractor.files import write_atomic
from attractor.results.numbers import with_interval
from attractor.tasks.data.series import Series, load_series

SETS = ("BasicMotions", "CBF", "JapaneseVowels", "ECG5000")
Half = tuple[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]
"""Padded series, how long each is, and their classes."""


class TorchLSTM(RecurrentClassifier):
    """The same training of torch's own layer."""

    def _network(self, features: int, outputs: int, seed: int) -> nn.Module:
        assert isinstance(self.hidden_size, int)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return LastOfLSTM(features, self.hidden_size, outputs)


class LastOfLSTM(nn.Module):
    """`nn.LSTM`, and a linear layer on its last state."""

    def __init__(self, features: int, hidden_size: int, outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden_size, batch_first=True)
        self.readout = nn.Linear(hidden_size, outputs)

    def forward(self, x: Tensor | PackedSequence) -> Tensor:
        _, (h, _) = self.lstm(x)
        answer: Tensor = self.readout(h[-1])
        return answer


def network(kind: type[RecurrentClassifier], cell: str = "lstm") -> Callable[..., NDArray[Any]]:
    def answers(train: Half, test: Half, seed: int) -> NDArray[Any]:
        model = kind(cell, random_state=seed)
        found: NDArray[Any] = model.fit(cut(train), train[2]).predict(cut(test))
        return found

    return answers


def cut(half: Half) -> list[NDArray[np.float32]]:
    """Each series without what pads it."""
    x, lengths, _ = half
    return [one[:length] for one, length in zip(x, lengths, strict=True)]


def logistic(train: Half, test: Half, seed: int) -> NDArray[Any]:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    longest = max(train[0].shape[1], test[0].shape[1])
    x, asked = (padded(half[0], longest).reshape(len(half[0]), -1) for half in (train, test))
    found: NDArray[Any] = model.fit(x, train[2]).predict(asked)
    return found


def padded(x: NDArray[np.float32], longest: int) -> NDArray[np.float32]:
    return np.pad(x, ((0, 0), (0, longest - x.shape[1]), (0, 0)))


def nearest(train: Half, test: Half, seed: int) -> NDArray[Any]:
    """The class of the nearest training series by dynamic time warping."""
    seen, asked = torch.from_numpy(train[0]), torch.from_numpy(test[0])
    mean, std = seen.mean((0, 1)), seen.std((0, 1))
    seen, asked = (seen - mean) / std, (asked - mean) / std
    ends = torch.from_numpy(train[1])
    longest = seen.shape[1]
    band = math.ceil(longest / 10) if len({*train[1], *test[1]}) == 1 else longest
    chosen = [
        int(warped(one[: int(length)], seen, ends, band).argmin())
        for one, length in zip(asked, test[1], strict=True)
    ]
    found: NDArray[Any] = train[2][chosen]
    return found


def warped(one: Tensor, others: Tensor, lengths: Tensor, band: int) -> Tensor:
    """The squared distance of a series to others along the best way, diagonal by diagonal."""
    rows, columns, count = len(one), others.shape[1], len(others)
    steps = others.transpose(0, 1)  # (columns, count, features)
    found = torch.empty(count)
    before = last = torch.full((rows + 1, count), math.inf)  # places are rows, the first is outside
    for diagonal in range(rows + columns - 1):
        low = max(0, diagonal - columns + 1, (diagonal - band + 1) // 2)
        high = min(rows - 1, diagonal, (diagonal + band) // 2)
        i = torch.arange(low, high + 1)
        step = torch.minimum(last[low + 1 : high + 2], last[low : high + 1])
        step = torch.minimum(step, before[low : high + 1])
        if diagonal == 0:
            step = torch.zeros_like(step)
        now = torch.full_like(last, math.inf)
        now[low + 1 : high + 2] = ((one[i, None] - steps[diagonal - i]) ** 2).sum(-1) + step
        ended = lengths + rows - 2 == diagonal
        found[ended] = now[rows, ended]
        before, last = last, now
    return found


def rocket(train: Half, test: Half, seed: int, kernels: int = 2_000) -> NDArray[Any]:
    """Random convolutions, their largest value and how often they are positive, and a ridge.

    Dempster et al. (2020), ROCKET, Data Mining and Knowledge Discovery 34, section 3.
    """
    longest = max(train[0].shape[1], test[0].shape[1])
    seen, asked = (torch.from_numpy(padded(half[0], longest)) for half in (train, test))
    mean, std = seen.mean((0, 1)), seen.std((0, 1))
    kinds = drawn(kernels, longest, seen.shape[2], np.random.default_rng(seed))
    x, y = (convolved(((one - mean) / std).transpose(1, 2), kinds).numpy() for one in (seen, asked))
    model = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))
    found: NDArray[Any] = model.fit(x, train[2]).predict(y)
    return found


Kernels = dict[tuple[int, int, int], list[tuple[NDArray[np.float64], float]]]
"""By length, dilation and padding, the weights ``(channels, length)`` and the bias of each."""


def drawn(count: int, steps: int, channels: int, rng: np.random.Generator) -> Kernels:
    found: Kernels = {}
    for _ in range(count):
        length = int(rng.choice([n for n in (7, 9, 11) if n <= steps]))
        dilation = int(2 ** rng.uniform(0, math.log2((steps - 1) / (length - 1))))
        padding = (length - 1) * dilation // 2 if rng.integers(2) else 0
        used = int(2 ** rng.uniform(0, math.log2(min(channels, length) + 1)))
        weights = np.zeros((channels, length))
        some = rng.normal(size=(used, length))
        weights[rng.choice(channels, used, replace=False)] = some - some.mean(1, keepdims=True)
        key = (length, dilation, padding)
        found.setdefault(key, []).append((weights, float(rng.uniform(-1, 1))))
    return found


def convolved(x: Tensor, kinds: Kernels) -> Tensor:
    """The features of series ``(n, channels, time)``: two for each kernel."""
    parts = []
    for (_, dilation, padding), some in kinds.items():
        weight = torch.tensor(np.stack([weights for weights, _ in some]), dtype=torch.float32)
        bias = torch.tensor([bias for _, bias in some])
        rows = [
            F.conv1d(few, weight, bias, dilation=dilation, padding=padding) for few in x.split(100)
        ]
        parts += [torch.cat([row.amax(2) for row in rows])]
        parts += [torch.cat([(row > 0).float().mean(2) for row in rows])]
    return torch.cat(parts, 1)


def of_aeon(name: str, **options: Any) -> Callable[..., NDArray[Any]]:
    """A classifier of aeon's by random convolutions, which wants series ``(n, channels, time)``."""

    def answers(train: Half, test: Half, seed: int) -> NDArray[Any]:
        kind = getattr(import_module("aeon.classification.convolution_based"), name)
        longest = max(train[0].shape[1], test[0].shape[1])
        x, asked = (padded(half[0], longest).transpose(0, 2, 1) for half in (train, test))
        model = kind(**options, n_jobs=1, random_state=seed)
        found: NDArray[Any] = model.fit(x, train[2]).predict(asked)
        return found

    return answers


METHODS: dict[str, tuple[Callable[..., NDArray[Any]], bool]] = {
    "`nru`": (network(RecurrentClassifier, "nru"), True),
    "`gru`": (network(RecurrentClassifier, "gru"), True),
    "`lstm`": (network(RecurrentClassifier, "lstm"), True),
    "nn.LSTM, same training": (network(TorchLSTM), True),
    "1-NN with DTW": (nearest, False),
    "logistic regression": (logistic, False),
    "ROCKET": (rocket, True),
    "aeon's ROCKET": (of_aeon("RocketClassifier", n_kernels=2_000), True),
    "aeon's MiniRocket": (of_aeon("MiniRocketClassifier"), True),
}
"""What answers, and whether seeds change its answers."""
OF_AEON = ("aeon's ROCKET", "aeon's MiniRocket")
INSTALLED = [name for name in METHODS if name not in OF_AEON or find_spec("aeon") is not None]


def half(series: Series) -> Half:
    lengths = series.lengths
    if lengths is None:
        lengths = np.full(len(series.x), series.x.shape[1])
    return series.x, lengths, np.array(series.y)


def table(results: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Accuracy in per cent with its 95% interval over seeds, and seconds, as Markdown."""
    lines = ["| method | " + " | ".join(f"{name} | s" for name in results) + " |"]
    lines += ["|---|" + "--:|--:|" * len(results)]
    for method in METHODS:
        row = []
        for found in results.values():
            one = found.get(method)
            row += (
                ["–", "–"]
                if one is None
                else [
                    with_interval(estimate(one["accuracy"]), share=True),
                    f"{np.mean(one['seconds']):.1f}",
                ]
            )
        lines.append(f"| {method} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", default=INSTALLED, choices=INSTALLED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, dict[str, list[float]]]] = {}
    if asked.out is not None and asked.out.exists():
        results = json.loads(asked.out.read_text())
    for name in asked.sets:
        train, test = (half(load_series(name, one, asked.data)) for one in ("train", "test"))
        found = results.setdefault(name, {})
        for method in asked.methods:
            answers, seeded = METHODS[method]
            if method in OF_AEON:
                some = train[0][::4], train[1][::4], train[2][::4]
                answers(some, some, 0)  # compiles
            one = found.setdefault(method, {"accuracy": [], "seconds": []})
            for seed in range(len(one["accuracy"]), asked.seeds if seeded else 1):
                started = time.process_time()
                right = answers(train, test, seed) == test[2]
                one["seconds"].append(time.process_time() - started)
                one["accuracy"].append(float(right.mean()))
                print(name, method, seed, one["accuracy"][-1], f"{one['seconds'][-1]:.1f} s")
                if asked.out is not None:
                    write_atomic(asked.out, json.dumps(results, indent=1))
    print(table(results))


if __name__ == "__main__":
    main()
