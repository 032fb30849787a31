"""``attractor reproduce``: a table, figure or claim of the papers, run and compared."""

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from attractor.cli.ignored import refuse_ignored
from attractor.cli.run import DATA_HELP, exit_code, explain, seeds_of
from attractor.errors import InputError

if TYPE_CHECKING:
    from attractor.reproduction.outcomes import Outcomes
    from attractor.reproduction.targets import Budget, Target


TAKES = {
    "list": {"as_json"},
    "pages": {"pages"},
    "--stored": {"stored"},
    "--join": {"join", "out", "keep"},
    "--computed": {"computed", "out", "keep", "data", "quiet"},
    "a target": {"budget", "seed", "out", "keep", "data", "jobs", "quiet", "as_json"},
}
"""The options that have a part in what is asked; all others would be ignored there."""


def reproduce(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Such as table-6.1 or 001/table-4.1; list; pages."),
    ],
    budget: Annotated[
        str, typer.Option(metavar="quick|full", help="Minutes, or as published.")
    ] = "quick",
    seed: Annotated[
        list[str] | None,
        typer.Option("--seed", "--seeds", help="Not the target's seeds, but 3, 0-9 or 0,2,5."),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show the stored results, run nothing.")
    ] = False,
    join: Annotated[
        bool,
        typer.Option(
            "--join",
            help="Run nothing: join finished runs in OUT, of a target or an experiment, to the "
            "stored tables, or to those in KEEP.",
        ),
    ] = False,
    computed: Annotated[
        bool, typer.Option("--computed", help="Only what needs no runs: seconds.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder for the table and the page; by default OUT/reproduction."),
    ] = None,
    pages: Annotated[Path, typer.Option(help="With `pages`: the folder of the pages.")] = Path(
        "docs"
    ),
    data: Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at a time; by default all cores."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With `list`: print as JSON.")] = False,
) -> None:
    """Run what a published table, figure or claim needs, and compare. Finished runs are reused."""
    idle = {"--stored": stored, "--join": join, "--computed": computed}
    words = [name] if name in ("list", "pages") else [word for word, on in idle.items() if on]
    if seed is not None and words:
        raise InputError(
            f"expected --seeds beside what is run, but {words[0]} runs nothing. Leave --seeds out."
        )
    mode = words[0] if words else "a target"
    refuse_ignored(context, mode, {"name", *TAKES[mode]})
    if name == "list":
        _list(as_json)
        return
    if as_json:
        raise InputError(
            f"expected --json with `list`, but got it with {name}. Try `attractor reproduce list "
            "--json`, or the table (.csv.gz) that a target keeps beside its page."
        )
    from attractor.reproduction.targets import target

    if name == "pages":
        from attractor.reproduction.pages import write_pages

        for path in write_pages(pages):
            typer.echo(str(path))
        return
    if join:
        _join(name, out, keep)
        return
    from attractor.reproduction.stock import kept

    one = target(name)
    if stored:
        _show(one, kept(one))
        return
    from attractor.reproduction.computed.table import COMPUTED

    if computed and one.key not in COMPUTED:
        raise InputError(
            f"expected a target that is computed, but {one.key} needs runs. Try it without "
            "--computed."
        )
    runs = None if computed else seeds_of(seed)
    options = "--computed" if computed else f"--budget {budget}"
    options += f" --seeds {','.join(seed)}" if seed else ""
    _run(one, _budget(budget), runs, out, keep, data, jobs, quiet, options)


def _budget(word: str) -> "Budget":
    from attractor.reproduction.targets import Budget

    for known in get_args(Budget):
        if word == known:
            found: Budget = known
            return found
    raise InputError(f"expected a budget of quick or full, but got {word!r}. Try --budget quick.")


def _join(name: str, out: Path, keep: Path | None) -> None:
    from attractor.errors import unknown
    from attractor.experiments.files import EXPERIMENTS
    from attractor.reproduction.joining import join
    from attractor.reproduction.outcomes import STORED
    from attractor.reproduction.targets import names, target

    if name not in EXPERIMENTS:
        if name not in names():
            listed = "attractor reproduce list"
            raise unknown("target or experiment", name, [*names(), *EXPERIMENTS], listed=listed)
        asked = target(name)
        if not asked.experiments("quick") and not asked.experiments("full"):
            raise InputError(
                f"expected a target with runs to join, but {asked.key} has none. "
                f"Try `attractor reproduce {asked.key} --stored`."
            )
    for one in join(name, out, keep or STORED):
        typer.echo(f"{one.path}: {one.new} runs joined, {one.all} now")


