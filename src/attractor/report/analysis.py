"""A page about one trained run: what its network does, as a dynamical system."""

from pathlib import Path

from torch import nn

from attractor.experiments.restore import model_of, restored
from attractor.report.build import page
from attractor.report.looking import SAMPLES, seen_in


def analysis(folder: Path, *, data: Path | None = None, trust: bool = False) -> str:
    """One page about a finished run: gates, fixed points, gradients, curvature, what applies.

    Args:
        folder: of the run.
        data: the data root.
        trust: let the run name code of a module, which is then imported and called.

    Returns:
        The page; it holds its styles, scripts and data. The run is not changed.
    """
    config, process = restored(Path(folder), data=data, trust=trust)
    model = model_of(process).eval().cpu()
    sections = list(seen_in(process, model))
    return page(
        "analysis.html.j2",
        [one.figure for one in sections],
        title=f"{config.label}, seed {config.seed}: what it does",
        lead=f"{config.experiment}, {config.budget} budget. {_size(model)}; measured on {SAMPLES} "
        "held-out samples, the network as the run left it.",
        sections=sections,
        made=f"attractor analyse {Path(folder).name}",
    )


def _size(model: nn.Module) -> str:
    return f"{sum(p.numel() for p in model.parameters()):,} parameters"
