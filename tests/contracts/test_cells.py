"""What every cell of the table promises."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence
from torch.utils._pytree import tree_leaves, tree_map

import attractor
from attractor.cells import CELLS, LAYERS, Recurrent, unroll
from contracts.cells import (
    FORMS,
    HIDDEN_SIZE,
    INPUT_SIZE,
    NAMES,
    OPTIONS,
    inputs,
    make_cell,
    make_layer,
    seeded,
)

close = torch.testing.assert_close
cells = pytest.mark.parametrize("name", NAMES)
tracing = pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves


@cells
def test_split_sequence_gives_same_output(name: str) -> None:
    cell = make_cell(name).eval()
    x = inputs(7, 2)
    whole, last, _ = unroll(cell, cell.prepare(x), cell.initial_state(2))
    first, state, _ = unroll(cell, cell.prepare(x[:4]), cell.initial_state(2))
    second, end, _ = unroll(cell, cell.prepare(x[4:]), state)
    close(whole, torch.cat([first, second]))
    close(tree_leaves(last), tree_leaves(end))


@cells
def test_forward_is_one_step(name: str) -> None:
    cell = make_cell(name).eval()
    x = inputs(2, 4)
    whole, last, _ = unroll(cell, cell.prepare(x), cell.initial_state(4))
    state = cell.initial_state(4)
    _, state = cell(x[0], state)
    output, state = cell(x[1], state)
    close(whole[1], output)
    close(tree_leaves(last), tree_leaves(state))


@cells
def test_what_all_steps_share_is_exact(name: str) -> None:
    """Step by step there is nothing to share, so a cell computes it anew, or in another way."""
    cell = make_cell(name).eval().double()
    x = inputs(7, 2).double()
    whole = unroll(cell, cell.prepare(x), cell.initial_state(2))
    outputs, state = [], cell.initial_state(2)
    for step in x:
        output, state = cell(step, state)
        outputs.append(output)
    close(whole.output, torch.stack(outputs), rtol=1e-12, atol=1e-12)
    close(tree_leaves(whole.state), tree_leaves(state), rtol=1e-12, atol=1e-12)


@cells
@pytest.mark.parametrize("parametrise", [weight_norm, spectral_norm])
def test_weights_can_be_parametrised(name: str, parametrise: Any) -> None:
    layer = make_layer(name, dtype=torch.float64).eval()
    x = inputs(4, 2, dtype=torch.float64)
    before = layer(x)[0]
    matrices = [n for n, p in layer.named_parameters() if p.dim() == 2]
    for key in matrices:
        owner, _, leaf = key.rpartition(".")
        parametrise(layer.get_submodule(owner), leaf)
    output, _ = layer(x)
    assert torch.allclose(output, before) == (parametrise is weight_norm)
    output.sum().backward()
    trained = [p.grad for n, p in layer.named_parameters() if "parametrizations" in n]
    assert any(grad is not None and grad.any() for grad in trained)


@cells
def test_forward_without_a_state_starts_afresh(name: str) -> None:
    cell = make_cell(name).eval()
    x = inputs(4)
    close(cell(x), cell(x, cell.initial_state(4)))


@cells
def test_empty_batch(name: str) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True)
    output, state, states = layer(inputs(3, 0), return_states=True)
    assert output.shape == (3, 0, layer.output_size)
    assert all(leaf.shape[:2] == (4, 0) for leaf in tree_leaves(state))
    assert all(leaf.shape[:3] == (3, 4, 0) for leaf in tree_leaves(states))
    output.sum().backward()
    assert not any(p.grad is not None and p.grad.any() for p in layer.parameters())


@cells
def test_batch_rows_are_independent(name: str) -> None:
    layer = make_layer(name).eval()
    x = inputs(6, 3)
    together, state = layer(x)
    for row in range(3):
        alone, own = layer(x[:, row : row + 1])
        close(together[:, row : row + 1], alone)
        close([leaf[:, row : row + 1] for leaf in tree_leaves(state)], tree_leaves(own))


@cells
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_is_each_sequence_alone(
    name: str, bidirectional: bool, enforce_sorted: bool
) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=bidirectional).eval()
    lengths = [6, 5, 2, 2, 1] if enforce_sorted else [2, 5, 1, 6, 2]
    sequences = [inputs(n, seed=10 + i) for i, n in enumerate(lengths)]
    start = tree_map(lambda s: 0.1 + s, layer(inputs(1, len(lengths)))[1])
    packed = pack_sequence(sequences, enforce_sorted=enforce_sorted)
    output, state, states = layer(packed, start, return_states=True)
    assert isinstance(output, PackedSequence)
    for row, (x, y) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        own_start = tree_map(lambda s, r=row: s[:, r : r + 1], start)
        alone, own, every = layer(x[:, None], own_start, return_states=True)
        close(y, alone[:, 0])
        close([leaf[:, row : row + 1] for leaf in tree_leaves(state)], tree_leaves(own))
        for ragged, rectangular in zip(tree_leaves(states), tree_leaves(every), strict=True):
            close(ragged[: len(x), :, row], rectangular[:, :, 0])
            assert not ragged[len(x) :, :, row].any()


@cells
def test_bidirectional_is_two_runs(name: str) -> None:
    both = make_layer(name, bidirectional=True).eval()
    x = inputs(5, 2)
    output, state = both(x)
    for direction, cell in enumerate(both.cells):
        one = make_layer(name).eval()
        one.cells[0].load_state_dict(cell.state_dict())
        alone, own = one(x.flip(0) if direction else x)
        alone = alone.flip(0) if direction else alone
        size = alone.shape[-1]
        close(output[..., direction * size : (direction + 1) * size], alone)
        close([leaf[direction] for leaf in tree_leaves(state)], [s[0] for s in tree_leaves(own)])


@cells
def test_stacked_is_one_after_the_other(name: str) -> None:
    layer = make_layer(name, num_layers=2).eval()
    x = inputs(5, 2)
    output, state = layer(x)
    stack: Any = layer.cells
    for index, cell in enumerate(stack):
        x, own, _ = unroll(cell, cell.prepare(x), cell.initial_state(2))
        close([leaf[index] for leaf in tree_leaves(state)], tree_leaves(own))
    close(output, x)


@cells
def test_shapes_are_those_of_torch(name: str) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True, batch_first=True).eval()
    x = inputs(4, 5)
    output, state, states = layer(x, return_states=True)
    assert output.shape == (4, 5, layer.output_size)
    assert all(leaf.shape[:2] == (4, 4) for leaf in tree_leaves(state))
    assert all(leaf.shape[:3] == (5, 4, 4) for leaf in tree_leaves(states))
    alone, own, every = layer(x[0], return_states=True)
    close(alone, output[0])
    close([leaf[:, 0] for leaf in tree_leaves(state)], tree_leaves(own))
    close([leaf[:, :, 0] for leaf in tree_leaves(states)], tree_leaves(every))
    again, _ = layer(x[0], tree_map(torch.zeros_like, own))
    stack: Any = layer.cells
    fresh = tree_leaves([cell.initial_state(1) for cell in stack])
    if not any(leaf.any() for leaf in fresh):
        close(again, alone)


@cells
def test_states_of_every_step_end_in_the_last(name: str) -> None:
    layer = make_layer(name, num_layers=2).eval()
    _, state, states = layer(inputs(6, 2), return_states=True)
    close([leaf[-1] for leaf in tree_leaves(states)], tree_leaves(state))
    shorter = layer(inputs(6, 2)[:3])[1]
    close([leaf[2] for leaf in tree_leaves(states)], tree_leaves(shorter))


@cells
def test_gradcheck_twice(name: str) -> None:
    layer = make_layer(name, dtype=torch.float64).eval()
    names, weights = zip(*layer.named_parameters(), strict=True)
    x = inputs(3, 2, dtype=torch.float64).requires_grad_()

    def run(x: Tensor, *values: Tensor) -> Any:
        given = dict(zip(names, values, strict=True))
        output, state = torch.func.functional_call(layer, given, (x,))
        return output, *(leaf for leaf in tree_leaves(state) if leaf.requires_grad)

    arguments = (x, *(w.detach().requires_grad_() for w in weights))
    assert torch.autograd.gradcheck(run, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, arguments, fast_mode=True)


@cells
def test_vmap_over_networks_and_grad(name: str) -> None:
    layers = [make_layer(name, seed=seed).eval() for seed in range(3)]
    x = inputs(4, 2)
    stacked, buffers = torch.func.stack_module_state(layers)

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        output, _ = torch.func.functional_call(layers[0], (parameters, buffers), (x,))
        loss: Tensor = output.square().sum()
        return loss

    grads = torch.func.vmap(torch.func.grad(loss))(stacked, buffers)
    for index, layer in enumerate(layers):
        layer(x)[0].square().sum().backward()
        for key, parameter in layer.named_parameters():
            expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            close(grads[key][index], expected, atol=1e-4, rtol=1e-4)


@cells
def test_autocast(name: str) -> None:
    layer = make_layer(name).eval()
    x = inputs(6, 2)
    exact, state = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, low = layer(x)
    assert [leaf.dtype for leaf in tree_leaves(low)] == [leaf.dtype for leaf in tree_leaves(state)]
    assert (output.float() - exact).abs().max() < 0.05 * exact.abs().max() + 0.05
    output.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@cells
@pytest.mark.parametrize("training", [False, True])
def test_autocast_leaves_the_type_of_the_output(name: str, training: bool) -> None:
    layer = make_layer(name).train(training)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = layer(inputs(3, 2))
    assert output.dtype == torch.float32


@cells
def test_copies_answer_alike(name: str) -> None:
    layer = make_layer(name, num_layers=2).eval()
    x = inputs(4, 2)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        close(other(x), layer(x))
    fresh = make_layer(name, seed=5, num_layers=2).eval()
    fresh.load_state_dict(layer.state_dict())
    close(fresh(x), layer(x))


@cells
def test_layer_by_name(name: str) -> None:
    class_name = CELLS[name].__name__.removesuffix("Cell")
    named: Any = LAYERS[class_name]
    assert getattr(attractor, class_name) == named
    assert Recurrent in named.__mro__
    options: dict[str, Any] = {"generator": seeded()} | OPTIONS.get(name, {})
    layer = named(INPUT_SIZE, HIDDEN_SIZE, **options)
    options["generator"] = seeded()
    same = Recurrent(name, INPUT_SIZE, HIDDEN_SIZE, **options)
    close(dict(layer.state_dict()), dict(same.state_dict()))
    assert type(pickle.loads(pickle.dumps(layer))) is named


NEUTRAL = {"goru": {"modrelu_bias": -0.001}}
"""Biases with which a cell is as without, where that is not zero."""


@cells
def test_without_biases_is_with_biases_that_do_nothing(name: str) -> None:
    without = make_layer(name, bias=False, num_layers=2, dtype=torch.float64).eval()
    assert not [key for key in without.state_dict() if "bias" in key]
    with_biases = make_layer(name, num_layers=2, dtype=torch.float64).eval()
    values = NEUTRAL.get(name, {})
    state = with_biases.state_dict()
    for key, tensor in state.items():
        if "bias" in key:
            tensor.fill_(values.get(key.rpartition(".")[2], 0.0))
    assert state.keys() >= without.state_dict().keys()
    with_biases.load_state_dict(state | without.state_dict())
    x = inputs(5, 2, dtype=torch.float64)
    close(without(x), with_biases(x))
    by_name: Any = LAYERS[CELLS[name].__name__.removesuffix("Cell")]
    named = by_name(INPUT_SIZE, HIDDEN_SIZE, 2, bias=False, **OPTIONS.get(name, {}))
    assert list(named.state_dict()) == list(without.state_dict())


@cells
def test_same_generator_gives_same_weights(name: str) -> None:
    made: Any = CELLS[name]
    options = OPTIONS.get(name, {})
    one, same, other = (
        made(INPUT_SIZE, HIDDEN_SIZE, generator=seeded(seed), **options).state_dict()
        for seed in (3, 3, 4)
    )
    before = torch.get_rng_state()
    made(INPUT_SIZE, HIDDEN_SIZE, generator=seeded(), **options)
    assert torch.equal(before, torch.get_rng_state()), "drew from torch's global generator"
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


@cells
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_honoured(name: str, dtype: torch.dtype) -> None:
    layer = make_layer(name, dtype=dtype).eval()
    assert all(p.dtype == dtype for p in layer.parameters())
    output, state = layer(inputs(3, 2, dtype=dtype))
    assert output.dtype == dtype
    assert all(leaf.dtype == dtype for leaf in tree_leaves(state) if leaf.is_floating_point())


@cells
def test_device_is_honoured(name: str) -> None:
    """The meta device stands for any device other than the CPU: nothing may be made elsewhere."""
    options = OPTIONS.get(name, {})
    layer = Recurrent(name, INPUT_SIZE, HIDDEN_SIZE, device="meta", generator=seeded(), **options)
    assert all(t.is_meta for t in layer.state_dict().values())
    output, state = layer.eval()(inputs(3, 2).to("meta"))
    assert output.is_meta
    assert all(leaf.is_meta for leaf in tree_leaves(state))


@cells
def test_gradients_reach_every_parameter_and_the_first_input(name: str) -> None:
    layer = make_layer(name)
    x = inputs(5, 2).requires_grad_()
    output, state = layer(x)
    (output[-1].sum() + sum(leaf.sum() for leaf in tree_leaves(state))).backward()
    assert x.grad is not None
    assert x.grad[0].any()
    assert [n for n, p in layer.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_other_forms_hold_the_contract(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPTIONS, name, OPTIONS.get(name, {}) | options)
    test_split_sequence_gives_same_output(name)
    test_batch_rows_are_independent(name)
    test_packed_is_each_sequence_alone(name, bidirectional=True, enforce_sorted=False)
    test_vmap_over_networks_and_grad(name)
    test_gradients_reach_every_parameter_and_the_first_input(name)
    test_autocast_leaves_the_type_of_the_output(name, training=True)
