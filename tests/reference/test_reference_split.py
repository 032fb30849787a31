"""A sequence cut in two gives what the whole gives, for every cell and option."""

from typing import Any

import numpy as np
import pytest

from reference import dntm, eurnn, goru, gru, janet, lstm, nru, ntm, rnn, stat_ru, tardis
from reference.checks import rng
from reference.result import Run, random_weights


def cell_runs() -> list[Any]:
    """One (function, weights, options) per cell and option, all with 3 inputs."""
    g = rng(7)
    sizes = {"cells": 4, "cell_size": 3, "read_heads": 2, "write_heads": 2}
    heads = {"cell_size": 3, "read_heads": 2, "write_heads": 2}
    dntm_sizes = {"cells": 5, "address_size": 2, "content_size": 3}
    memory = {"cells": 3, "address_size": 2, "content_size": 4}
    runs: list[Any] = []

    def add(name: str, function: Any, shapes: Any, **options: Any) -> None:
        runs.append(pytest.param(function, random_weights(shapes, g), options, id=name))

    add("rnn", rnn.run, rnn.shapes(3, 5))
    norm = {"layer_norm": True, "activation": "relu"}
    add("rnn-norm", rnn.run, rnn.shapes(3, 5, layer_norm=True), **norm)
    add("lstm", lstm.run, lstm.shapes(3, 5))
    add("lstm-peep", lstm.run, lstm.shapes(3, 5, peepholes=True), peepholes=True)
    add("gru", gru.run, gru.shapes(3, 5))
    add("gru-after", gru.run, gru.shapes(3, 5, reset_after=True), reset_after=True)
    add("janet", janet.run, janet.shapes(3, 5))
    add("stat_ru", stat_ru.run, stat_ru.shapes(3, 5, statistics=4, recurrent=2))
    add("eurnn-fft", eurnn.run, eurnn.shapes(3, 8))
    add("eurnn-real", eurnn.run, eurnn.shapes(3, 8, real=True), real=True)
    add("eurnn-tunable", eurnn.run, eurnn.shapes(3, 5, capacity=3), capacity=3)
    add("goru-fft", goru.run, goru.shapes(3, 8))
    add("goru-tunable", goru.run, goru.shapes(3, 6, capacity=4), capacity=4)
    add("nru", nru.run, nru.shapes(3, 5, memory_size=8, heads=2))
    for option in ("relu_heads", "average_heads", "multiplicative"):
        add(f"nru-{option}", nru.run, nru.shapes(3, 5, memory_size=8, heads=2), **{option: True})
    for kind in ("lstm", "ff"):
        state = ntm.initial_state(5, **sizes)
        shapes = ntm.shapes(3, 5, **heads, controller=kind)
        add(f"ntm-{kind}", ntm.run, shapes, state=state, controller=kind)
    for kind in ("gru", "lstm", "ff"):
        state = dntm.initial_state(5, cells=5, content_size=3)
        shapes = dntm.shapes(3, 5, **dntm_sizes, controller=kind)
        for discrete in (False, True):
            options = {"state": state, "controller": kind, "discrete": discrete}
            add(f"dntm-{kind}-{discrete}", dntm.run, shapes, **options)
    state = tardis.initial_state(5, cells=3, content_size=4)
    add("tardis", tardis.run, tardis.shapes(3, 5, **memory, attention_size=6), state=state)
    return runs


@pytest.mark.parametrize(("function", "weights", "options"), cell_runs())
def test_split_sequence_gives_same_result(function: Any, weights: Any, options: Any) -> None:
    x = rng(1).standard_normal((9, 3))
    whole: Run = function(weights, x, **options)
    first: Run = function(weights, x[:4], **options)
    second: Run = function(weights, x[4:], **(options | {"state": first.state}))
    np.testing.assert_array_equal(whole.outputs, np.concatenate([first.outputs, second.outputs]))
    for name, value in whole.state.items():
        np.testing.assert_array_equal(value, second.state[name])
    assert np.all(np.isfinite(whole.outputs))
