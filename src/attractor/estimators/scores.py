"""How answers fare beside the right ones."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.estimators.base import RecurrentEstimator
from attractor.estimators.classifier import RecurrentClassifier
from attractor.estimators.reading import class_name


def scores(right: NDArray[Any], said: NDArray[Any], *, named: bool) -> dict[str, float]:
    """The share of classes that are right; of numbers, the error and the share of variance told.

    Example:
        >>> import numpy as np
        >>> scores(np.array(["a", "b"]), np.array(["a", "a"]), named=True)
        {'accuracy': 0.5}
        >>> scores(np.array([1.0, 3.0]), np.array([1.0, 2.0]), named=False)
        {'root_mean_squared_error': 0.7071067811865476, 'r2': 0.5}
    """
    if named:
        return {"accuracy": float((right == said).mean())}
    wrong = float(((right - said) ** 2).mean())
    spread = float(right.var())
    return {
        "root_mean_squared_error": wrong**0.5,
        **({"r2": 1 - wrong / spread} if spread > 0 else {}),
    }


def said_of_held(model: RecurrentEstimator, x: Any) -> NDArray[Any]:
    """What a model says of the series that were held back while it was fitted.

    Args:
        model: fitted.
        x: all the series that it was fitted to.
    """
    chosen = [x[i] for i in model.held_] if isinstance(x, list) else x[model.held_]
    found: NDArray[Any] = model.predict(chosen)
    return found


def as_classes(model: RecurrentClassifier, right: NDArray[Any], path: Path) -> NDArray[Any]:
    """Labels of a file as the classes of a model, which may be numbers or written otherwise.

    Labels that it never saw are refused: it would be wrong on them whatever it says.
    """
    places = {class_name(str(one)): place for place, one in enumerate(model.classes_)}
    beyond = sorted({*right.tolist()} - places.keys())
    if beyond:
        raise InputError(
            f"expected labels among the classes that the model knows "
            f"({', '.join(map(str, model.classes_[:20]))}), but got {beyond[0]!r} in {path}. Fit a "
            "model on them too, or leave them aside with --labels ignore."
        )
    found: NDArray[Any] = model.classes_[[places[one] for one in right.tolist()]]
    return found
