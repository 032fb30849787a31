"""The released form of M2SGD against its equations in NumPy, and what its start decides."""

import numpy as np
import pytest
import torch

from attractor.optimisers import GlobalM2SGD
from attractor.optimisers.rule import State
from reference.maths import sigmoid
from reference.rules import preprocess


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.1])
def test_against_numpy(threshold: float) -> None:
    g = torch.Generator().manual_seed(0)
    rule = GlobalM2SGD(size=7, hidden_size=3, threshold=threshold, generator=g).double()
    w = {name: value.detach().numpy() for name, value in rule.state_dict().items()}
    theta = torch.randn(1, 7, generator=g, dtype=torch.float64)
    state: State = rule.init(theta)
    expected = theta[0].numpy()
    h, c = np.zeros(3), np.zeros(3)
    for scale in (1.0, 1e-6, 0.1):
        gradient = scale * torch.randn(1, 7, generator=g, dtype=torch.float64)
        with torch.no_grad():
            step, state = rule.update(gradient, state, theta)
        theta = theta + step
        slope = gradient[0].numpy()
        static = np.full(7, w["static"][0])
        rows = np.stack([*preprocess(slope).T, expected, slope, static])
        reduced = rows @ w["down.weight"].T + w["down.bias"]
        x = w["mix.weight"][0] @ reduced + w["mix.bias"][0]
        cell = {name.rsplit(".", 1)[1]: v for name, v in w.items() if name.startswith("stack")}
        gates = cell["weight_ih"] @ x + cell["weight_hh"] @ h + cell["bias"]
        i, f, a, o = gates.reshape(4, 3)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(a)
        h = sigmoid(o) * np.tanh(c)
        rates = np.maximum(0, static + np.tanh(w["up.weight"] @ h + w["up.bias"]))
        expected = np.where(rates > threshold, expected - rates * slope, 0)
        np.testing.assert_allclose(theta[0].numpy(), expected, rtol=0, atol=1e-10)


def test_half_of_the_weights_go_before_anything_is_learnt() -> None:
    """The rows of the last layer are random and symmetric, so half of the rates are not above 0."""
    rule = GlobalM2SGD(size=25_450, generator=torch.Generator().manual_seed(0))
    params = torch.randn(1, 25_450)
    with torch.no_grad():
        step, _ = rule.update(torch.zeros_like(params), rule.init(params), params)
    assert float((step == -params).float().mean()) == pytest.approx(0.5, abs=0.02)
