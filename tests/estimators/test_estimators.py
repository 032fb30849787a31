"""Recurrent networks behind scikit-learn's interface."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from attractor.errors import InputError
from attractor.estimators import DO_NOT_APPLY, RecurrentClassifier, RecurrentRegressor, load, save
from attractor.estimators.base import RecurrentEstimator
from attractor.training import Fitted

RNG = np.random.default_rng(0)


def waves(n: int = 40, steps: int = 12) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Slow and fast waves of scale 30 around 200, with names for classes that are not in order."""
    rng, time = np.random.default_rng(1), np.linspace(0, 6, steps)
    speed = np.arange(n) % 2
    x = np.sin(time * (1 + 1.5 * speed[:, None]) + rng.uniform(0, 6, (n, 1)))
    return 200 + 30 * x, np.array(["slow", "fast"])[speed]


def ragged(n: int = 30) -> tuple[list[NDArray[np.float64]], NDArray[Any]]:
    """Series of 4 to 9 steps of two features; the class is the sign of the last value of one."""
    rng = np.random.default_rng(2)
    x = [rng.normal(size=(rng.integers(4, 10), 2)) * [1, 50] for _ in range(n)]
    y = np.array([int(one[-1, 0] > 0) for one in x])
    for one, label in zip(x, y, strict=True):
        one[-1, 0] += 3 * (2 * label - 1)
    return x, y


def quick(kind: type[RecurrentEstimator] = RecurrentClassifier, **more: Any) -> Any:
    given: dict[str, Any] = {"cell": "gru", "hidden_size": 8, "epochs": 15, "random_state": 0}
    return kind(**(given | more))


def test_it_learns_waves_whatever_their_scale_and_names_their_classes() -> None:
    x, y = waves()
    model = quick(epochs=60, learning_rate=0.02).fit(x, y)
    assert model.classes_.tolist() == ["fast", "slow"]
    assert model.score(x, y) > 0.9
    said = model.predict_proba(x)
    assert said.shape == (40, 2)
    np.testing.assert_allclose(said.sum(1), 1)
    assert (model.predict(x) == model.classes_[said.argmax(1)]).all()
    assert model.n_features_in_ == 1


def test_the_same_random_state_gives_the_same_weights_and_another_one_others() -> None:
    x, y = waves()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again = (quick(epochs=3).fit(x, y).predict_proba(x) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())  # torch's own generator stays as it was
    assert (first == again).all()
    assert (first != quick(epochs=3, random_state=1).fit(x, y).predict_proba(x)).any()


def test_a_batch_is_an_eighth_of_the_series_within_bounds() -> None:
    assert [quick()._batch_size(n) for n in (3, 20, 80, 256, 1000)] == [3, 4, 10, 32, 32]
    assert quick(batch_size=7)._batch_size(80) == 7


def test_long_gradients_are_clipped_if_asked() -> None:
    x, y = waves()
    free, clipped = (quick(epochs=2, clip=clip).fit(x, y) for clip in (None, 1e-3))
    assert (free.predict_proba(x) != clipped.predict_proba(x)).any()
    same = quick(epochs=2, clip=1e9).fit(x, y)
    assert (free.predict_proba(x) == same.predict_proba(x)).all()


def test_a_network_that_draws_at_random_answers_the_same_each_time() -> None:
    x, y = waves()
    model = quick(epochs=1).fit(x, y)
    model.network_.register_forward_hook(lambda _, __, said: said + torch.randn_like(said))
    before = torch.get_rng_state()
    assert (model.predict_proba(x) == model.predict_proba(x)).all()
    assert torch.equal(before, torch.get_rng_state())


def test_series_of_unequal_length_answer_as_they_do_alone() -> None:
    x, y = ragged()
    model = quick(epochs=25, learning_rate=0.03).fit(x, y)
    assert model.n_features_in_ == 2
    assert model.score(x, y) > 0.8
    together = model.predict_proba(x)
    alone = np.concatenate([model.predict_proba(one[None]) for one in x])
    np.testing.assert_allclose(together, alone, atol=1e-12)
    boxed = np.empty(len(x), object)
    boxed[:] = x
    np.testing.assert_array_equal(model.predict_proba(boxed), together)


