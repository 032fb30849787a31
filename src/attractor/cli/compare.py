"""``attractor compare``: which cell to take for a user's own time series."""

import json
import shlex
from typing import Annotated

import typer

from attractor.cli.fit import Answer, File, Labels, in_flags

FLAGS = {
    "parameters": "--parameters",
    "seconds": "--seconds",
    "folds": "--folds",
    "random_state": "--seed",
}
"""What arguments of a comparison are called on the command line."""


def compare(
    file: File,
    cell: Annotated[
        list[str] | None, typer.Option(help="Try this cell; may be repeated. Six, if left out.")
    ] = None,
    parameters: Annotated[int, typer.Option(help="Weights of each network, about.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="At most so long for each fit.")] = 10.0,
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(help="Decides the folds.")] = 0,
    answers: Labels = Answer.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Say which cell to take for a file of time series.

    Tries each with about as many parameters, for the same time, on the same folds.
    """
    from dataclasses import asdict

    from attractor.cli.progress import counted
    from attractor.cli.tables import table
    from attractor.cli.text import visible, warn
    from attractor.estimators.compare import TRIED, expect_arguments
    from attractor.estimators.compare import compare as compared
    from attractor.estimators.reading import kind_told, read, series_told, with_answers
    from attractor.report.fitted import answers_flag
    from attractor.results.numbers import duration

    cells = tuple(cell or TRIED)
    with in_flags(FLAGS):
        expect_arguments(cells, parameters, seconds, folds, seed)
    given = read(file, answers=answers.value)
    x, y = with_answers(given, file)
    warn(series_told(x))
    warn(kind_told(given, answers.value))
    if not quiet:
        longest = duration(len(cells) * folds * seconds)
        warn(f"{len(cells)} cells, {folds} folds, {seconds:g} s each: up to about {longest}")
    with (
        in_flags(FLAGS),
        counted(f"compare on {file.name}", "fit", quiet=quiet, note=str) as show,
    ):
        found = compared(
            x,
            y,
            cells=cells,
            real=given.real,
            parameters=parameters,
            seconds=seconds,
            folds=folds,
            random_state=seed,
            on_trial=show,
        )
    if as_json:
        rows = [
            {
                **asdict(one),
                "mean": None if one.failed else one.estimate.mean,
                "half_width": None if one.failed else one.estimate.half_width,
            }
            for one in found.trials
        ]
        told = {"measure": found.measure, "baseline": found.baseline, "take": found.best.cell}
        told["advice"] = found.advice
        typer.echo(json.dumps({**told, "cells": rows}, indent=1))
        return
    lines = []
    for one in found.trials:
        sizes = [one.cell, f"{one.hidden_size:,}", f"{one.parameters:,}"]
        if one.failed:
            lines.append([*sizes, "-", "-", "-", one.failed])
            continue
        lines.append(
            [
                *sizes,
                f"{one.estimate.mean:.4f}",
                f"± {one.estimate.half_width:.4f}",
                "-" if one.p is None else f"{one.p:.3f}",
                f"{one.mean_seconds:.1f}",
            ]
        )
    columns = ["cell", "units", "parameters", found.measure, "95%", "p", "seconds"]
    table(columns, lines, right=range(1, len(columns)))
    typer.echo(found.advice)
    best = ["--cell", found.best.cell, "--hidden-size", str(found.best.hidden_size)]
    command = ["attractor", "fit", str(file), *best, *answers_flag(answers.value)]
    typer.echo(visible(shlex.join(command)))
