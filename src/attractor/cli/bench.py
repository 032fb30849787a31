"""``attractor bench``: how fast cells are beside torch's own, and how well optimisers train."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.errors import InputError

Baseline = Annotated[
    Path | None,
    typer.Option(help="An earlier result: exit with 1 if something has become worse."),
]
KeepMemory = Annotated[
    bool, typer.Option(help="Ask the allocator to keep memory, as attractor run does.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback(epilog="Example: attractor bench --quick")
def cells(
    context: typer.Context,
    quick: Annotated[bool, typer.Option(help="Few shapes and short: about two minutes.")] = False,
    cell: Annotated[list[str] | None, typer.Option(help="Only this cell; may be repeated.")] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Only this steps,batch,inputs,units; may be repeated."),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Only so many; may be repeated. By default one and two."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(min=0, help="For each case, or for two turns that take longer; unless quick."),
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file of what was found; runs/bench.json, or bench-quick.json. If it is "
            "stopped, the same command goes on.",
            show_default=False,
        ),
    ] = None,
    baseline: Baseline = None,
    keep_memory: KeepMemory = True,
    quiet: Quiet = False,
) -> None:
    """Measure how fast each cell is beside nn.LSTM and nn.GRU.

    Also beside its own plain loop, and how times grow. With `optimisers`: how well torch's
    optimisers, others and learned rules train.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from attractor import bench as benchmark
    from attractor.cli.progress import counted
    from attractor.cli.text import warn
    from attractor.files import check_target, write_atomic
    from attractor.results.speed_tables import markdown
    from attractor.runs import memory

    if keep_memory:
        memory.keep_memory()
    target = out or Path("runs", f"bench{'-quick' if quick else ''}.json")
    check_target(target, "--out")
    part = target.with_name(f"{target.name}.part")
    before = None if baseline is None else benchmark.load(baseline)
    shapes = [benchmark.Shape.of(text) for text in shape or []]
    with _going_on_in(part), counted("bench", "case", quiet=quiet, note=str) as show:
        result = benchmark.bench(
            cells=cell or (),
            shapes=shapes,
            threads=threads or (),
            quick=quick,
            seconds=seconds,
            part=part,
            on_case=show,
        )
    lost = [] if before is None else benchmark.losses(before, result)
    if before is not None and lost:  # it may have been another program
        result = benchmark.again(result, {loss.case for loss in lost}, seconds)
        lost = benchmark.losses(before, result)
    benchmark.save(result, target)
    write_atomic(target.with_suffix(".md"), markdown(result))
    _print(benchmark.tables(result))
    for name in result.left_out:
        warn(name)
    for loss in lost:
        warn(f"slower than {baseline}: {loss}")
    raise typer.Exit(1 if lost else 0)


@app.command("optimisers", epilog="Example: attractor bench optimisers --quick")
def optimisers(
    quick: Annotated[bool, typer.Option(help="Short trainings: ten minutes or less.")] = False,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only this optimiser, or a rule's .safetensors file; may be repeated."),
    ] = None,
    horizon: Annotated[
        list[int] | None, typer.Option(min=1, help="So many updates; may be repeated.")
    ] = None,
    seed: Annotated[
        list[str] | None, typer.Option("--seed", "--seeds", help="3, 0-9 or 0,2,5.")
    ] = None,
    by_time: Annotated[
        bool, typer.Option(help="Equal time for all: that of so many updates of adam-cosine.")
    ] = False,
    beside: Annotated[
        Path | None, typer.Option(help="An earlier optimisers.json: show both as one.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder of what is done, in which the same command goes on, and of the report; "
            "runs/bench-optimisers, or with -quick.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Trainings at a time; by default all cores."),
    ] = None,
    baseline: Baseline = None,
    quiet: Quiet = False,
) -> None:
    """Measure how well optimisers train, learned ones included.

    Trains the same networks with Adam, AdamW, NAdamW, SGD, ScheduleFree, Prodigy and every
    learned rule.
    """
    from attractor.bench import optimisers as benchmark
    from attractor.cli.progress import counted
    from attractor.cli.run import seeds_of
    from attractor.cli.text import warn
    from attractor.files import write_atomic
    from attractor.report import build, write
    from attractor.results import standing as results
    from attractor.results.standing_tables import markdown, tables
    from attractor.runs.memory import keep_memory

    keep_memory()
    folder = out or Path("runs", f"bench-optimisers{'-quick' if quick else ''}")
    before = None if baseline is None else results.load(baseline)
    stored = None if beside is None else results.load(beside)
    seeds = seeds_of(seed)
    with (
        _going_on_in(folder),
        counted("bench optimisers", "cell", quiet=quiet, note=str) as show,
    ):
        found = benchmark.bench(
            folder,
            tasks=task or (),
            only=only or (),
            horizons=horizon or (),
            seeds=seeds,
            quick=quick,
            by_time=by_time,
            jobs=jobs,
            on_case=show,
        )
    found = found if stored is None else results.joined(stored, found)
    _print(tables(found))
    for name in found.left_out:
        warn(f"left out: {name}")
    how = "-by-time" * by_time
    results.save(found, folder / f"optimisers{how}.json")
    write_atomic(folder / f"optimisers{how}.md", markdown(found))
    report = folder / f"report{how}.html"
    write(build([], benchmarks=[found]), report)
    typer.echo(f"report: {report}")
    lost = [] if before is None else results.worse(before, found)
    for loss in lost:
        warn(f"worse than {baseline}: {loss}")
    raise typer.Exit(1 if lost else 0)


@contextmanager
def _going_on_in(place: Path) -> Iterator[None]:
    """A benchmark that is stopped says where it goes on."""
    from attractor.cli.text import warn
    from attractor.training import Stopped

    try:
        yield
    except Stopped:
        warn(f"stopped; what is done is kept in {place}, and the same command goes on there.")
        raise typer.Exit(130) from None


def _refuse_options(context: typer.Context) -> None:
    """Options before the name of what is measured would be those of cells."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    ]
    if given:
        name = context.invoked_subcommand
        raise InputError(
            f"expected options after {name!r}, but got {given[0]} before it. "
            f"Try attractor bench {name} {given[0]}."
        )


def _print(found: list[Any]) -> None:
    from attractor.cli.tables import table

    for one in found:
        typer.echo(one.title)
        table(one.columns, one.rows, right=range(1, len(one.columns)))
