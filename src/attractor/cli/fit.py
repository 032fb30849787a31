"""``attractor fit``: a model of a user's own time series."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.errors import InputError, shortened

PAGE = "report.html"


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


@contextmanager
def in_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Say what is wrong with an argument in the words of the command line.

    Args:
        flags: by the name of an argument, what the command line calls it.

    Example:
        >>> with in_flags({"hidden_size": "--units"}):
        ...     raise InputError("expected hidden_size to be whole, but got 3.5. Try hidden_size=3")
        Traceback (most recent call last):
        attractor.errors.InputError: expected --units to be whole, but got 3.5. Try --units 3
    """
    try:
        yield
    except InputError as error:
        said = str(error)
        for name, flag in flags.items():
            said = said.replace(f"expected {name} to be", f"expected {flag} to be")
            said = re.sub(rf"\b{name}=None\b", f"no {flag}", said)
            said = re.sub(rf"\b{name}=(?=[-\d])", f"{flag} ", said)
        raise InputError(said) from error


def expect_option(text: str) -> str:
    """An option of the cell as it is given, once it is known to have a name and a value."""
    name, equals, _ = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise InputError(
            f"expected --option as name=value, but got {shortened(text)}. Try --option t_max=140."
        )
    return text


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
    patience: Annotated[
        int | None,
        typer.Option(help="Epochs without a better loss on it; 20 for classes, 60 for numbers."),
    ] = None,
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
    from attractor.files import check_target
    from attractor.report.build import write
    from attractor.report.fitted import FLAGS, fitted
    from attractor.runs.memory import keep_memory

    keep_memory()
    given = read(file, answers=answers.value)
    x, y = with_answers(given, file)
    expect_free(out, force=force)
    check_target(out / PAGE, "--out")
    kind = RecurrentRegressor if given.real else RecurrentClassifier
    asked = [f"options.{expect_option(one)}" for one in option or []]
    options = changed({"options": {}}, asked)["options"]
    model = kind(
        cell,
        hidden_size,
        num_layers=layers,
        options=options or None,
        learning_rate=learning_rate,
        epochs=epochs,
        batch_size=batch_size,
        validation=validation,
        patience="auto" if patience is None else patience,
        seconds=seconds,
        random_state=seed,
    )
    with (
        in_flags(FLAGS),
        counted(f"{cell} on {file.name}", "epoch", quiet=quiet) as show,
    ):
        model.fit(x, y, on_rows=lambda rows: show(rows[-1]["epoch"], epochs, rows[-1]))
    save(model, out, force=force)
    write(fitted(model, x, y, name=file.name), out / PAGE)
    found: dict[str, Any] = {
        "model": str(out),
        "report": str(out / PAGE),
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
