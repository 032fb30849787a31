"""``attractor bench``: how fast cells are beside torch's own."""

from pathlib import Path
from typing import Annotated

import typer


def bench(
    quick: Annotated[bool, typer.Option(help="Few shapes and short: about two minutes.")] = False,
    cell: Annotated[list[str] | None, typer.Option(help="Only this cell; may be repeated.")] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Only this steps,batch,inputs,units; may be repeated."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0, help="For each case, unless quick.")] = 2.0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write JSON here.")] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="An earlier --out: exit with 1 if a layer lost more than 10%."),
    ] = None,
    keep_memory: Annotated[
        bool, typer.Option(help="Ask the allocator to keep memory, as attractor run does.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure every cell beside nn.LSTM, nn.GRU and its own plain loop, and how times grow."""
    from attractor import bench as benchmark
    from attractor.cli.progress import counted
    from attractor.cli.tables import table
    from attractor.cli.text import warn
    from attractor.files import check_target
    from attractor.runs import memory

    if keep_memory:
        memory.keep_memory()
    if out is not None:
        check_target(out, "--out")
    before = None if baseline is None else benchmark.load(baseline)
    shapes = [benchmark.Shape.of(text) for text in shape or []]
    with counted("bench", "case", quiet=quiet, note=str) as show:
        result = benchmark.bench(
            cells=cell or (), shapes=shapes, quick=quick, seconds=seconds, on_case=show
        )
    if out is not None:
        benchmark.save(result, out)
    for one in benchmark.tables(result):
        typer.echo(one.title)
        table(one.columns, one.rows, right=range(1, len(one.columns)))
    for name in result.left_out:
        warn(f"{name}: left out, for it would take more than half of the machine's memory")
    lost = [] if before is None else benchmark.losses(before, result)
    for loss in lost:
        warn(f"slower than {baseline}: {loss}")
    raise typer.Exit(1 if lost else 0)
