"""``attractor meta``: learned optimisers from meta-training to a table of results."""

import json
import sys
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from attractor.cli.run import DATA_HELP
from attractor.cli.text import visible
from attractor.errors import InputError

app = typer.Typer(
    help="Meta-train, test and describe learned optimisers.",
    epilog="Example: attractor meta card",
    no_args_is_help=True,
)

Data = Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change a value: a.b=c; may be repeated.")
]


@app.command(epilog="Example: attractor meta train rules --only LSTM --out lstm.safetensors")
def train(
    name: Annotated[str, typer.Argument(help="An experiment with a table meta, or FILE.toml.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    only: Annotated[str | None, typer.Option(help="The optimiser with this label.")] = None,
    change: Changes = None,
    seed: Annotated[int | None, typer.Option(help="Not the file's first seed.", min=0)] = None,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Meta-train an optimiser into a file; goes on where it was stopped."""
    from attractor.cli.progress import counted
    from attractor.experiments.kinds.supervised import SupervisedRun
    from attractor.experiments.rules import train_rule
    from attractor.experiments.table import load
    from attractor.experiments.train import runs_of
    from attractor.runs.jobs import stoppable
    from attractor.runs.memory import keep_memory
    from attractor.training.process import Stopped

    keep_memory()
    title, experiment = load(name, change or [])
    config = runs_of(title, experiment, [only] if only else [])[0]
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    if not isinstance(config, SupervisedRun):
        raise InputError(
            f"expected an experiment of kind supervised, but {name} is of kind {config.kind}. "
            'Try rules, or a file with kind = "supervised" and a table [meta].'
        )
    with stoppable() as flag, counted(config.label, "update", quiet=quiet) as show:
        try:
            train_rule(config, out, data=data, on_row=show, stop=flag.exists)
        except Stopped:
            print("attractor: stopped; goes on with the same command.", file=sys.stderr)
            raise typer.Exit(130) from None
    typer.echo(str(out))


@app.command(
    "test", epilog="Example: attractor meta test lstm adam:lr=0.003 --task digits --steps 200"
)
def compare(
    optimisers: Annotated[
        list[str],
        typer.Argument(help="rule.safetensors, a shipped rule such as lstm, or sgd:lr=0.1."),
    ],
    task: Annotated[str, typer.Option(help="A task that shows images at once.")] = "digits",
    hidden: Annotated[
        list[int] | None, typer.Option(help="Hidden layer of the perceptron.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Updates of each learner.")] = 100,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples in a batch.")] = 128,
    seeds: Annotated[int, typer.Option(min=1, help="Learners for each optimiser.")] = 3,
    split: Annotated[str, typer.Option(help="test, or valid to choose a rate.")] = "test",
    data: Data = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train the same learners with each optimiser, and compare.

    They start alike and see the same batches.
    """
    from attractor.cli.tables import table
    from attractor.experiments.comparison import compare_on, rows

    def show(curve: Any) -> None:
        if not quiet:
            reached = "diverged" if curve.diverged else f"{curve.loss[-1]:.4f}"
            print(visible(f"{curve.optimiser}, seed {curve.seed}: {reached}"), file=sys.stderr)

    curves = compare_on(
        optimisers,
        task,
        hidden=hidden or [32],
        steps=steps,
        batch_size=batch_size,
        seeds=range(seeds),
        split=split,
        data=data,
        on_curve=show,
    )
    found = rows(curves)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    columns = list(found[0])
    lines = [[value if isinstance(value, str) else _number(value) for value in row.values()]
             for row in found]  # fmt: skip
    table(columns, lines, right=range(1, len(columns)))


@app.command(epilog="Example: attractor meta card lstm/mlp")
def card(
    name: Annotated[
        str | None, typer.Argument(help="kind/name, or a file; lists what there is if left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell how a rule was trained: its tasks, budget, seed and curve."""
    from attractor.experiments.rules import read_card
    from attractor.optimisers import shipped

    if name is None:
        found = shipped()
        typer.echo(json.dumps(found, indent=1) if as_json else "\n".join(found))
        return
    told = read_card(name)
    if as_json:
        typer.echo(json.dumps(told, indent=1))
        return
    for key, value in told.items():
        typer.echo(fill(f"{key}: {visible(_text(value))}", 100, subsequent_indent="    "))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return str(value)
