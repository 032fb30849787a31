"""Which cell to take: equal sizes, equal time, and a test that knows about folds."""

import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import nn

from attractor.errors import InputError, RunError
from attractor.estimates import holm
from attractor.estimators.base import RecurrentEstimator
from attractor.estimators.classifier import RecurrentClassifier
from attractor.estimators.compare import Comparison, Trial, compare, ranked, sized
from attractor.estimators.paired import corrected_p, over_folds
from attractor.models.table import make_model
from attractor.tasks.series import Scaled
from attractor.training import Diverged

A = (0.81, 0.9, 0.77, 0.93, 0.88)
B = (0.74, 0.86, 0.79, 0.9, 0.8)


def trial(cell: str, scores: tuple[float, ...], seconds: float = 1.0, **more: object) -> Trial:
    return Trial(cell, 8, 100, scores, (seconds,) * len(scores), **more)  # type: ignore[arg-type]


def test_the_paired_test_is_scipys_with_the_wider_error_of_folds() -> None:
    plain = stats.ttest_rel(A, B)
    folds = len(A)
    t = plain.statistic * math.sqrt((1 / folds) / (1 / folds + 1 / (folds - 1)))
    assert corrected_p(A, B) == pytest.approx(2 * stats.t.sf(abs(t), folds - 1))
    assert corrected_p(B, A) == pytest.approx(corrected_p(A, B))
    assert corrected_p(A, B) > plain.pvalue
    assert corrected_p(A, A) == 1
    assert corrected_p(A, [one - 0.1 for one in A]) == 0


def test_the_interval_is_that_of_the_test() -> None:
    low, high = stats.t.interval(0.95, 4, np.mean(A), np.std(A, ddof=1) * math.sqrt(1 / 5 + 1 / 4))
    found = over_folds(A)
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2)


def test_holms_chances() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_the_best_comes_first_with_advice_that_says_how_sure_it_is() -> None:
    worse = tuple(one - 0.3 - 0.01 * i for i, one in enumerate(A))
    tried = [trial("rnn", worse), trial("gru", B), trial("nru", A, 4)]
    found = Comparison("accuracy", ranked(tried))
    assert [one.cell for one in found.trials] == ["nru", "gru", "rnn"]
    assert found.best.p is None
    chances = holm([corrected_p(A, B), corrected_p(A, worse), corrected_p(B, worse)])
    assert [one.p for one in found.trials[1:]] == pytest.approx(chances[:2])
    assert found.advice == (
        "Take nru: accuracy 0.858 ± 0.123 over 5 folds; gru cannot be told apart from it "
        "(p >= 0.05), and gru took 4.0 times less time."
    )
    sure = Comparison("accuracy", ranked([trial("nru", A), trial("rnn", worse)]))
    assert sure.advice.endswith("better than each of the others (p < 0.05).")
    failed = trial("irc", (), failed="the loss became nan")
    assert ranked([failed, trial("gru", B), trial("nru", A)])[-1] is failed
    with pytest.raises(RunError, match="all cells diverged .irc: the loss became nan"):
        ranked([failed])


def test_advice_says_where_nothing_was_learnt() -> None:
    tried = ranked([trial("nru", A), trial("gru", B)])  # 0.858 ± 0.123
    for measure, said in (("accuracy", "the most frequent class"), ("r2", "the mean")):
        found = Comparison(measure, tried, 0.74)
        assert found.advice == (
            f"Take nru: {measure} 0.858 ± 0.123 over 5 folds. This is not shown to be better than "
            f"to say {said} of every series (0.740): allow more time, or give more series."
        )
    assert "cannot be told apart" in Comparison("accuracy", tried, 0.73).advice


def test_the_baseline_knows_the_answers_of_other_folds_alone() -> None:
    y = np.array(["a"] * 15 + ["b"] * 9)
    x = np.random.default_rng(0).normal(size=(24, 4))
    quick: dict[str, Any] = {"cells": ["rnn", "gru"], "parameters": 50, "seconds": 0.1, "folds": 3}
    assert compare(x, y, **quick).baseline == pytest.approx(15 / 24)
    assert -0.5 < compare(x, x[:, 0] + 7, real=True, **quick).baseline < 0


