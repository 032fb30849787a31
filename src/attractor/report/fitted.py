"""A page about a network that was fitted to somebody's series."""

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attractor.estimators import RecurrentClassifier
from attractor.estimators.base import RecurrentEstimator
from attractor.estimators.scores import said_of_held, scores
from attractor.report.build import page
from attractor.report.figures import COLOURS, Figure, plot_text
from attractor.report.seen import Seen, layout
from attractor.report.written import SCALE, written
from attractor.results.numbers import plain, plural

FLAGS = {
    "hidden_size": "--hidden-size",
    "num_layers": "--layers",
    "learning_rate": "--learning-rate",
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "validation": "--validation",
    "patience": "--patience",
    "seconds": "--seconds",
    "random_state": "--seed",
}
"""What the parameters of an estimator are called on the command line."""
CAUTION = (
    "What was held back decided when to stop, so these numbers are better than those to expect of "
    "new series."
)
MOST_CLASSES = 60
"""Beyond which a table of classes is not drawn."""


def fitted(
    model: RecurrentEstimator, x: Any, y: NDArray[Any], *, name: str, answers: str = "auto"
) -> str:
    """One page about a fitted estimator: how it learnt, and what it takes for what.

    Args:
        model: fitted.
        x: the series that it was fitted to.
        y: their answers.
        name: of the data.
        answers: what the labels were said to be on the command line.
    """
    sections = list(_curves(model.history_))
    if model.held_:
        held, said = np.array(model.held_), said_of_held(model, x)
        if not isinstance(model, RecurrentClassifier):
            sections.append(_scatter(y[held], said))
        elif len(model.classes_) <= MOST_CLASSES:
            sections.append(_confusion(model.classes_, y[held], said))
    count = sum(p.numel() for p in model.network_.parameters())
    found = ", ".join(f"{key} {plain(value)}" for key, value in model.valid_.items())
    return page(
        "analysis.html.j2",
        [one.figure for one in sections],
        title=f"{model.cell} on {name}",
        lead=f"{len(y):,} series of {plural(model.n_features_in_, 'feature')}, "
        f"{len(model.held_):,} of them held back"
        f"{f' ({found})' if found else ''}. {model.hidden_size} units, {count:,} parameters, "
        f"seed {model.random_state}. {_rate(model)}{CAUTION if model.held_ else ''}",
        sections=sections,
        made=_command(model, name, answers),
    )


def _rate(model: RecurrentEstimator) -> str:
    """That training began anew, if it did."""
    if model.learning_rate_ == model.learning_rate:
        return ""
    return (
        f"With a rate of {model.learning_rate:g} training came to nothing; this is with "
        f"{model.learning_rate_:g}. "
    )


def _command(model: RecurrentEstimator, name: str, answers: str) -> str:
    """What to type to fit the same again: all that is not the default."""
    given, usual = model.get_params(), type(model)().get_params()
    words = ["attractor", "fit", name, "--cell", str(model.cell)]
    for parameter, flag in FLAGS.items():
        if given[parameter] != usual[parameter]:
            words += [flag, str(given[parameter])]
    for option, value in (model.options or {}).items():
        words += ["--option", f"{option}={value}"]
    return shlex.join([*words, *answers_flag(answers)])


def answers_flag(answers: str) -> list[str]:
    """What to type for labels to be taken for the same again.

    Example:
        >>> answers_flag("auto"), answers_flag("numbers")
        ([], ['--answers', 'numbers'])
    """
    return [] if answers == "auto" else ["--answers", answers]


def _curves(rows: Sequence[dict[str, Any]]) -> list[Seen]:
    """Each measure along the training, on both splits."""
    found = []
    for measure in ("loss", "accuracy"):
        lines = {}
        for split in ("train", "valid"):
            points = [(r["step"], r[measure]) for r in rows if r["split"] == split and measure in r]
            if points:
                lines[split] = points
        if not lines:
            continue
        traces = [
            {
                "type": "scatter",
                "mode": "lines",
                "name": {"train": "training", "valid": "held back"}[split],
                "x": [step for step, _ in points],
                "y": [value for _, value in points],
                "line": {"color": COLOURS[index]},
            }
            for index, (split, points) in enumerate(lines.items())
        ]
        told, axes = _best(measure, lines), layout("update", measure)
        if min(value for points in lines.values() for _, value in points) > 0 and measure == "loss":
            axes["yaxis"]["type"] = "log"  # losses of some cells leap
        figure = Figure(measure.capitalize(), False, traces, axes)
        found.append(Seen(figure, told))
    return found


def _best(measure: str, lines: dict[str, list[tuple[int, float]]]) -> str:
    if "valid" not in lines:
        step, value = lines["train"][-1]
        return f"At the last update, {step:,}, the {measure} of a training batch is {plain(value)}."
    choose = max if measure == "accuracy" else min
    step, value = choose(lines["valid"], key=lambda one: one[1])
    return f"On the series that were held back it was best at update {step:,}: {plain(value)}."


def _confusion(classes: NDArray[Any], right: NDArray[Any], said: NDArray[Any]) -> Seen:
    table = np.array([[int(((right == a) & (said == b)).sum()) for b in classes] for a in classes])
    names = [plot_text(str(one)) for one in classes]
    trace = {"type": "heatmap", "x": names, "y": names, "z": table.tolist()}
    trace |= {"colorscale": SCALE}
    texts = [[str(count) for count in row] for row in table.tolist()]
    numbers = written(trace, texts, float(table.min()), float(table.max()))
    axes = layout("said", "right")
    for axis in ("xaxis", "yaxis"):
        axes[axis]["type"] = "category"
    axes["yaxis"]["autorange"] = "reversed"  # what is right lies on the diagonal from the top left
    wrong = table - np.diag(np.diag(table))
    told = f"{int(np.trace(table))} of {int(table.sum())} series that were held back are right."
    if wrong.any():
        a, b = np.unravel_index(int(wrong.argmax()), wrong.shape)
        told += f" Most often {classes[a]} is taken for {classes[b]}: {wrong[a, b]} times."
    return Seen(Figure("What is taken for what", False, [trace, numbers], axes), told)


def _scatter(right: NDArray[Any], said: NDArray[Any]) -> Seen:
    trace = {"type": "scatter", "mode": "markers", "x": right.tolist(), "y": said.tolist()}
    trace |= {"marker": {"color": COLOURS[0], "size": 6}}
    error = scores(right, said, named=False)["root_mean_squared_error"]
    told = f"The root mean squared error on the series that were held back is {plain(error)}."
    return Seen(Figure("Said and right", False, [trace], layout("right", "said")), told)
