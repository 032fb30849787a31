"""What a page says about a benchmark of optimisers: profiles, and a table for each task."""

from attractor.report.benchmark import BenchmarkPart
from attractor.report.figures import Figure, plot_text, style
from attractor.report.seen import layout
from attractor.results.standing import Standing, profile, ratios
from attractor.results.standing_tables import tables

FURTHEST = 4.0
"""The factor of the best loss at which the axis of a profile ends."""
FIGURE_CAPTION = (
    "At a factor, the share of places (a task after so many updates) at which the mean held-out "
    "loss of an optimiser is within that factor of the lowest. What was left out counts as not "
    "reached."
)
CAPTION = (
    "Losses are means over the seeds ± half of their 95% interval by Student’s t. Rates were "
    "chosen on validation data with another seed; a dash stands for an optimiser that is used as "
    "it comes. Milliseconds are of the processor, for an update with its gradient, the least of "
    "the seeds."
)


def standing_part(standing: Standing) -> BenchmarkPart:
    """Work out the part of a page about a benchmark of optimisers."""
    warnings = [f"Left out: {one}" for one in standing.left_out]
    if standing.quick:
        warnings.insert(
            0,
            "Quick budget: trainings are short, so what is ahead here need not be ahead of longer "
            "ones.",
        )
    budget = "quick" if standing.quick else "whole"
    return BenchmarkPart(
        title=f"Optimisers, {budget} benchmark",
        findings=_findings(standing),
        warnings=warnings,
        figure=profile_figure(standing),
        anchor="profiles",
        lines="optimisers",
        figure_caption=FIGURE_CAPTION,
        tables=tables(standing),
        caption=CAPTION,
    )


def profile_figure(standing: Standing) -> Figure:
    """A line of steps for each optimiser: the share of places within a factor of the best."""
    found = ratios(standing)
    places = sorted({1.0, FURTHEST, *(r for own in found.values() for r in own.values())})
    factors = [factor for factor in places if factor <= FURTHEST]
    traces = []
    for index, (name, shares) in enumerate(profile(standing, factors).items()):
        colour, dash = style(index)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": plot_text(name),
                "x": factors,
                "y": shares,
                "line": {"color": colour, "dash": dash, "shape": "hv"},
            }
        )
    axes = layout("factor of the lowest loss", "share of places within it", showlegend=True)
    axes["xaxis"] |= {"type": "log", "tickformat": "~g"}
    axes["yaxis"] |= {"tickformat": ".0%", "range": [-0.02, 1.02]}
    return Figure("Performance profiles", True, traces, axes)


def _findings(standing: Standing) -> list[str]:
    found = ratios(standing)
    best = {
        at: min(found, key=lambda name: found[name].get(at, float("inf"))) for at in standing.places
    }
    wins = {name: [at for at in best if best[at] == name] for name in dict.fromkeys(best.values())}
    return [
        f"{name} has the lowest mean loss at {len(own)} of {len(best)}: "
        + ", ".join(f"{task} after {updates:,}" for task, updates in own)
        + "."
        for name, own in sorted(wins.items(), key=lambda pair: -len(pair[1]))
    ]