def test_of_equal_cells_hardly_ever_one_is_told_to_be_worse() -> None:
    # folds that share four fifths of what they learn from, as Nadeau and Bengio take it
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        scores = math.sqrt(0.2) * rng.normal(size=(6, 1)) + math.sqrt(0.8) * rng.normal(size=(6, 5))
        found = ranked([trial(str(cell), tuple(one)) for cell, one in enumerate(scores)])
        wrong += any(one.p is not None and one.p < 0.05 for one in found)
    assert wrong / 400 <= 0.05  # 0.09 if the best had been chosen before


@pytest.mark.parametrize("cell", ["lstm", "nru", "eurnn", "fastgrnn"])
def test_networks_have_about_as_many_parameters(cell: str) -> None:
    def make(units: int) -> nn.Module:
        return make_model({"cell": cell, "hidden_size": units}, [3], 4)

    units, count = sized(make, 3000)
    assert count == sum(p.numel() for p in make(units).parameters())
    beside = []
    for other in (units // 2, units - 1, units + 1, units * 2):  # of eurnn, powers of two alone
        try:
            beside.append(sum(p.numel() for p in make(other).parameters()))
        except InputError:
            continue
    assert all(abs(one - 3000) >= abs(count - 3000) for one in beside)


def test_cells_take_turns_on_folds_of_every_class() -> None:
    y = np.array([0, 0, 0, 1] * 6)
    x = np.random.default_rng(0).normal(size=(24, 4, 2)) + 4 * y[:, None, None]
    told: list[tuple[int, int, str]] = []
    found = compare(
        x, y, cells=["rnn", "gru"], parameters=80, seconds=0.1, folds=3,
        on_trial=lambda *one: told.append(one),
    )  # fmt: skip
    assert [one[2] for one in told[:3]] == ["rnn, fold 1", "gru, fold 1", "rnn, fold 2"]
    assert told[-1][:2] == (6, 6)
    assert {len(one.scores) for one in found.trials} == {3}
    assert found.measure == "accuracy"
    assert all(0.1 < one.seconds[0] < 20 for one in found.trials)
    rows = [one[:3] for one in x]  # a list, and numbers
    real = compare(rows, 3.0 * y, cells=["rnn", "gru"], real=True, parameters=80, seconds=0.1,
                   folds=2)  # fmt: skip
    assert real.measure == "r2"


def test_the_seed_decides_the_folds_and_each_fold_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[int, list[float]]] = []

    def fit(self: Any, x: Any, y: Any) -> Any:
        seen.append((self.random_state, x[:, 0].tolist()))
        return self

    monkeypatch.setattr(RecurrentClassifier, "fit", fit)
    monkeypatch.setattr(RecurrentClassifier, "score", lambda *_: 0.5)
    monkeypatch.setattr(sys.modules[compare.__module__], "_warm", lambda *_: None)
    x = np.arange(24.0)[:, None] * np.ones(4)
    for seed in (0, 7):
        compare(x, np.arange(24) % 2, cells=["rnn", "gru"], folds=2, random_state=seed)
    assert [one[0] for one in seen] == [0, 0, 1, 1, 7, 7, 8, 8]
    assert seen[0] == seen[1]  # all cells the same
    assert seen[0][1] != seen[4][1]


def test_a_cell_that_diverged_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def fit(self: Any, x: Any, y: Any) -> Any:
        seen.append(self.cell)
        if self.cell == "gru":
            raise Diverged("the loss became nan", "Try another.")
        return self

    monkeypatch.setattr(RecurrentClassifier, "fit", fit)
    monkeypatch.setattr(RecurrentClassifier, "score", lambda *_: 0.5)
    monkeypatch.setattr(sys.modules[compare.__module__], "_warm", lambda *_: None)
    found = compare(np.ones((24, 4)), np.arange(24) % 2, cells=["gru", "rnn"], folds=3)
    assert seen == ["gru", "rnn", "rnn", "rnn"]
    assert found.trials[-1].failed == "the loss became nan"