def test_one_feature_may_be_left_out_of_the_shape() -> None:
    x, y = waves()
    flat, deep = quick(epochs=2).fit(x, y), quick(epochs=2).fit(x[..., None], y)
    np.testing.assert_array_equal(flat.predict_proba(x), deep.predict_proba(x[..., None]))
    np.testing.assert_array_equal(
        flat.predict_proba(x), flat.predict_proba(torch.from_numpy(x).unsqueeze(-1))
    )
    flat.predict(x[:, :5])  # series of another length


def test_the_scaler_knows_training_series_alone_and_not_what_pads_them() -> None:
    x, y = ragged()
    model = quick(epochs=1, validation=0).fit(x, y)
    steps = np.concatenate(x)
    np.testing.assert_allclose(model.scaler_.mean, steps.mean(0))
    np.testing.assert_allclose(model.scaler_.std, steps.std(0))
    held = quick(epochs=1, validation=0.4).fit(x, y)
    assert abs(held.scaler_.mean - model.scaler_.mean).max() > 1e-6
    plain = quick(epochs=1, normalise=False).fit(x, y)
    assert plain.scaler_.mean.tolist() == [0, 0]
    assert plain.scaler_.std.tolist() == [1, 1]


def test_early_stopping_keeps_the_best_weights_on_the_share_held_back() -> None:
    x, _ = waves()
    y = np.random.default_rng(3).integers(0, 2, len(x))  # nothing to learn: it gets worse
    model = quick(epochs=200, patience=3, learning_rate=0.05).fit(x, y)
    losses = [row["loss"] for row in model.history_ if row["split"] == "valid"]
    assert len(losses) < 200
    assert len(losses) - 1 - int(np.argmin(losses)) == 3
    assert model.valid_["loss"] == pytest.approx(min(losses), rel=1e-5)
    every = quick(epochs=6, validation=0).fit(x, y)
    assert [row["split"] for row in every.history_] == ["train"] * 6
    assert every.valid_ == {}


@pytest.mark.parametrize(("kind", "epochs"), [(RecurrentClassifier, 20), (RecurrentRegressor, 60)])
def test_numbers_have_more_patience_than_classes(
    kind: type[RecurrentEstimator], epochs: int
) -> None:
    x = np.random.default_rng(4).normal(size=(20, 3))  # nothing to learn
    model = quick(kind, hidden_size=4, epochs=300, learning_rate=0.1).fit(x, np.arange(20) % 2)
    losses = [row["loss"] for row in model.history_ if row["split"] == "valid"]
    assert len(losses) - 1 - int(np.argmin(losses)) == epochs
    assert len(losses) < 300