def _run(
    one: "Target",
    budget: "Budget",
    seeds: list[int] | None,
    out: Path,
    keep: Path | None,
    data: Path | None,
    jobs: int | None,
    quiet: bool,
    options: str,
) -> None:
    from attractor.cli.progress import Watch
    from attractor.experiments.train import run_all
    from attractor.files import write_atomic
    from attractor.reproduction.computed.table import compute
    from attractor.reproduction.outcomes import write
    from attractor.reproduction.pages import target_page
    from attractor.reproduction.tables import all_claims
    from attractor.reproduction.work import configs, outcomes
    from attractor.runs.engines import Places
    from attractor.runs.memory import keep_memory

    keep_memory()
    found = [] if seeds is None else configs(one, budget, seeds)
    with Watch(found, out, quiet=quiet) as watch:
        ended = run_all(found, out, data=data, places=Places(jobs=jobs), on_end=watch.end)
    explain(ended)
    ran, computed = outcomes(found, out), compute(one.key, data)
    results = ran.joined(computed)
    shown = None if seeds is None else budget
    _show(one, results, shown)
    if results:
        folder = keep or out / "reproduction"
        for kept, end in ((ran, ""), (computed, ".computed")):
            if kept:
                write(kept, folder / f"{one.slug}{end}.csv.gz")
        page = target_page(one, results, all_claims(one, results), options, shown)
        write_atomic(folder / f"{one.slug}.md", page)
        typer.echo(f"{folder / one.slug}.md and .csv.gz")
    raise typer.Exit(exit_code([one.how for one in ended]))


def _show(one: "Target", results: "Outcomes", budget: "Budget | None" = None) -> None:
    """Published, ours, interval, verdict; then the claims.

    Without a budget that was asked for, that which there are enough runs of.
    """
    from attractor.cli.tables import table
    from attractor.reproduction.tables import (
        CLAIMS,
        NUMBERS,
        all_claims,
        budget_of,
        claim_rows,
        number_rows,
        remark,
    )

    budget = budget or budget_of(one, results)
    typer.echo(f"{one.key}: {one.what} ({one.document})")
    if one.note:
        typer.echo(one.note)
    if rows := number_rows(one, results, budget):
        table(NUMBERS, rows, right=(2, 3, 4, 5))
    if told := remark(one, results, budget):
        typer.echo(told)
    claims = all_claims(one, results)
    for key in (one.key, *one.claims_of):
        if claims[key] and key != one.key:
            typer.echo(f"the claims of {key}, which count there:")
        if claims[key]:
            table(CLAIMS, claim_rows(claims[key]), right=(1, 2, 3, 4, 5))


def _list(as_json: bool) -> None:
    from attractor.cli.tables import hanging, width
    from attractor.reproduction.costs import cost, told
    from attractor.reproduction.stock import brief, left_out
    from attractor.reproduction.targets import TARGETS

    if as_json:
        typer.echo(json.dumps(list(map(_entry, TARGETS.values())), indent=1))
        return
    wide = width()
    about = (
        "quick and full: estimated minutes of one core, ≥ where some of the runs are not counted; "
        "status: what is stored, in full with --json"
    )
    typer.echo("\n".join([*textwrap.wrap(about, wide), ""]))
    rows = [
        [
            one.key,
            told(cost(one, "quick")),
            told(cost(one, "full")),
            brief(one),
            " ".join(
                filter(None, (one.what, _aside("[{}]", one.data), _aside("(also {})", one.twins)))
            ),
        ]
        for one in TARGETS.values()
    ]
    columns = ("target", "quick", "full", "status", "what [data]")
    typer.echo("\n".join(hanging(columns, rows, wide, right=(1, 2))))
    typer.echo("\nno targets, for there is nothing to compare:")
    for places, why in left_out():
        typer.echo(
            "\n".join(
                textwrap.wrap(
                    f"{why}: {places}",
                    wide,
                    initial_indent="  ",
                    subsequent_indent="    ",
                    break_on_hyphens=False,
                )
            )
        )


def _aside(form: str, words: tuple[str, ...]) -> str:
    return form.format(", ".join(words)) if words else ""


def _entry(one: "Target") -> dict[str, object]:
    """What JSON tells of a target."""
    from attractor.reproduction.costs import cost
    from attractor.reproduction.stock import status

    quick, full = cost(one, "quick"), cost(one, "full")
    return {
        "target": one.key,
        "what": one.what,
        "also": ", ".join(one.twins),
        "data": ", ".join(one.data),
        "quick": quick and quick.minutes,
        "quick_is_least": quick is not None and quick.least,
        "full": full and full.minutes,
        "full_is_least": full is not None and full.least,
        "status": status(one),
        "note": one.note,
    }
