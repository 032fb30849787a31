"""``attractor analyse``: a trained run, or a map, as a dynamical system."""

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.ignored import refuse_ignored
from attractor.cli.run import DATA_HELP, TRUST_HELP

MAPS = ("cobweb", "bifurcation")


def analyse(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(help="The folder of a finished run; or cobweb, or bifurcation.")
    ],
    map_: Annotated[
        str | None, typer.Option("--map", help="A map of x, such as 'tanh(3*x)' or 'r*x*(1-x)'.")
    ] = None,
    start: Annotated[float, typer.Option(help="Where the orbit starts.")] = 0.5,
    steps: Annotated[int, typer.Option(min=1, help="How far a cobweb is followed.")] = 20,
    low: Annotated[float | None, typer.Option(help="The least x, or r, that is drawn.")] = None,
    high: Annotated[float | None, typer.Option(help="The largest.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="What to write; a page for a run.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help=f"Of a run. {DATA_HELP}")] = None,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
) -> None:
    """Show a trained run, or a map of x, as a dynamical system."""
    from attractor.errors import InputError

    if what not in MAPS:
        if map_ is not None:
            raise InputError(
                f"expected cobweb or bifurcation for --map, but got {what!r}. "
                "Try attractor analyse cobweb --map 'tanh(3*x)'."
            )
        refuse_ignored(context, "a run", {"what", "out", "data", "trust"})
        _run(Path(what), out or Path("analysis.html"), data, trust)
        return
    takes = {"what", "map_", "start", "low", "high", "out"}
    refuse_ignored(context, what, takes | ({"steps"} if what == "cobweb" else set()))
    if map_ is None:
        example = "tanh(3*x)" if what == "cobweb" else "r*x*(1-x)"
        raise InputError(f"expected a map, but got none. Try --map '{example}'.")
    path = out or Path(f"{what}.svg")
    if what == "cobweb":
        _cobweb(map_, start, steps, low, high, path)
    else:
        _bifurcation(map_, start, low, high, path)


def _cobweb(
    text: str, start: float, steps: int, low: float | None, high: float | None, out: Path
) -> None:
    from attractor.dynamics import cobweb, equilibria, expression
    from attractor.dynamics.plots import check_format, draw_cobweb, save, styled, subplots

    check_format(out)
    step = expression(text)
    web = cobweb(step, start, steps=steps, low=low, high=high)
    found = equilibria(step, float(web.outline[0, 0]), float(web.outline[-1, 0]))
    with styled():
        drawn, axes = subplots(size=3.4)
        draw_cobweb(web, axes[0, 0], found=found, title=f"y = {text}")
        axes[0, 0].legend()
    save(drawn, out)
    typer.echo(f"equilibria: {found}")
    typer.echo(str(out))


def _bifurcation(text: str, start: float, low: float | None, high: float | None, out: Path) -> None:
    import torch

    from attractor.dynamics import bifurcation, expression
    from attractor.dynamics.plots import check_format, draw_bifurcation, save, styled, subplots

    check_format(out)
    step = expression(text, ("x", "r"))
    ends = (2.5 if low is None else low, 4.0 if high is None else high)
    found = bifurcation(step, torch.linspace(*ends, 800, dtype=torch.float64), start)
    with styled():
        drawn, axes = subplots(size=4)
        draw_bifurcation(found, axes[0, 0])
        axes[0, 0].set_title(f"x <- {text}")
    save(drawn, out)
    typer.echo(str(out))


def _run(folder: Path, out: Path, data: Path | None, trust: bool) -> None:
    from attractor.files import check_target
    from attractor.report.analysis import analysis
    from attractor.report.build import write

    check_target(out, "--out")
    write(analysis(folder, data=data, trust=trust), out)
    typer.echo(str(out))