@pytest.mark.parametrize("clip", [None, 1.0])
def test_training_that_comes_to_nothing_begins_anew_with_a_smaller_rate(
    clip: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    x, y = waves(steps=30)
    model = quick(cell="nru", epochs=8, learning_rate=2.0, clip=clip, random_state=1).fit(x, y)
    assert model.learning_rate_ in (0.2, 0.02)
    assert "begins anew with a rate of 0.2" in caplog.text
    assert model.get_params()["learning_rate"] == 2.0
    assert model.valid_["loss"] < 2 * np.log(2) or model.learning_rate_ == 0.02
    losses = [row["loss"] for row in model.history_ if row["split"] == "valid"]
    assert len(losses) <= 8  # of the last attempt alone


@pytest.mark.parametrize(
    ("losses", "rate", "share"),
    [
        ([1.35], 0.5, 2),  # two classes, equal shares: log 2 = 0.69
        ([1.45, 1.35], 0.05, 2),
        ([1.45, 9.0, 5.0], 0.005, 2),
        ([0.68, 0.62], 0.05, 10),  # a tenth and nine tenths: 0.325
    ],
)
def test_a_loss_twice_that_of_not_looking_counts_as_nothing(
    losses: list[float], rate: float, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, rates = list(losses), []

    def attempt(self: Any, network: Any, train: Any, valid: Any, weights: Any, seed: int,
                rate: float, *rest: Any) -> Fitted:  # fmt: skip
        rates.append(rate)
        return Fitted(torch.nn.Identity(), [], {"loss": left.pop(0)})

    monkeypatch.setattr(RecurrentEstimator, "_attempt", attempt)
    model = quick(learning_rate=0.5).fit(waves()[0], np.arange(40) % share == 0)
    assert model.learning_rate_ == pytest.approx(rate)
    assert rates == pytest.approx([0.5, 0.05, 0.005][: len(losses)])


def test_a_time_limit_ends_training_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()  # a clock that goes on by one second whenever it is asked
    clock = SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr("attractor.estimators.base.time", clock)
    x, y = waves()
    model = quick(epochs=100_000, patience=None, seconds=40, batch_size=8).fit(x, y)
    assert model.history_[-1]["step"] == 40  # four updates an epoch, one question after each
    losses = [row["loss"] for row in model.history_ if row["split"] == "valid"]
    assert len(losses) == 10
    assert model.valid_["loss"] == pytest.approx(min(losses), rel=1e-5)


def test_a_regressor_tells_numbers_on_their_own_scale() -> None:
    x = RNG.normal(size=(80, 4))
    y = 500 + 40 * x[:, -1]
    model = quick(RecurrentRegressor, epochs=30, learning_rate=0.03).fit(x, y)
    said = model.predict(x)
    assert said.shape == (80,)
    assert model.score(x, y) == pytest.approx(r2_score(y, said))
    assert model.score(x, y) > 0.8
    both = np.stack([y, -3 * x[:, 0]], 1)
    two = quick(RecurrentRegressor, epochs=30, learning_rate=0.03).fit(x, both)
    assert two.predict(x).shape == (80, 2)
    assert r2_score(both, two.predict(x)) > 0.6
    assert two.target_std_[1] < two.target_std_[0] / 5


@pytest.mark.parametrize("cell", ["gru", "nru"])
def test_what_is_predicted_is_what_was_measured(cell: str) -> None:
    x, y = ragged()
    wanted = np.stack([30 * y + 7, np.arange(len(y))], 1)
    model = quick(RecurrentRegressor, cell=cell, epochs=3, num_layers=2).fit(x, wanted)
    assert len(model.held_) == 6
    said = model.predict([x[i] for i in model.held_])
    wrong = (said - wanted[model.held_]) / model.target_std_.numpy()
    assert (wrong**2).mean() == pytest.approx(model.valid_["loss"], rel=1e-4)
    named = quick(cell=cell, epochs=3, bidirectional=True).fit(x, y)
    assert np.bincount(y[named.held_]).tolist() == [round(0.2 * n) for n in np.bincount(y)]
    right = named.predict([x[i] for i in named.held_]) == y[named.held_]
    assert right.mean() == pytest.approx(named.valid_["accuracy"])


@pytest.mark.parametrize(
    ("cell", "options"),
    [("nru", {"memory_size": 16}), ("lstm", {"t_max": 12}), ("decaynet", None)],
)
def test_any_cell_with_its_options(cell: str, options: dict[str, Any] | None) -> None:
    x, y = waves()
    model = quick(cell=cell, options=options, epochs=2, num_layers=2).fit(x, y)
    assert model.predict(x).shape == (40,)
    assert len(model.network_.recurrent.cells) == 2


def test_learned_optimisers_decide_their_steps_themselves() -> None:
    x, y = waves()
    quick(optimiser="anytime", learning_rate=None, epochs=2).fit(x, y)
    quick(optimiser={"name": "sgd", "lr": 0.1}, learning_rate=None, epochs=2).fit(x, y)
    for spec in ("anytime", {"name": "sgd", "lr": 0.1}):
        with pytest.raises(InputError, match="learning_rate=None beside the optimiser"):
            quick(optimiser=spec).fit(x, y)


def test_it_works_in_pipelines_searches_and_cross_validation() -> None:
    x, y = waves(30, 8)
    line = make_pipeline(FunctionTransformer(lambda x: x / 100), quick(epochs=2))
    assert line.fit(x, y).predict(x).shape == (30,)
    search = GridSearchCV(quick(epochs=2), {"cell": ["rnn", "gru"], "hidden_size": [4]}, cv=2)
    assert search.fit(x, y).best_params_["hidden_size"] == 4
    scores = cross_val_score(quick(epochs=2), *ragged(), cv=3)
    assert np.isfinite(scores).all()
    assert clone(quick(clip=None)).get_params()["clip"] is None


def test_searches_over_numpys_numbers_give_models_that_are_saved(tmp_path: Path) -> None:
    x, y = waves(30, 8)
    grid = {"hidden_size": np.arange(4, 6), "bidirectional": np.array([True, False])}
    best = GridSearchCV(quick(epochs=np.int64(2)), grid, cv=2).fit(x, y).best_estimator_
    again = load(save(best.set_params(options={"dropout": np.float32(0)}), tmp_path))
    assert (again.predict_proba(x) == best.predict_proba(x)).all()
    assert again.get_params() == best.get_params()
    assert type(again.get_params()["hidden_size"]) is int
    assert type(again.get_params()["bidirectional"]) is bool
    odd = quick(
        num_layers=np.int64(2), batch_size=np.int64(8), epochs=np.int32(2), clip=np.float32(1),
        validation=np.float32(0.5), patience=np.int64(3), learning_rate=np.float32(0.01),
        seconds=np.float64(50), normalise=np.bool_(False),
    )  # fmt: skip
    assert load(save(odd.fit(x, y), tmp_path, force=True)).predict(x).shape == (30,)


def test_each_layer_may_have_its_own_size(tmp_path: Path) -> None:
    x, y = waves()
    for size, cell in (([8, 4], "gru"), ((8, 4), ["gru", "lstm"])):
        model = quick(cell=cell, hidden_size=size, epochs=1).fit(x, y)
        assert [one.hidden_size for one in model.network_.recurrent.cells] == [8, 4]
    model = quick(hidden_size=[8, 4], num_layers=2, epochs=1).fit(x, y)
    assert load(save(model, tmp_path)).get_params()["hidden_size"] == [8, 4]
    model = quick(hidden_size=(8, 4), epochs=1).fit(x, y)
    again = load(save(model, tmp_path, force=True))
    assert (again.predict_proba(x) == model.predict_proba(x)).all()
    assert len(quick(hidden_size=[8, 8], epochs=1).fit(x, y).network_.recurrent.cells) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RecurrentClassifier, RecurrentRegressor])
