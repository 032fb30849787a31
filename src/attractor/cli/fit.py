"""``attractor fit``: a model of a user's own time series."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Answer(StrEnum):
    """What the labels of a file are."""

    auto = "auto"
    classes = "classes"
    numbers = "numbers"


File = Annotated[
    Path, typer.Argument(help="Series: .tsv as in UCR's archive or .csv, .ts as in UEA's.")
]
Labels = Annotated[
    Answer, typer.Option(help="What the labels are; numbers that are not whole are no classes.")
]


def fit(
    file: File,
    cell: Annotated[str, typer.Option(help="Any of `attractor list cells`.")] = "lstm",
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("model"),
    hidden_size: Annotated[int, typer.Option(help="Units of a layer.")] = 64,
    layers: Annotated[int, typer.Option(help="Layers.")] = 1,
    option: Annotated[
        list[str] | None, typer.Option(help="Of the cell, as t_max=140; may be repeated.")
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.005,
    epochs: Annotated[int, typer.Option(help="At most so many times through the series.")] = 100,
    batch_size: Annotated[int | None, typer.Option(help="Series for an update.")] = None,
    validation: Annotated[float, typer.Option(help="The share that is held back.")] = 0.2,
    patience: Annotated[int, typer.Option(help="Epochs without a better loss on it.")] = 20,
    seconds: Annotated[float | None, typer.Option(help="End after so much time too.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    answers: Labels = Answer.auto,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Train a recurrent network on a file of time series; write it, and a page about it."""
    from attractor.cli.progress import counted
    from attractor.cli.text import visible, warn
    from attractor.estimators import RecurrentClassifier, RecurrentRegressor, save
    from attractor.estimators.files import expect_free
    from attractor.estimators.reading import read, with_answers
    from attractor.experiments.changes import changed
    from attractor.report.build import write
    from attractor.report.fitted import fitted
    from attractor.runs.memory import keep_memory

    keep_memory()
    expect_free(out, force=force)
    given = read(file, answers=answers.value)
    x, y = with_answers(given, file)
    kind = RecurrentRegressor if given.real else RecurrentClassifier
    options = changed({"options": {}}, [f"options.{one}" for one in option or []])["options"]
    model = kind(
        cell,
        hidden_size,
        num_layers=layers,
        options=options or None,
        learning_rate=learning_rate,
        epochs=epochs,
        batch_size=batch_size,
        validation=validation,
        patience=patience,
        seconds=seconds,
        random_state=seed,
    )
    with counted(f"{cell} on {file.name}", "epoch", quiet=quiet) as show:
        model.fit(x, y, on_rows=lambda rows: show(rows[-1]["epoch"], epochs, rows[-1]))
    save(model, out, force=force)
    write(fitted(model, x, y, name=file.name), out / "report.html")
    found: dict[str, Any] = {
        "model": str(out),
        "report": str(out / "report.html"),
        "series": len(y),
        "held_back": len(model.held_),
        "parameters": sum(p.numel() for p in model.network_.parameters()),
        "learning_rate": model.learning_rate_,
        "valid": model.valid_,
    }
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    for name, value in model.valid_.items():
        warn(f"{name} on the {len(model.held_)} series that were held back: {value:.4f}")
    typer.echo(visible(found["model"]))
    typer.echo(visible(found["report"]))
