"""How much runs of one variant differ: a violin for each."""

from collections.abc import Sequence

from attractor.report.figures import Figure, plot_text, style
from attractor.results.measures import main_metric, measure, words
from attractor.results.numbers import is_share
from attractor.results.variants import Group
from attractor.runs.read import Run

FEWEST = 5
"""Seeds below which a violin would be drawn from next to nothing."""
MOST = 24


def spread(runs: Sequence[Run], groups: Sequence[Group]) -> Figure | None:
    """The main measure over seeds, of all variants that have enough of them; else ``None``."""
    main = main_metric(runs)
    values = {
        index: [run.test[main] for run in group.runs if main in run.test]
        for index, group in enumerate(groups)
    }
    shown = [index for index, found in values.items() if len(found) >= FEWEST][:MOST]
    if not shown:
        return None
    share = is_share(measure(main, runs), [v for index in shown for v in values[index]])
    traces = []
    for index in shown:
        colour, _ = style(index)
        name = plot_text(groups[index].label)
        digits = ".2%" if share else ".4~g"
        traces.append(
            {
                "type": "violin",
                "name": name,
                "y": [float(f"{value:.6g}") for value in values[index]],
                "points": "all",
                "pointpos": 0,
                "jitter": 0.4,
                "spanmode": "hard",
                "meanline": {"visible": True},
                "line": {"color": colour, "width": 1.25},
                "marker": {"color": colour, "size": 4, "opacity": 0.7},
                "hoveron": "points",
                "hovertemplate": f"%{{y:{digits}}}<extra>{name}</extra>",
                "meta": {"variant": index, "kind": "mean", "by": "seed"},
            }
        )
    axis = {"automargin": True, "zeroline": False}
    title = words(main)
    layout = {
        "xaxis": {**axis, "showgrid": False},
        "yaxis": {
            **axis,
            "title": {"text": title, "font": {"size": 13}},
            "tickformat": ".1%" if share else "~g",
            "type": "linear",
        },
        "showlegend": False,
        "hovermode": "closest",
        "margin": {"l": 8, "r": 12, "t": 10, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
    return Figure(f"Spread over seeds: {title}", True, traces, layout)
