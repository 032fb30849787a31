"""``attractor fit``: a model of a user's own time series."""

import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
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
            said = re.sub(rf"\bRecurrent\w+\({name}=\.\.\.\)", flag, said)
        said = re.sub(r"\bRecurrentRegressor\b(?!\()|\breal=True\b", "`--answers numbers`", said)
        raise InputError(said) from error


@contextmanager
def ended_by_hand(ready: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C asked to end, which it does once; again, or before it is ready, it leaves.

    Args:
        ready: whether there is something to keep.
    """
    before = signal.getsignal(signal.SIGINT)
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        signal.signal(signal.SIGINT, before)
        if not ready():
            signal.raise_signal(signal.SIGINT)
        asked = True

    if callable(before):  # it is not where Ctrl-C is to do nothing
        signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


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
    # text, since a path would make of nothing the folder that one is in
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder to write.", metavar="PATH")
    ] = "model",
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
    """Train a recurrent network on a file of time series.

    Writes a folder with the model, and a page about it. Ctrl-C ends training early, after an epoch
    or more, and the best network so far is written.
    """
    from attractor.cli.progress import counted
    from attractor.cli.text import visible, warn
    from attractor.estimators import RecurrentClassifier, RecurrentRegressor, save
    from attractor.estimators.reading import kind_told, read, series_told, with_answers
    from attractor.estimators.scores import said_of_held, scores
    from attractor.experiments.changes import changed
    from attractor.report.build import write
    from attractor.report.fitted import FLAGS, fitted
    from attractor.results.numbers import plain
    from attractor.runs.memory import keep_memory

    keep_memory()
    folder = _folder(out)
    given = read(file, answers=answers.value)
    x, y = with_answers(given, file)
    _expect_free(folder, force)
    warn(series_told(x))
    warn(kind_told(given, answers.value))
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
    done = 0

    def seen(rows: list[dict[str, Any]]) -> None:
        nonlocal done
        done = rows[-1]["epoch"]
        show(done, epochs, rows[-1])

    with (
        in_flags({"cell": "--cell", **FLAGS}),
        counted(f"{cell} on {file.name}", "epoch", quiet=quiet) as show,
        ended_by_hand(lambda: done > 0) as stop,
    ):
        model.fit(x, y, on_rows=seen, stop=stop)
    if stop():
        warn(f"Ctrl-C ended training in epoch {done + 1}; this is the best network until then")
    save(model, folder, force=force)
    write(fitted(model, x, y, name=file.name, answers=answers.value), folder / PAGE)
    measured = model.valid_
    if given.real and model.held_:  # in the unit of the labels, which the loss is not
        measured = scores(y[model.held_], said_of_held(model, x), named=False)
    found: dict[str, Any] = {
        "model": str(folder),
        "report": str(folder / PAGE),
        "series": len(y),
        "held_back": len(model.held_),
        "parameters": sum(p.numel() for p in model.network_.parameters()),
        "learning_rate": model.learning_rate_,
        "valid": {**model.valid_, **measured},
    }
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    else:
        for name, value in measured.items():
            told = f"{name.replace('_', ' ')} on the {len(model.held_)} series that were held back"
            warn(f"{told}: {plain(value) if given.real else f'{value:.4f}'}")
        typer.echo(visible(found["model"]))
        typer.echo(visible(found["report"]))
    if stop():
        raise typer.Exit(130)


def _folder(out: str) -> Path:
    if not out:
        raise InputError("expected the name of a folder for --out, but got none. Try --out model.")
    return Path(out)


def _expect_free(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot be written, or has what is not ours, before any work is done."""
    from attractor.estimators.files import expect_free
    from attractor.files import check_target, explained

    page = folder / PAGE
    with explained(folder):
        expect_free(folder, force=force)
        check_target(page, "--out")
        made = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
        for one in made:
            one.rmdir()
    if page.exists() and not force:
        raise InputError(
            f"expected a folder without a {PAGE}, but there is one in {folder}. Choose another, or "
            "replace it: --force."
        )
