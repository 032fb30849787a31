"""What a page says about a benchmark of optimisers: profiles, and a table for each task."""

from dataclasses import dataclass

from attractor.report.figures import Figure, plot_text, style
from attractor.report.seen import layout
from attractor.results.standing import Standing, profile, ratios
from attractor.results.standing_tables import tables
from attractor.results.table import Table

FURTHEST = 4.0
"""The factor of the best loss at which the axis of a profile ends."""


@dataclass(frozen=True)
class StandingPart:
    """All that the template needs to show one benchmark of optimisers."""

    title: str
    findings: list[str]
    warnings: list[str]
    figure: Figure
    tables: list[Table]


def standing_part(standing: Standing) -> StandingPart:
    """Work out the part of a page about a benchmark of optimisers."""
    warnings = [f"Left out: {one}" for one in standing.left_out]
    if standing.quick:
        warnings.insert(
            0,
            "Quick budget: trainings are short, so what is ahead here need not be ahead of longer "
            "ones.",
        )
    budget = "quick" if standing.quick else "whole"
    return StandingPart(
        f"Optimisers, {budget} benchmark",
        _findings(standing),
        warnings,
        profile_figure(standing),
        tables(standing),
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
