"""The table of computed targets: a pure function for each, from the data root to numbers."""

from pathlib import Path

from attractor.reproduction.computed import (
    adding,
    cellstates,
    counts,
    depth,
    growing,
    learners,
    lifelong,
    memories,
    methods,
    rates,
    robustness,
    strokes,
    systems,
    vanishing,
)
from attractor.reproduction.computed.found import Computation
from attractor.reproduction.outcomes import END, EXACT, SIMULATED, Outcomes, Row

COMPUTED: dict[str, Computation] = {
    "000/table-2.1": systems.shortcuts,
    "000/section-2.1.1": depth.reached,
    "000/figure-2.5": systems.descent,
    "000/figure-2.6": systems.widths,
    "000/figure-2.7": systems.batches,
    "000/figure-2.8": systems.slopes("0.5*x", "1.5*x"),
    "000/figure-2.9": systems.field,
    "000/section-3.1.3.2": cellstates.carousel,
    "000/table-3.2": cellstates.substituted,
    "000/figure-4.1": systems.slopes("0.5*x", "tanh(3*x)"),
    "000/figure-4.2": systems.cell_states,
    "000/section-4.1.4": cellstates.decays,
    "000/section-4.1.4.1": learners.decay_sums,
    "000/section-4.1.4.2": cellstates.dichotomy,
    "000/table-4.3": counts.words,
    "000/section-4.2.2": robustness.hopfield,
    "000/section-4.2.3": robustness.ladder,
    "000/section-4.2.5.2": counts.decoders,
    "000/section-4.2.5.3": counts.optimisers,
    "000/section-4.2.6": cellstates.releases,
    "000/figure-5.1": learners.nearest,
    "000/section-5.1.4.1": rates.values,
    "000/section-5.2.2": rates.converges,
    "000/section-5.2.3.1": rates.stops,
    "000/table-6.3": learners.rates,
    "000/figure-6.9": depth.basins,
    "000/section-6.2.4": depth.slopes,
    "000/figure-6.11": learners.losses,
    "000/figure-6.12": learners.gradients,
    "001/section-2.3": vanishing.flows,
    "001/section-3.2.4": memories.degrees,
    "001/figure-3.3": memories.paths,
    "001/section-3.4": vanishing.sums,
    "001/theorem-1": vanishing.reads,
    "001/section-3.5": memories.late_reads,
    "001/figure-3.5": memories.shortest,
    "001/section-3.7.2": strokes.lengths,
    "001/section-4.2.1": vanishing.memories,
    "001/section-4.3.1": counts.copying,
    "001/figure-4.2": adding.writes,
    "001/section-4.3.3": counts.characters,
    "001/section-4.3.4": counts.pixels,
    "001/section-5.4.2": growing.preserved,
    "001/section-5.4.3": growing.noise,
    "001/section-5.4.5": lifelong.costs,
    "001/table-5.1": methods.expansions,
    "002/figure-6": adding.jumps,
    "004/appendix-b.1": counts.learner,
}


def compute(key: str, data: Path | None = None) -> Outcomes:
    """The numbers of a computed target; none if it is not one.

    Example:
        >>> found = compute("004/appendix-b.1")
        >>> found.final(EXACT, "MLP learner 784-32-10", "parameters")
        {0: 25.45}
    """
    if key not in COMPUTED:
        return Outcomes([])
    return Outcomes(
        Row(
            EXACT if one.seed is None else SIMULATED,
            "full",
            one.row,
            one.seed or 0,
            "",
            END,
            0,
            one.column,
            float(one.value),
        )
        for one in COMPUTED[key](data)
    )
