"""Numbers from time series, in the words of scikit-learn."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from attractor.estimators.answers import numbers_of
from attractor.estimators.base import RecurrentEstimator
from attractor.tasks.series import Scaled, mean_and_deviation
from attractor.training import Row


class RecurrentRegressor(RegressorMixin, RecurrentEstimator):
    r"""Tell one number or several from time series, with any recurrent cell: :math:`y = V h_T + c`.

    The mean squared error is made small; answers are brought to mean 0 and deviation 1 meanwhile.
    Parameters and attributes are those of `RecurrentClassifier`, but for ``classes_``; and
    ``target_mean_`` and ``target_std_`` are the scale of the answers. The loss in ``history_`` and
    ``valid_`` is on that scale. By default it has more patience: numbers are often learnt only
    after tens of epochs in which the loss stays where it is.

    Shape:
        X as `RecurrentClassifier` takes it; y ``(n,)`` or ``(n, numbers)``.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(60, 10))
        >>> y = 3 * X[:, -1] + 100
        >>> model = RecurrentRegressor("gru", 8, epochs=40, learning_rate=0.02, random_state=0)
        >>> bool(model.fit(X, y).score(X, y) > 0.8)
        True

    Departs from the paper: no paper; what a cell departs from is said with the cell.
    """

    PATIENCE = 60

    target_mean_: Tensor
    target_std_: Tensor
    single_: bool

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        on_rows: Callable[[list[Row]], None] | None = None,
        stop: Callable[[], bool] = bool,
    ) -> Self:
        """Learn from series and their numbers.

        Args:
            X: series.
            y: one number for each, or several ``(n, numbers)``.
            on_rows: told of each measurement, once per epoch.
            stop: asked after each update whether to end there, with the best so far.
        """
        answers = torch.tensor(numbers_of(y, type(self).__name__, "RecurrentClassifier"))
        data = self._data(X, answers if answers.ndim == 2 else answers[:, None])
        scale = Scaled(*mean_and_deviation(data.y))
        scaled = scale(data.y).float()
        alike = torch.zeros(len(scaled), dtype=torch.long)
        self._train(data._replace(y=scaled), alike, scaled.shape[1], 1.0, on_rows, stop)
        self.target_mean_, self.target_std_ = scale.mean, scale.std
        self.single_ = answers.ndim == 1
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The number, or the numbers, of each series.

        Args:
            X: series, with the features that were fitted on.
        """
        said = self._said(X) * self.target_std_ + self.target_mean_
        found: NDArray[np.float64] = (said[:, 0] if self.single_ else said).numpy()
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