@pytest.mark.parametrize("cells", [["rnn", "gru"], ["gru", "rnn"]])
def test_what_a_cell_does_once_is_charged_to_none(
    cells: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, warm = [0], set()

    def train(self: Any, data: Any, groups: Any, outputs: int, *rest: Any) -> Any:
        clock[0] += 1 if self.cell in warm else 50  # imports and allocations
        warm.add(self.cell)
        self.network_ = self._network(data.x.shape[2], outputs, 0)
        self.n_features_in_, self.scaler_ = data.x.shape[2], Scaled.of(data)
        return self

    monkeypatch.setattr(RecurrentEstimator, "_train", train)
    now = SimpleNamespace(monotonic=lambda: clock[0])
    monkeypatch.setattr(sys.modules[compare.__module__], "time", now)
    y = np.arange(24) % 2
    found = compare(np.zeros((24, 4)) + y[:, None], y, cells=cells, parameters=80, folds=2)
    assert {one.cell: one.seconds for one in found.trials} == {"rnn": (1, 1), "gru": (1, 1)}


def test_bad_comparisons_are_one_sentence() -> None:
    x, y = np.zeros((12, 4)), np.arange(12) % 2
    with pytest.raises(InputError, match="at least two different cells to compare, but got gru"):
        compare(x, y, cells=["gru"])
    with pytest.raises(InputError, match="at least 20 series for 5 folds, but got 12"):
        compare(x, y)
    with pytest.raises(InputError, match="Did you mean 'gru'"):
        compare(x, y, cells=["gru2", "lstm"], folds=2)
    with pytest.raises(InputError, match="folds to be at least 2"):
        compare(x, y, folds=1)


def test_series_and_answers_may_be_whatever_an_estimator_takes() -> None:
    y = np.arange(24) % 2
    x = np.random.default_rng(0).normal(size=(24, 4)) + 4 * y[:, None]
    ragged = tuple(one[: 3 + i % 2] for i, one in enumerate(x))
    given = [(x, y.tolist()), (ragged, y), (torch.tensor(x), y), (Table(x), y.astype(str).tolist())]
    for series, answers in given:
        found = compare(series, answers, cells=["rnn", "gru"], parameters=50, seconds=0.1, folds=2)
        assert found.best.estimate.mean > 0.3
    both = np.stack([y, 1 - y], 1)
    real = compare(x, both.tolist(), cells=["rnn", "gru"], real=True, parameters=50, seconds=0.1,
                   folds=2)  # fmt: skip
    assert {len(one.scores) for one in real.trials} == {2}


class Table:
    """A table of pandas, as far as it matters: an array that is indexed by the names of columns."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values, self.shape = values, values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: object) -> object:
        raise KeyError(name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        return np.array(self.values, dtype)


Y = np.arange(24) % 2
BAD: dict[str, tuple[Any, str]] = {
    "more series": (Y[:20], "an answer for each series, but got 24 series and 20 answers"),
    "all different": (np.arange(24), "a class of at least 6 series for 2 folds, but the largest"),
    "few of each": (np.arange(24) // 4, "of at least 6 series for 2 folds, .* class 0, has 4"),
    "one member": (np.array(["b"] + ["a"] * 23), "two classes of at least two .* but got 23 of a"),
    "one class": (["a"] * 24, "at least two classes of at least two series each, but got 24 of a"),
    "numbers": (np.linspace(0, 1, 24), "Unknown label type: continuous.* Try real=True"),
    "none": (None, "requires y to be passed"),
    "missing": (["a", None] * 12, "the class of each series, but series 1 has none"),
    "kinds": (np.array(["a", 1] * 12, object), "classes of one kind, .* got 'a' and 1"),
    "columns": (np.zeros((24, 2)), "the class of each series, but: y should be a 1d array"),
}


@pytest.mark.parametrize("case", BAD)
def test_answers_that_cannot_be_compared_on_are_one_sentence(case: str) -> None:
    y, said = BAD[case]
    with pytest.raises(InputError, match=said) as told:
        compare(np.zeros((24, 4)), y, cells=["rnn", "gru"], parameters=50, seconds=0.1, folds=2)
    assert "\n" not in str(told.value)


def test_a_class_with_one_member_is_no_matter_beside_two_others() -> None:
    y = np.array(["a", "b"] * 11 + ["c"])
    x = np.random.default_rng(0).normal(size=(23, 4))
    found = compare(x, y, cells=["rnn", "gru"], parameters=50, seconds=0.1, folds=2)
    assert {len(one.scores) for one in found.trials} == {2}
