"""Classes that count more than others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight
from torch.utils.data import TensorDataset

from attractor.errors import InputError
from attractor.estimators import RecurrentClassifier, load, save
from attractor.estimators.weights import WeightedClasses, weights_of
from attractor.training import evaluate


def rare() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Noise around 0 or, one series in ten, around a little more than 0."""
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 == 0).astype(np.int64)
    return rng.normal(size=(200, 6)) + 0.5 * y[:, None], y


def quick(**more: Any) -> RecurrentClassifier:
    return RecurrentClassifier("gru", 4, epochs=4, learning_rate=0.02, random_state=0, **more)


def test_balanced_weights_are_scikit_learns() -> None:
    places = np.array([0, 0, 0, 1, 2, 2])
    found = weights_of("balanced", np.array(["a", "b", "c"]), places)
    assert found is not None
    wanted = compute_class_weight("balanced", classes=np.arange(3), y=places)
    np.testing.assert_allclose(found, wanted)


def test_loss_and_measure_are_the_mean_of_weighted_cross_entropies() -> None:
    said, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 2, 1])
    weights = torch.tensor([4.0, 0.0, 0.5])
    data = TensorDataset(said, y)
    task = WeightedClasses(weights, data, data)
    each = -said.log_softmax(1)[torch.arange(5), y]
    wanted = (4 * each[0] + 0.5 * each[2] + 0.5 * each[3]) / 5
    model = torch.nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(3))
    torch.testing.assert_close(task.loss(model, task.samples(torch.arange(5))), wanted)
    for size in (1, 2, 5):
        found = evaluate(model, task, "valid", size)
        assert found["loss"] == pytest.approx(float(wanted))
        assert found["accuracy"] == int((said.argmax(1) == y).sum()) / 5


def test_a_rare_class_is_found_if_it_counts_as_much_as_the_other() -> None:
    x, y = rare()
    assert quick().fit(x, y).predict(x)[y == 1].mean() < 0.1
    assert quick(class_weight="balanced").fit(x, y).predict(x)[y == 1].mean() > 0.5
    assert quick(class_weight={1: 9.0}).fit(x, y).predict(x)[y == 1].mean() > 0.5


def test_weights_of_one_change_nothing() -> None:
    x, y = rare()
    plain, weighted = quick().fit(x, y), quick(class_weight={0: 1.0, 1: 1.0}).fit(x, y)
    np.testing.assert_allclose(plain.predict_proba(x), weighted.predict_proba(x), atol=1e-5)
    assert plain.valid_ == pytest.approx(weighted.valid_)


def test_nothing_needs_to_be_held_back() -> None:
    x, y = rare()
    model = quick(class_weight="balanced", validation=0).fit(x, y)
    assert model.valid_ == {}
    assert model.predict(x)[y == 1].mean() > 0.5


def test_a_large_weight_is_no_training_that_came_to_nothing() -> None:
    x, y = rare()
    assert quick(class_weight={1: 1e4}).fit(x, y).learning_rate_ == 0.02


@pytest.mark.parametrize("given", ["balanced", {0: 1, 1: 3.5}, {np.int64(1): np.float64(3.5)}])
def test_a_model_with_weights_comes_back_as_it_was(given: Any, tmp_path: Path) -> None:
    x, y = rare()
    model = quick(class_weight=given).fit(x, y)
    again = load(save(model, tmp_path))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_weights_are_searched_over_and_ragged_series_have_them() -> None:
    x, y = rare()
    rows = [row[: 3 + place % 4] for place, row in enumerate(x)]
    search = GridSearchCV(quick(), {"class_weight": [None, "balanced"]}, cv=2)
    search.fit(rows, y)
    assert len(search.cv_results_["mean_test_score"]) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("balance", "'balanced', None or a dictionary .* got 'balance'. Try class_weight={0: 2.0}"),
        ([1.0, 2.0], "a dictionary from classes"),
        ({2: 1.0}, r"for the classes \[0, 1\], but got 2 among them"),
        ({0: -1.0}, r"class_weight\[0\] to be at least 0, but got -1.0"),
        ({0: float("nan")}, r"class_weight\[0\] to be at least 0, but got nan"),
        ({0: 0, 1: 0}, "above zero for at least one class, but all are zero"),
    ],
)
def test_bad_weights_are_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        quick(class_weight=given).fit(*rare())
