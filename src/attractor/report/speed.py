"""What a page says about a benchmark of speed: every cell beside ``nn.LSTM``, and all ratios."""

from statistics import geometric_mean

from attractor.report.benchmark import BenchmarkPart
from attractor.report.figures import Figure, plot_text, style
from attractor.report.seen import layout
from attractor.results.speed import Result, Timed
from attractor.results.speed_tables import tables

FIGURE_CAPTION = (
    "nn.LSTM’s time over that of a layer with as many units, on a logarithmic axis: right of 1 it "
    "is faster. A mark for each shape: steps, sequences, inputs and units."
)
CAPTION = (
    "Ratios are of the best times of passes that were made in turns; those with one thread are "
    "of the processor, with more of the clock. In brackets: beside nn.GRU, and beside the same "
    "cell in the plain loop."
)


def speed_part(result: Result) -> BenchmarkPart:
    """Work out the part of a page about a benchmark of speed."""
    shown = _shown(result)
    return BenchmarkPart(
        title="Speed of cells",
        findings=_findings(shown),
        warnings=list(result.left_out),
        figure=speed_figure(shown),
        anchor="speeds",
        lines="shapes",
        figure_caption=FIGURE_CAPTION,
        tables=tables(result),
        caption=CAPTION,
    )


def speed_figure(timed: list[Timed]) -> Figure:
    """A mark for each cell and shape: how many times as fast as ``nn.LSTM``."""
    traces = []
    for index, shape in enumerate(dict.fromkeys(one.case.shape for one in timed)):
        some = [one for one in timed if one.case.shape == shape]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": str(shape),
                "x": [one.to_lstm for one in some],
                "y": [plot_text(one.case.cell) for one in some],
                "marker": {"color": style(index)[0]},
            }
        )
    axes = layout("times as fast as nn.LSTM", "", showlegend=True)
    axes["xaxis"] |= {"type": "log", "tickformat": "~g"}
    axes["yaxis"] |= {"type": "category", "automargin": True, "dtick": 1}
    axes["height"] = 120 + 20 * len({one.case.cell for one in timed})
    return Figure(_title(timed), True, traces, axes)


def _shown(result: Result) -> list[Timed]:
    """Those of one way and number of threads, training in one thread if it was measured."""
    kinds = [(one.case.way, one.case.threads) for one in result.timed]
    kind = ("training", 1) if ("training", 1) in kinds else next(iter(kinds), None)
    return [one for one in result.timed if (one.case.way, one.case.threads) == kind]


def _title(timed: list[Timed]) -> str:
    if not timed:
        return "Speed"
    case = timed[0].case
    return f"Speed of {case.way}, {case.threads} thread{'s' if case.threads > 1 else ''}"


def _findings(timed: list[Timed]) -> list[str]:
    by_cell: dict[str, list[float]] = {}
    for one in timed:
        by_cell.setdefault(one.case.cell, []).append(one.to_lstm)
    if not by_cell:
        return ["Nothing was timed."]
    means = {cell: geometric_mean(found) for cell, found in by_cell.items()}
    best = max(means, key=lambda cell: means[cell])
    ahead = sum(min(found) >= 1 for found in by_cell.values())
    return [
        f"{ahead} of {len(by_cell)} cells are at least as fast as nn.LSTM at every shape.",
        f"{best} is the fastest, {means[best]:.2f} times nn.LSTM in the geometric mean of shapes.",
    ]
