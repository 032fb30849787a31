"""The dynamic neural Turing machine against its NumPy reference, and what must hold of it."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor

from attractor.cells import DNTMCell, Recurrent, initial_baseline, reinforce_loss, unroll
from attractor.cells.base import Shared
from attractor.errors import InputError
from cells.against import agree, array
from cells.memory_weights import check_gradients, controller_weights, head_weights, scatter
from reference import dntm
from reference.result import Array

OPTIONS: list[dict[str, Any]] = [
    {},
    {"controller": "lstm"},
    {"controller": "ff"},
    {"nop": False},
    {"discrete": True},
    {"discrete": True, "controller": "lstm", "nop": False},
    {"controller": "rnn"},
    {"write_address": "before"},
    {"write_address": "before", "controller": "rnn", "discrete": True},
    {"hops": 3},
    {"hops": 2, "discrete": True, "nop": False, "write_address": "before"},
    {"hops": 2, "discrete": True, "controller": "lstm"},
]


def reference_weights(cell: Any) -> dict[str, Array]:
    address = {"k": cell.address_size + cell.content_size, "beta": 1, "gamma": 1}
    write = address | {"e": cell.content_size, "alpha": 1}
    named = {"A": array(cell.address), "W_m": array(cell.content_hh), "W_x": array(cell.content_ih)}
    named |= controller_weights(cell.controller)
    named |= head_weights(address, "r", cell.read_ih, cell.read_hh, cell.read_bias)
    named |= head_weights(write, "w", cell.write_ih, cell.write_hh, cell.write_bias)
    return named


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_reference(options: dict[str, Any], training: bool) -> None:
    sizes: dict[str, Any] = {"cells": 6, "address_size": 3, "content_size": 4}
    cell = scatter(DNTMCell(3, 7, dtype=torch.float64, **sizes, **options)).train(training)
    g = Generator().manual_seed(1)
    x = torch.randn(15, 2, 3, generator=g, dtype=torch.float64)
    prepared = cell.prepare(x)
    chosen = torch.randint(6, (15, 2, 2 * cell.hops), generator=g)
    sampled = training and cell.discrete
    assert isinstance(prepared.noise, Tensor) == sampled
    if sampled:  # noise that is large at the cell to be chosen
        noise = 1e4 * torch.nn.functional.one_hot(chosen, 6)
        prepared = prepared._replace(noise=noise.to(torch.float64))
    output, last, states = unroll(cell, prepared, cell.initial_state(2), return_states=True)
    weights = reference_weights(cell)
    settled: dict[str, Any] = {"controller": "gru", "discrete": False} | options
    for row in range(2):
        theirs = dntm.run(
            weights,
            array(x[:, row]),
            state=dntm.initial_state(7, cells=6, content_size=4),
            read_index=array(chosen[:, row, : cell.hops]) if sampled else None,
            write_index=array(chosen[:, row, cell.hops :]) if sampled else None,
            **settled,
        )
        agree(output[:, row], theirs.outputs)
        names = {"h": "h", "c": "c", "content": "C", "read_average": "v_r", "write_average": "v_w"}
        for ours, name in names.items():
            agree(getattr(states, ours)[:, row], theirs.steps[name])
            agree(getattr(last, ours)[row], theirs.state[name])
        if cell.discrete:
            agree(states.log_prob[:, row], theirs.steps["log_r"] + theirs.steps["log_w"])
        else:
            assert not states.log_prob.any()


@pytest.mark.parametrize("options", [*OPTIONS, {"lru": False}])
def test_gradients(options: dict[str, Any]) -> None:
    """In evaluation, where a choice is not random and its gradient needs no estimate."""
    layer = Recurrent("dntm", 3, 5, cells=4, content_size=3, dtype=torch.float64, **options)
    check_gradients(scatter(layer).eval(), 3)


def test_without_lru_the_heads_go_by_content() -> None:
    sizes: dict[str, Any] = {"cells": 6, "address_size": 3, "content_size": 4}
    cell = scatter(DNTMCell(3, 7, dtype=torch.float64, **sizes))
    plain = DNTMCell(3, 7, dtype=torch.float64, lru=False, **sizes)
    state = cell.state_dict()
    gamma = 8  # after 7 rows of the key and one of its strength
    for kind in ("read", "write"):
        for part in ("ih", "hh", "bias"):
            rows = state[f"{kind}_{part}"]
            state[f"{kind}_{part}"] = torch.cat([rows[:gamma], rows[gamma + 1 :]])
        with torch.no_grad():
            cell.get_parameter(f"{kind}_bias")[gamma] = -1e4
    plain.load_state_dict(state)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    ours, theirs = (unroll(c, c.prepare(x), c.initial_state(2)).output for c in (plain, cell))
    torch.testing.assert_close(ours, theirs)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), discrete=st.booleans(), cells=st.integers(2, 8))
def test_the_cell_for_no_operation_stays_empty(seed: int, discrete: bool, cells: int) -> None:
    g = Generator().manual_seed(seed)
    torch.manual_seed(seed)
    cell = DNTMCell(2, 5, cells=cells, discrete=discrete, generator=g)
    x = 3 * torch.randn(9, 2, 2, generator=g)
    _, last, states = unroll(cell, cell.prepare(x), cell.initial_state(2), return_states=True)
    assert not states.content[:, :, -1].any()
    assert (states.log_prob <= 0).all()
    assert last.content.isfinite().all()


def test_discrete_choices_write_one_cell() -> None:
    torch.manual_seed(0)
    cell = DNTMCell(2, 8, cells=6, discrete=True)
    x = torch.randn(12, 3, 2)
    _, _, states = unroll(cell, cell.prepare(x), cell.initial_state(3), return_states=True)
    before = torch.cat([torch.zeros_like(states.content[:1]), states.content[:-1]])
    changed = (states.content != before).any(-1).sum(-1)
    assert changed.max() == 1


def test_reinforce_trains_the_heads_of_discrete_addressing() -> None:
    torch.manual_seed(0)
    layer = Recurrent("dntm", 2, 8, cells=6, discrete=True)
    output, _, states = layer(torch.randn(7, 3, 2), return_states=True)
    heads = layer.get_parameter("cells.0.read_hh")
    (gradient,) = torch.autograd.grad(
        output.sum(), heads, retain_graph=True, materialize_grads=True, allow_unused=True
    )
    assert not gradient.any()
    loss, _ = reinforce_loss(
        states.log_prob[:, 0], -output.square().mean(-1), initial_baseline(), discount=0.9
    )
    (gradient,) = torch.autograd.grad(loss, heads)
    assert gradient.any()


def test_evaluation_is_repeatable_and_training_is_random() -> None:
    layer = Recurrent("dntm", 2, 8, cells=6, discrete=True)
    x = torch.randn(9, 2, 2)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="at least cells=2 .* but got cells=1. Try nop=False"):
        DNTMCell(3, 4, cells=1)
    with pytest.raises(InputError, match="known controller"):
        DNTMCell(3, 4, controller="mlp")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="write_address 'before' or 'after', but got 'now'"):
        DNTMCell(3, 4, write_address="now")  # type: ignore[arg-type]


def test_a_schedule_goes_from_soft_to_discrete_batch_by_batch() -> None:
    """Gulcehre et al. (2016): p = 1 / sqrt(1 + n), with a new n after every 50 batches."""
    torch.manual_seed(0)
    cell = DNTMCell(2, 4, cells=4, discrete=True, anneal=50)
    x = torch.zeros(1, 1, 2)
    drawn = torch.tensor([cell.prepare(x).soft.value.item() for _ in range(2000)])
    assert drawn[:50].all()  # the first are all soft
    for n in (1, 8, 39):
        part = drawn[50 * n : 50 * (n + 1)]
        assert 0.3 / (1 + n) ** 0.5 <= part.mean() <= 2 / (1 + n) ** 0.5
    expected = sum((1 + n) ** -0.5 for n in range(40)) / 40
    assert drawn.mean().item() == pytest.approx(expected, abs=0.03)
    assert cell.batches == 2000
    assert "batches" in cell.state_dict()
    again = DNTMCell(2, 4, cells=4, discrete=True, anneal=50)
    again.load_state_dict(cell.state_dict())
    assert again.batches == 2000
    assert cell.eval().prepare(x).soft.value is None
    assert cell.batches == 2000  # of training only


@pytest.mark.parametrize("soft", [0.0, 1.0])
def test_a_batch_of_a_schedule_is_all_soft_or_all_discrete(soft: float) -> None:
    options: dict[str, Any] = {"cells": 5, "hops": 2, "dtype": torch.float64}
    annealed = scatter(DNTMCell(3, 6, discrete=True, anneal=1, **options))
    plain = scatter(DNTMCell(3, 6, discrete=not soft, **options))
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    prepared = annealed.prepare(x)
    given = prepared._replace(soft=Shared(torch.tensor(soft, dtype=torch.float64)))
    known = prepared._replace(soft=Shared(None), noise=() if soft else prepared.noise)
    found = unroll(annealed, given, annealed.initial_state(2), return_states=True)
    expected = unroll(plain, known, plain.initial_state(2), return_states=True)
    torch.testing.assert_close(found, expected)


def test_wrong_hops_and_schedules() -> None:
    with pytest.raises(InputError, match="hops to be a whole number of at least 1, but got 0"):
        DNTMCell(3, 4, hops=0)
    with pytest.raises(InputError, match="discrete=True to go over to, but got anneal=5 without"):
        DNTMCell(3, 4, anneal=5)
    with pytest.raises(InputError, match="anneal to be a whole number of at least 1, but got 0"):
        DNTMCell(3, 4, anneal=0, discrete=True)
    layer = Recurrent("dntm", 3, 4, cells=4, discrete=True, anneal=5, checkpoint_every=2)
    with pytest.raises(InputError, match="prepares it as a whole"):
        layer(torch.randn(5, 2, 3))


def test_addresses_start_evenly_within_one() -> None:
    cell = DNTMCell(3, 4, cells=500, generator=Generator().manual_seed(0))
    drawn = cell.address.detach()
    assert 0.99 < float(drawn.abs().max()) <= 1
    assert float(drawn.std()) == pytest.approx(3**-0.5, rel=0.02)
    assert float(cell.read_hh.detach().abs().max()) <= 0.5  # weights: 1 over the root of the units
