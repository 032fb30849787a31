"""``attractor predict``: what a model says of time series."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.cli.fit import File


class Labelled(StrEnum):
    """What to do about labels."""

    check = "check"
    ignore = "ignore"
    none = "none"


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `attractor fit` wrote.")],
    file: File,
    labels: Annotated[
        Labelled, typer.Option(help="Check against those of the file, ignore them, or it has none.")
    ] = Labelled.check,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file, not to stdout.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, with probabilities and the score.")
    ] = False,
) -> None:
    """Print the class, or the number, of each series of a file.

    One on each line.
    """
    from attractor.cli.text import visible, warn
    from attractor.estimators import RecurrentClassifier, load
    from attractor.estimators.reading import read
    from attractor.estimators.scores import as_classes, scores
    from attractor.files import check_target, write_atomic

    if out is not None:
        check_target(out, "--out")
    fitted = load(model)
    named = isinstance(fitted, RecurrentClassifier)
    given = read(
        file,
        answers="classes" if named else "numbers",
        labelled=labels is not Labelled.none,
        needed=labels is Labelled.check,
        otherwise="--labels ignore",
    )
    right = given.y
    if right is not None and isinstance(fitted, RecurrentClassifier):
        right = as_classes(fitted, right, file)
    found: dict[str, Any] = {}
    if isinstance(fitted, RecurrentClassifier):
        likely = fitted.predict_proba(given.x)
        said = fitted.classes_[likely.argmax(1)]
        found = {"classes": fitted.classes_.tolist(), "probabilities": likely.tolist()}
    else:
        said = fitted.predict(given.x)
    found = {"predictions": said.tolist(), **found}
    score = {} if right is None else scores(right, said, named=named)
    found |= score
    text = json.dumps(found, indent=1) if as_json else "\n".join(visible(one) for one in said)
    if out is None:
        typer.echo(text)
    else:
        write_atomic(out, text + "\n")
    for name, value in score.items():
        warn(f"{name.replace('_', ' ')} on {len(said)} series: {value:.4f}")
