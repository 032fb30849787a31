"""``attractor track``: the metrics of runs for TensorBoard, MLflow, Weights & Biases or a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.text import warn

TRACK_HELP = "Follow the runs into csv, tensorboard, mlflow or wandb; may be repeated."


def track(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")],
    to: Annotated[
        list[str], typer.Option(help="csv, tensorboard, mlflow or wandb; may be repeated.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder; each sink has its own in it.")
    ] = Path("tracking"),
) -> None:
    """Write what saved runs have measured for other tools to show.

    Nothing is written twice.
    """
    from attractor.tracking import track as write

    for name in to:
        done = write(runs, name, out)
        for one in done.damaged:
            warn(f"{one.folder} is damaged and left out: {one.reason}")
        typer.echo(f"{done.points} new points of {done.runs} runs; {_look(name, out)}")


@contextmanager
def following(names: Sequence[str] | None, folders: Sequence[Path], runs: Path) -> Iterator[None]:
    """Follow runs into sinks while they go on, in a folder beside theirs."""
    if not names:
        yield
        return
    from attractor.tracking import Live

    out = runs.absolute().parent / "tracking"
    with Live(folders, names, out):
        yield
    for name in dict.fromkeys(names):
        typer.echo(f"tracking: {_look(name, out)}", err=True)


def _look(name: str, out: Path) -> str:
    from attractor.tracking import SINKS

    return f"to look at: {SINKS[name].look.format(out / name)}"
