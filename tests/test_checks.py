"""Checks of options."""

import json
import math

import numpy as np
import pytest

from attractor.checks import flag, instance, number, one_of, positive, whole
from attractor.errors import InputError
from attractor.reproduction.targets import target


def test_a_number_below_the_least_is_named() -> None:
    with pytest.raises(InputError, match=r"expected lag to be at least 1, but got 0\. Try lag=1\."):
        whole("lag", 0, 1)


@pytest.mark.parametrize("value", [1.5, "3", True, None])
def test_what_is_not_a_whole_number_is_named(value: object) -> None:
    with pytest.raises(InputError, match=f"expected lag to be a whole number, but got {value!r}"):
        whole("lag", value, 1)


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "1"])
def test_what_is_no_finite_number_above_zero_is_named(value: object) -> None:
    with pytest.raises(InputError, match=f"clip to be a finite number above zero.* got {value!r}"):
        positive("clip", value)


def test_a_word_in_place_of_a_truth_value_is_named() -> None:
    with pytest.raises(InputError, match="expected variable to be true or false, but got 'false'"):
        flag("variable", "false")


def test_an_unknown_choice_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"known order \(pixels, rows\).*mean 'rows'"):
        one_of("order", "row", ("rows", "pixels"))


def test_of_many_names_the_nearest_are_told_and_where_the_others_are() -> None:
    with pytest.raises(InputError) as told:
        target("tabel-6.1")
    assert str(told.value) == (
        "expected the name of a known target, but got 'tabel-6.1'. Did you mean 'table-6.1' or "
        "'table-6.6' or 'table-6.5'? `attractor reproduce list` shows all."
    )
    with pytest.raises(InputError, match="but got 'zzzzz'. `attractor reproduce list` shows all.$"):
        target("zzzzz")


@pytest.mark.parametrize(
    ("value", "got"), [("er", "'er'"), (int, "the class int"), (3.0, "3.0"), (None, "None")]
)
def test_what_is_of_another_kind_is_named(value: object, got: str) -> None:
    with pytest.raises(InputError, match=rf"expected seed to be a int, but got {got}\. Try 3\."):
        instance("seed", value, int, "3")


def test_numbers_of_numpy_are_taken_as_pythons_own() -> None:
    made = [
        whole("lag", np.int64(3), 1),
        whole("lag", np.uint8(3), 1),
        number("decay", np.float32(0.5), 0, 1),
        number("decay", np.int32(1), 0, 1),
        positive("lr", np.float64(0.5)),
        flag("variable", np.bool_(True)),
        flag("variable", np.array(False)),
    ]
    assert made == [3, 3, 0.5, 1, 0.5, True, False]
    assert [type(one) for one in made] == [int, int, float, int, float, bool, bool]
    assert json.dumps(made)


def test_truth_values_of_numpy_are_no_numbers() -> None:
    with pytest.raises(InputError, match="expected lag to be a whole number, but got True"):
        whole("lag", np.bool_(True), 1)
    with pytest.raises(InputError, match="expected lag to be a whole number, but got 1.5"):
        whole("lag", np.float64(1.5), 1)
    with pytest.raises(InputError, match=r"true or false, but got array\(\[ True, False\]\)"):
        flag("variable", np.array([True, False]))
