"""Classes of time series, in the words of scikit-learn."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from attractor.errors import InputError
from attractor.estimators.answers import classes_of
from attractor.estimators.base import RecurrentEstimator
from attractor.estimators.weights import weights_of
from attractor.training import Row


class RecurrentClassifier(ClassifierMixin, RecurrentEstimator):
    r"""Name the class of time series with any recurrent cell: :math:`p(y) = softmax(V h_T + c)`.

    Part of the series is held back, a share of each class; training ends once the loss on them has
    not improved for a while, and the weights that were best on them stay. Attributes after `fit`:
    ``classes_``, ``n_features_in_``, ``network_`` (a `SequenceClassifier`), ``spec_`` (what it was
    made of), ``scaler_``, ``history_`` (what was measured on the way), ``held_`` (the places of the
    series that were held back) and ``valid_`` (how it fares on these).

    Args:
        cell: a key of ``CELLS``, a `Cell` class, or a list with that of each layer.
        hidden_size: units of a layer, or a list with those of each.
        num_layers: layers, where no list says so.
        bidirectional: read in both directions.
        options: of the layer and of the cell, such as ``{"dropout": 0.2}`` or ``{"t_max": 140}``.
            An ``nru`` has ``average_heads=True`` and ``feedback=0.0`` unless they say otherwise.
        optimiser: a key of ``OPTIMISERS``, or ``{"name": key, **options}``.
        learning_rate: of the optimiser; ``None`` where it has its own, as learned ones do. Where
            training comes to nothing, because it diverges, it begins anew with a tenth of it, at
            most twice; ``learning_rate_`` is that of the end.
        epochs: at most so many times through the series.
        batch_size: series for an update; ``None`` means an eighth of them, at least 4, at most 32.
        validation: the share that is held back; with 0 there is none, and all epochs are done.
        patience: end after so many epochs without a better loss on that share; ``None``: never;
            ``"auto"``: 20 for classes, 60 for numbers.
        clip: scale gradients down to this norm where they are longer; ``None`` leaves them.
        normalise: bring each feature to mean 0 and deviation 1 over the training series.
        seconds: end training after so much time too, with the best so far. How far it comes depends
            on the machine.
        random_state: a whole number makes `fit` give the same weights each time.
        class_weight: how much a mistake on each class counts, a dictionary by its name, 1 where it
            says none; ``"balanced"`` lets each class count as much as any other in sum, however
            rare it is. The loss in ``history_`` and ``valid_`` has these weights.

    Shape:
        X ``(n, time, features)``; ``(n, time)`` for one feature; or a list of arrays ``(time,
        features)`` or ``(time,)`` that need not be equally long.

    Example:
        >>> time = np.linspace(0, 6, 20)
        >>> X = np.stack([np.sin(time * (1 + i % 2) + i) for i in range(40)])
        >>> y = np.array(["slow", "fast"] * 20)
        >>> model = RecurrentClassifier("gru", 8, epochs=60, random_state=0).fit(X, y)
        >>> model.predict(X[:2]), bool(model.score(X, y) > 0.9)
        (array(['slow', 'fast'], dtype='<U4'), True)

    Departs from the paper: no paper; what a cell departs from is said with the cell.
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        cell: Any = "lstm",
        hidden_size: int | Sequence[int] = 64,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        options: Mapping[str, Any] | None = None,
        optimiser: Any = "adam",
        learning_rate: float | None = 0.005,
        epochs: int = 100,
        batch_size: int | None = None,
        validation: float = 0.2,
        patience: int | Literal["auto"] | None = "auto",
        clip: float | None = 1.0,
        normalise: bool = True,
        seconds: float | None = None,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
    ) -> None:
        super().__init__(
            cell,
            hidden_size,
            num_layers=num_layers,
            bidirectional=bidirectional,
            options=options,
            optimiser=optimiser,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            validation=validation,
            patience=patience,
            clip=clip,
            normalise=normalise,
            seconds=seconds,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        on_rows: Callable[[list[Row]], None] | None = None,
        stop: Callable[[], bool] = bool,
    ) -> Self:
        """Learn from series and their classes.

        Args:
            X: series.
            y: the class of each, of any type that can be sorted.
            on_rows: told of each measurement, once per epoch.
            stop: asked after each update whether to end there, with the best so far.
        """
        given = classes_of(y, type(self).__name__, "RecurrentRegressor")
        classes, places = np.unique(given, return_inverse=True)
        data = self._data(X, torch.from_numpy(places.astype(np.int64)))
        if len(classes) < 2:
            raise InputError(
                f"expected series of at least two classes, but all are of the class {classes[0]}: "
                "with one class there is nothing to tell apart. Give series of another."
            )
        shares = np.bincount(places) / len(places)
        found = weights_of(self.class_weight, classes, places)
        weights = None if found is None else torch.from_numpy(found).float()
        idle = float(-(shares * np.log(shares) * (1 if found is None else found)).sum())
        self._train(data, data.y, len(classes), idle, on_rows, stop, weights)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class ``(n, classes)``, in the order of ``classes_``.

        Args:
            X: series, with the features that were fitted on.
        """
        said: NDArray[np.float64] = self._said(X).softmax(1).numpy()
        return said

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each series.

        Args:
            X: series, with the features that were fitted on.
        """
        places = self.predict_proba(X).argmax(1)
        chosen: NDArray[Any] = self.classes_[places]
        return chosen