def test_scikit_learns_own_checks_with_the_defaults(kind: type[RecurrentEstimator]) -> None:
    found = check_estimator(kind(), expected_failed_checks=DO_NOT_APPLY, on_fail=None, on_skip=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    failed = {one["check_name"] for one in found if one["status"] == "xfail"}
    wanted = {*DO_NOT_APPLY} - ({"check_classifiers_train"} if "Reg" in kind.__name__ else set())
    assert failed == wanted  # none is in the table that passes


def test_it_separates_blobs_as_scikit_learns_check_of_classifiers_asks() -> None:
    x = RNG.normal(size=(90, 2)) + np.repeat([[0, 0], [3, -2], [6, -4]], 30, axis=0)
    y = np.repeat([7, -1, 3], 30)
    model = quick(epochs=25, hidden_size=16, learning_rate=0.02).fit(x, y)
    assert model.score(x, y) > 0.83


X, Y = waves(12, 6)
NAN = X.copy()
NAN[3, 4] = np.nan
BAD: dict[str, tuple[dict[str, Any], Any, Any, str]] = {
    "NaN": ({}, NAN, Y, "series 3 has NaN at step 4"),
    "infinite": ({}, np.where(np.isnan(NAN), np.inf, NAN), Y, "series 3 has inf at step 4"),
    "one class": ({}, X, ["a"] * 12, "at least two classes, but all are of the class a"),
    "batch": ({"batch_size": 64}, X, Y, "at least batch_size=64 series to train on, but got 10"),
    "answers": ({}, X, Y[:-1], "an answer for each series, but got 12 series and 11 answers"),
    "alone": ({}, X[:1], Y[:1], "at least two series to learn from, but got 1 sample"),
    "empty": ({}, X[:0], Y[:0], "at least one series of one step, but got .* shape .0, 6."),
    "four": ({}, np.zeros((12, 2, 2, 2)), Y, r"two or three dimensions, but .*\(12, 2, 2, 2\)"),
    "one": ({}, X[0], Y, r"dimensions, but .*\(6,\)\. Reshape your data, as X\[None\]"),
    "idle patience": (
        {"validation": 0, "patience": 3},
        X,
        Y,
        "no patience=3 beside validation=0, .* Leave",
    ),
    "no steps": ({}, [np.ones(3)] * 11 + [np.ones(0)], Y, "series 11 is empty"),
    "features": ({}, [np.ones((3, 2))] * 11 + [np.ones((3, 1))], Y, "the same features each"),
    "words": ({}, [["a", "b"]] * 12, Y, "expected series of numbers"),
    "cell": ({"cell": "lsmt"}, X, Y, "Did you mean 'lstm'"),
    "option": ({"options": {"nothing": 1}}, X, Y, "nothing"),
    "own": ({"options": {"hidden_size": 3}}, X, Y, "'hidden_size' among them"),
    "validation": ({"validation": 0.95}, X, Y, "validation to be from 0 to 0.9"),
    "small": ({"validation": 0.01}, X, Y, "keep a share of 0.01 for validation.*validation=0"),
    "seconds": ({"seconds": 0}, X, Y, "seconds to be .*above zero"),
    "patience": ({"patience": "never"}, X, Y, "patience to be a whole number, but got 'never'"),
    "rate": ({"learning_rate": -1}, X, Y, "learning_rate to be .*above zero"),
    "numbers": ({}, X, np.linspace(0, 1, 12), "Unknown label type.*Try RecurrentRegressor"),
    "seed": ({"random_state": "a"}, X, Y, "random_state to be a whole number, .* got 'a'"),
    "no series": ({}, [], [], "at least one series, but got none"),
    "class NaN": ({}, X, [np.nan] + [0.0, 1.0] * 5 + [1.0], "some are NaN"),
    "class None": ({}, X, ["a", None] * 6, "class of each series, but series 1 has none"),
    "class nan": ({}, X, np.array(["a", np.nan] * 6, object), "but series 1 has none"),
    "kinds": ({}, X, np.array(["a", 1] * 6, object), "classes of one kind, .* got 'a' and 1"),
    "two columns": ({}, X, np.zeros((12, 2)), "each series, but: y should be a 1d array"),
    "options": ({"options": "dropout=.2"}, X, Y, "a dictionary, but got 'dropout=.2'. Try opt"),
    "complex": ({}, X + 1j, Y, "real numbers, but: Complex data not supported. Give"),
    "complex rows": ({}, [*X[1:], X[0, :3] + 1j], Y, "but: Complex data not supported. Give"),
    "sizes": ({"hidden_size": [8, 0]}, X, Y, "hidden_size to be at least 1, but got 0"),
    "no sizes": ({"hidden_size": []}, X, Y, "hidden_size to have .* each layer, but got 0"),
    "layers": (
        {"hidden_size": [8, 8], "num_layers": 3},
        X,
        Y,
        "each layer, but got 2 and num_layers=3",
    ),
    "one each": (
        {},
        X,
        list("abcdefghijkl"),
        "a class of at least 3 series to keep a share of 0.2 .* largest of the 12 classes has 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str) -> None:
    options, x, y, said = BAD[case]
    with pytest.raises(InputError, match=said):
        quick(epochs=1, **options).fit(x, y)


def test_bad_answers_of_a_regression_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"a number for each series, but: .*NaN\. Try"):
        quick(RecurrentRegressor).fit(X, np.where(np.arange(12) == 2, np.nan, 1.0))
    with pytest.raises(InputError, match="could not convert .* Try RecurrentClassifier"):
        quick(RecurrentRegressor).fit(X, ["a", "b"] * 6)
    with pytest.raises(InputError, match="requires y to be passed"):
        quick(RecurrentRegressor).fit(X, None)


def test_other_features_than_it_was_fitted_on_are_refused() -> None:
    model = quick(epochs=1).fit(X, Y)
    with pytest.raises(InputError, match="X has 3 features, .* is expecting 1 features"):
        model.predict(np.zeros((2, 5, 3)))
    several = quick(epochs=1).fit(np.zeros((12, 6, 2)) + X[..., None], Y)
    with pytest.raises(InputError, match=r"X has 1 features, .* and one alone as X\[None\]\."):
        several.predict(np.zeros((6, 2)))
    with pytest.raises(NotFittedError):
        quick().predict(X)
