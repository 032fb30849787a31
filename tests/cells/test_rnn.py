from typing import Any

import numpy as np
import pytest
import torch

from attractor.cells import Recurrent, RNNCell, penalty, weight_drop
from attractor.continual import STRATEGIES, Learner
from attractor.errors import InputError
from attractor.meta.learners import _Judged
from attractor.models import make_model
from attractor.tasks import TASKS
from attractor.training import Plan, Supervised
from cells.against import agree, array, check, random_cell
from contracts.cells import seeded
from contracts.tiny import streamed
from reference import rnn


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_equals_the_reference(activation: str, layer_norm: bool) -> None:
    cell = random_cell(RNNCell, 3, 5, nonlinearity=activation, layer_norm=layer_norm)
    weights = {"U": array(cell.weight_ih), "W": array(cell.weight_hh)}
    if layer_norm:
        weights |= {"gamma": array(cell.norm.weight), "beta": array(cell.norm.bias)}
        weights["b"] = array(torch.zeros(5))
    else:
        weights["b"] = array(cell.bias)
    options: dict[str, Any] = {"activation": activation, "layer_norm": layer_norm}
    check(cell, rnn.run, weights, {"h": 5}, lambda h: h, **options)


@pytest.mark.parametrize("margin", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("initial", ["uniform", "orthogonal"])
def test_singular_values_within_a_margin(margin: float, initial: Any) -> None:
    cell = random_cell(RNNCell, 3, 5, margin=margin, recurrent_init=initial, orthogonality=0.3)
    with torch.no_grad():
        cell.weight_hh.mul_(4)
    raw = array(cell.weight_hh)
    W = rnn.recurrent_matrix(
        array(cell.left), array(cell.right), raw, raw, np.diagonal(raw), margin
    )
    agree(cell.matrix(), W)
    values = torch.linalg.svdvals(cell.matrix())
    assert (values - 1).abs().max() <= margin + 1e-12
    weights = {"U": array(cell.weight_ih), "W": W, "b": array(cell.bias)}
    check(cell, rnn.run, weights, {"h": 5}, lambda h: h)
    agree(cell.penalty(), rnn.orthogonality_penalty(W, 0.3))


def test_a_margin_starts_at_the_nearest_orthogonal_matrix() -> None:
    free = RNNCell(3, 6, generator=seeded(), dtype=torch.float64)
    held = RNNCell(3, 6, margin=0.2, generator=seeded(), dtype=torch.float64)
    left, _, right = torch.linalg.svd(free.weight_hh.detach())
    torch.testing.assert_close(held.matrix(), left @ right)
    assert [tuple(p.shape) for p in held.parameters()] == [
        tuple(p.shape) for p in free.parameters()
    ]


def test_the_penalty_is_added_in_training_and_holds_the_matrix_near_orthogonal() -> None:
    copying: Any = TASKS["copy"]
    task = copying(lag=2, length=2, symbols=3)
    far = {}
    for strength in (0.0, 1.0):
        torch.manual_seed(0)
        spec = {"cell": "rnn", "hidden_size": 8, "orthogonality": strength}
        model: Any = make_model(spec, [task.input_size], task.output_size, each_step=True)
        adam = torch.optim.Adam(model.parameters(), 0.01)
        training = Supervised(model, task, adam, Plan(100), generator=seeded())
        while not training.done:
            training.advance()
        W = model.recurrent.cells[0].weight_hh.detach()
        far[strength] = (W.T @ W - torch.eye(8)).square().sum().item()
    assert far[1.0] < 0.05 < 1 < far[0.0]


def test_the_penalty_is_added_in_continual_learning_and_in_meta_training() -> None:
    tasks = streamed(timed=True)
    losses = []
    for strength in (0.0, 2.0):
        spec = {"cell": "rnn", "hidden_size": 4, "orthogonality": strength}
        model = make_model(spec, [2], 3, generator=seeded())
        given = penalty(model)
        judged = _Judged(model, tasks[0])(torch.ones(3, 4, 2), torch.arange(3))
        learner = Learner(model, tasks, STRATEGIES["naive"](), iterations=2, seed=0)
        losses.append([judged.item(), learner._update().item()])
    assert given is not None
    for without, with_penalty in zip(*losses, strict=True):
        assert with_penalty - without == pytest.approx(given.item(), rel=1e-4)


def test_penalties_of_all_layers_add_up() -> None:
    layer = Recurrent("rnn", 3, 4, num_layers=2, orthogonality=0.5)
    cells: Any = layer.cells
    expected = sum(rnn.orthogonality_penalty(array(cell.weight_hh), 0.5) for cell in cells)
    found = penalty(layer)
    assert found is not None
    assert found.item() == pytest.approx(expected, rel=1e-5)
    assert penalty(Recurrent("lstm", 3, 4)) is None


def test_wrong_margins() -> None:
    for value in (-0.1, 1.5, True):
        with pytest.raises(InputError, match="margin from 0 to 1, but got"):
            RNNCell(3, 4, margin=value)
    with pytest.raises(InputError, match="orthogonality to be at least 0, but got -1"):
        RNNCell(3, 4, orthogonality=-1)
    with pytest.raises(InputError, match="orthogonality to be at least 0, but got nan"):
        RNNCell(3, 4, orthogonality=float("nan"))
    held = Recurrent("rnn", 3, 4, margin=0.1)
    with pytest.raises(InputError, match="RNN with free weights, as torch's has, but got margin"):
        held.load_state_dict(torch.nn.RNN(3, 4).state_dict())
    with pytest.raises(InputError, match="weight_drop expects weights to drop"):
        weight_drop(held, 0.5)
