"""Scales, types and answers at the edge of what estimators take."""

from typing import Any

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.estimators import RecurrentClassifier, RecurrentRegressor, compare
from estimators.test_estimators import RNG, quick, ragged, waves


@pytest.mark.parametrize("scale", [1e-300, 1e-13, 1e13])
def test_scores_are_the_same_at_any_scale_and_offset(scale: float) -> None:
    x, y = waves()
    proba = quick(epochs=3).fit(x, y).predict_proba(x)
    told = quick(epochs=3).fit(x * scale, y).predict_proba(x * scale)
    np.testing.assert_allclose(told, proba, atol=1e-4)
    far = quick(epochs=3).fit(x + 1e9, y).predict_proba(x + 1e9)
    np.testing.assert_allclose(far, proba, atol=1e-4)
    still = np.stack([x, np.full_like(x, 0.1 * scale)], 2)
    assert quick(epochs=1).fit(still, y).scaler_.std[1] == 1


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_numbers_of_any_size_are_told(scale: float) -> None:
    x = RNG.normal(size=(40, 4))
    y = 5 + x[:, -1]
    said = quick(RecurrentRegressor, epochs=3).fit(x, y).predict(x)
    again = quick(RecurrentRegressor, epochs=3).fit(x, y * scale).predict(x)
    np.testing.assert_allclose(again / scale, said, rtol=1e-4)


def test_a_fit_that_is_refused_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("refused while training")

    x, y = waves()
    models = quick(epochs=1).fit(x, y), quick(RecurrentRegressor, epochs=1).fit(x, 1.0 * (y > "g"))
    before = [(model.predict(x), {**vars(model)}) for model in models]
    monkeypatch.setattr("attractor.estimators.base.fit", refuse)
    for model, (said, attributes) in zip(models, before, strict=True):
        with pytest.raises(InputError, match="refused while training"):
            model.fit(ragged(40)[0], np.arange(40) % 4)
        assert vars(model) == attributes
        assert (model.predict(x) == said).all()


def test_doubles_by_default_change_nothing_about_the_type_of_a_network() -> None:
    x, y = waves()
    torch.set_default_dtype(torch.float64)
    try:
        for kind in (RecurrentClassifier, RecurrentRegressor):
            model = quick(kind, epochs=1).fit(x, y == "slow")
            assert {p.dtype for p in model.network_.parameters()} == {torch.float32}
            assert model.predict(x).shape == (40,)
    finally:
        torch.set_default_dtype(torch.float32)


def masked(x: Any) -> Any:
    return np.ma.masked_where(np.arange(x.size).reshape(x.shape) == 5, x)


class Table:
    """Whatever turns into an array of dates only when it is asked to, as a table of pandas does."""

    shape = (4, 3)

    def __len__(self) -> int:
        return 4

    def __array__(self, *_: Any, **__: Any) -> Any:
        return DAYS.reshape(4, 3)


DAYS = np.arange("2020-01-01", "2020-01-13", dtype="M8[D]")
ONES = np.ones((12, 3))
BAD_SERIES: dict[str, tuple[Any, str]] = {
    "masked": (masked(ONES), "some of their values are masked. Fill in"),
    "a masked row": ([*ONES[1:], masked(np.ones(7))], "some of their values are masked"),
    "dates": (DAYS.reshape(4, 3), "of numbers, but got dates"),
    "spans": (np.diff(DAYS).reshape(1, 11), "of numbers, but got dates"),
    "rows of dates": ([DAYS, DAYS[:3]], "of numbers, but got dates"),
    "a table of dates": (Table(), "of numbers, but got dates"),
}


@pytest.mark.parametrize("case", BAD_SERIES)
def test_series_that_would_lose_their_meaning_are_refused(case: str) -> None:
    x, said = BAD_SERIES[case]
    with pytest.raises(InputError, match=said):
        quick().fit(x, np.arange(len(x)) % 2)


def test_a_mask_that_hides_nothing_is_no_mistake() -> None:
    x, y = waves()
    quick(epochs=1).fit(np.ma.masked_invalid(x), np.ma.masked_invalid(np.arange(len(y)) % 2))


def test_answers_that_would_lose_their_meaning_are_refused() -> None:
    y = np.ma.masked_equal(np.arange(12) % 2, 0)
    for kind in (RecurrentClassifier, RecurrentRegressor):
        with pytest.raises(InputError, match="an answer for each series, but some are masked"):
            quick(kind).fit(ONES, y)
    with pytest.raises(InputError, match=r"a number for each series, but got dates .datetime64\[D"):
        quick(RecurrentRegressor).fit(ONES, DAYS)


def test_numbers_as_classes_are_refused_in_one_sentence_that_names_the_regressor() -> None:
    with pytest.raises(InputError, match="Try RecurrentRegressor if they are numbers, or validat"):
        quick().fit(np.ones((40, 3)), np.arange(40))
    with pytest.raises(InputError, match=r"Try real=True if they are numbers\.$"):
        compare(np.ones((40, 3)), np.arange(40), cells=["rnn", "gru"])
    few = np.repeat(np.arange(4), 5)
    with pytest.raises(InputError, match=r"largest of the 4 classes has 5 .* Try validation=0\.$"):
        quick(validation=0.05).fit(np.ones((20, 3)), few)


def test_own_options_are_told_whose_they_are() -> None:
    x, y = waves()
    with pytest.raises(InputError, match=r"Try RecurrentClassifier\(hidden_size=\.\.\.\)\.$"):
        quick(options={"hidden_size": 3}).fit(x, y)
    with pytest.raises(InputError, match=r"'bound' among them\. Leave it out\.$"):
        quick(options={"bound": 3}).fit(x, y)


BAD_COMPARISONS: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"random_state": -1}, "random_state to be at least 0, but got -1"),
    "none": ({"random_state": None}, "random_state to be a whole number, but got None"),
    "word": ({"random_state": "a"}, "random_state to be a whole number, but got 'a'"),
    "last seed": ({"random_state": 2**32 - 1}, "random_state to be at most 4294967291, .* Try ra"),
    "parameters": ({"parameters": 10**12}, "parameters to be at most 10000000, .*=10000\\."),
    "cell": ({"cells": ["lsmt", "gru"]}, "Did you mean 'lstm'"),
}


@pytest.mark.parametrize("case", BAD_COMPARISONS)
def test_bad_arguments_of_a_comparison_are_one_sentence(case: str) -> None:
    options, said = BAD_COMPARISONS[case]
    with pytest.raises(InputError, match=said):
        compare(*waves(), **options)
