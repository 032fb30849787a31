"""What a learner calls after each update: plain functions of it and of what it measured.

Whatever a callback appends to the rows is logged with them.
"""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from attractor.continual.classes import confusion, per_class, top_k
from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.tables import lookup
from attractor.training.process import Row

if TYPE_CHECKING:
    from attractor.continual.learner import Callback, Learner


def note_classes(learner: "Learner", rows: list[Row]) -> None:
    """At the end of each task, the share of each class learnt so far that is right.

    Example:
        >>> from attractor.continual import Learner
        >>> from attractor.models import MLP
        >>> from attractor.tasks.streams import split_images
        >>> parts = split_images(dataset="digits", size=5)
        >>> learner = Learner(MLP([64, 8, 10]), parts, iterations=1, callbacks=note_classes)
        >>> list(learner.advance()[-1])[:3]
        ['split', 'class_0_accuracy', 'class_1_accuracy']
    """
    if learner.update == 0:
        shares = per_class(confusion(learner.model, learner.stream[: learner.task])).tolist()
        known = {f"class_{n}_accuracy": one for n, one in enumerate(shares) if one == one}
        rows.append({"split": learner.split, **known})


def note_top_5(learner: "Learner", rows: list[Row]) -> None:
    """At the end of each task, the share of samples so far whose class is among the first five.

    Example:
        >>> from attractor.continual import Learner
        >>> from attractor.models import MLP
        >>> from attractor.tasks.streams import split_images
        >>> parts = split_images(dataset="digits", size=5)
        >>> learner = Learner(MLP([64, 8, 10]), parts, iterations=1, callbacks=note_top_5)
        >>> list(learner.advance()[-1])
        ['split', 'top_5_accuracy']
    """
    if learner.update == 0:
        found = top_k(learner.model, learner.stream[: learner.task], 5)
        rows.append({"split": learner.split, "top_5_accuracy": found})


def to_csv(path: str | Path) -> "Callback":
    """A callback that keeps a file of comma-separated values of all that was measured.

    Args:
        path: of the file, which is written anew, whole, after each task.

    Example:
        >>> callback = to_csv("runs/mine.csv")
    """
    rows: list[Row] = []
    place = Path(path)

    def write(learner: "Learner", new: list[Row]) -> None:
        rows.extend({"step": learner.step, "task": learner.task, **row} for row in new)
        if learner.update == 0:
            names = list(dict.fromkeys(name for row in rows for name in row))
            text = io.StringIO(newline="")
            table = csv.DictWriter(text, names)
            table.writeheader()
            table.writerows(rows)
            write_atomic(place, text.getvalue())

    return write


CALLBACKS: dict[str, "Callback"] = {"per_class": note_classes, "top_5": note_top_5}
"""Those that a configuration can name without a module."""


def callback_named(name: str) -> "Callback":
    """The callback of a name: a key of ``CALLBACKS``, or ``module:function`` of the user's.

    Example:
        >>> callback_named("top_5").__name__
        'note_top_5'
    """
    found = lookup("callback", CALLBACKS, name)
    if isinstance(found, type):
        raise InputError(
            f"expected {name!r} to name a function of the learner and of what it measured, but it "
            "is a class. Name a function, or an object that can be called."
        )
    return found
