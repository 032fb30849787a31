"""Series in the forms in which users have them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attractor.estimators import RecurrentRegressor
from attractor.estimators.sequences import sequences
from estimators.test_estimators import quick, ragged, waves


def test_columns_of_a_table_may_hold_a_series_in_each_place() -> None:
    class Column:  # as a Series of pandas is: no array, though one can be made of it
        dtype, ndim = np.dtype(object), 1

        def __init__(self, rows: list[Any]) -> None:
            self.rows = rows

        def __len__(self) -> int:
            return len(self.rows)

        def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
            found = np.empty(len(self.rows), object)
            found[:] = self.rows
            return found

    x, y = ragged()
    model = quick(epochs=1).fit(Column(x), y)
    np.testing.assert_array_equal(model.predict_proba(Column(x)), model.predict_proba(x))


def test_lists_of_equal_series_are_an_array() -> None:
    found = sequences([[1, 2, 3], [4, 5, 6]])
    assert found.lengths is None
    assert found.x[..., 0].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_arrays_that_may_only_be_read_are_only_read() -> None:
    x, y = ragged()
    wanted = 3.0 * y
    for one in (*x, wanted):
        one.flags.writeable = False
    assert quick(RecurrentRegressor, epochs=1).fit(x, wanted).predict(x).shape == (30,)


def test_tensors_that_are_part_of_a_graph_are_series_like_others() -> None:
    x, y = waves()
    plain = quick(epochs=1).fit(x, y)
    graph = torch.tensor(x, requires_grad=True)
    for given in (graph, list(graph), [graph[0, :5], *graph[1:]], graph.bfloat16()):
        assert plain.predict_proba(given).shape == (40, 2)
    np.testing.assert_array_equal(plain.predict_proba(graph), plain.predict_proba(x))
