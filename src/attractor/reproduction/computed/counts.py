"""How many parameters the configured networks have."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from torch import nn

from attractor.cells import CELLS
from attractor.experiments.table import load
from attractor.experiments.train import build, runs_of
from attractor.models import MLP
from attractor.reproduction.computed.found import Found
from attractor.runs.drive import Context, never


def size(module: nn.Module) -> int:
    """Parameters of a network.

    Example:
        >>> size(nn.Linear(3, 2))
        8
    """
    return sum(p.numel() for p in module.parameters())


def networks(experiment: str, data: Path | None, labels: Iterable[str] = ()) -> Iterator[nn.Module]:
    """The networks of an experiment's variants at seed 0, as its runs build them."""
    _, config = load(experiment, ["seeds=[0]"])
    for run in runs_of(experiment, config, labels):
        yield build(run, Context(data, Path(), never)).process.model  # type: ignore[attr-defined]


def furthest(counts: Iterable[int], published: float) -> float:
    """Of several counts for which one number is printed, the one that is least like it.

    Example:
        >>> furthest([9, 12], 10)
        12.0
    """
    return float(max(counts, key=lambda count: abs(count - published)))


def _all(
    experiment: str, row: str, about: float, labels: Iterable[str] = ()
) -> Callable[..., Iterable[Found]]:
    def found(data: Path | None) -> Iterator[Found]:
        gated = [label for label in load(experiment)[1].variants() if label != "EURNN"]
        counts = [size(one) for one in networks(experiment, data, labels or gated)]
        value = furthest(counts, about)
        yield Found(row, "parameters, about", value)
        yield Found(row, "least", min(counts) / about)
        yield Found(row, "most", max(counts) / about)

    return found


copying = _all("copy", "all networks, copy", 23_500)
characters = _all("ptb-char", "all networks, char PTB", 2_150_000)

PIXELS = (
    "NRU",
    "JANET",
    "LSTM, chrono",
    "LSTM",
    "GRU",
    "RNN-orth",
    "RNN-id",
    "SRU (statistical)",
    "GORU",
)
_pixels = _all("psmnist", "networks but EURNN, psMNIST", 165_000, PIXELS)
_eurnn = _all("psmnist", "EURNN, psMNIST", 17_000, ("EURNN",))


def pixels(data: Path | None) -> Iterator[Found]:
    """Networks that read images pixel by pixel (001, section 4.3.4)."""
    yield from _pixels(data)
    yield from _eurnn(data)


def _pair(
    plain: str, other: str, inputs: int, units: int, rows: tuple[str, str], unit: float
) -> Iterator[Found]:
    """One layer of two cells, in units such as thousands, and what the second has less."""
    counts = [size(CELLS[cell](inputs, units)) for cell in (plain, other)]
    for row, count in zip(rows, counts, strict=True):
        yield Found(row, "parameters", count / unit)
    yield Found(rows[1], "parameters removed", 1 - counts[1] / counts[0])


def decoders(data: Path | None = None) -> Iterator[Found]:
    """Decoders of DRAW, 100 latent numbers and 800 units (000, section 4.2.5.2)."""
    rows = ("LSTM decoder of DRAW", "IHC-LSTM decoder of DRAW")
    return _pair("lstm", "ihc_lstm", 100, 800, rows, 1e6)


def optimisers(data: Path | None = None) -> Iterator[Found]:
    """One layer of a learned optimiser, 20 inputs and 20 units (000, section 4.2.5.3)."""
    rows = ("LSTM-optimiser, one layer 20/20", "IHC-LSTM-optimiser, one layer 20/20")
    return _pair("lstm", "ihc_lstm", 20, 20, rows, 1e3)


def learner(data: Path | None = None) -> Iterator[Found]:
    """The perceptron that MTL2L trains (004, appendix B.1)."""
    yield Found("MLP learner 784-32-10", "parameters", size(MLP([784, 32, 10])) / 1e3)


WORDS: Mapping[str, tuple[str, str]] = {
    "LSTM 3 layers 400/1150": ("LSTM", ""),
    "IHC-LSTM 3 layers 400/1150": ("IHC-LSTM", "LSTM"),
    "FastGRNN 1 layer 650/650": ("FastGRNN, 1 layer", ""),
    "IRC-FastGRNN 1 layer 650/650": ("IRC-FastGRNN, 1 layer", "FastGRNN, 1 layer"),
    "FastGRNN 2 layers 650/650": ("FastGRNN", ""),
    "IRC-GRU 2 layers 650/650": ("IRC-GRU", "GRU"),
    "IRC-T-LSTM 2 layers 650/650": ("IRC-T-LSTM", "T-LSTM"),
    "IRC-FastGRNN 2 layers 650/650": ("IRC-FastGRNN", "FastGRNN"),
    "SRU 3 layers 1150/1150": ("SRU", ""),
    "IRC-SRU 3 layers 1150/1150": ("IRC-SRU", "SRU"),
}
"""By the row of table 4.3, our network and the one it is said to be smaller than."""


def words(data: Path | None) -> Iterator[Found]:
    """Recurrent layers of the networks that read words (000, table 4.3)."""
    labels = list(dict.fromkeys(name for pair in WORDS.values() for name in pair if name))
    _, config = load("ptb-word", ["seeds=[0]"])
    runs = runs_of("ptb-word", config, labels)
    layers = {
        run.label: size(build(run, Context(data, Path(), never)).process.model.layers)  # type: ignore[attr-defined]
        for run in runs
    }
    for row, (label, plain) in WORDS.items():
        yield Found(row, "RNN parameters", layers[label] / 1e6)
        if plain:
            yield Found(row, "parameters removed", 1 - layers[label] / layers[plain])
