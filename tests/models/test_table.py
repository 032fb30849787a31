"""Networks made from the table of a configuration."""

from typing import Any

import pytest
import torch

from attractor.errors import InputError
from attractor.models.table import make_model


@pytest.mark.parametrize("norm", ["compose", "own"])
def test_a_bound_draws_matrices_and_leaves_gains(norm: str) -> None:
    spec: dict[str, Any] = {"cell": "rnn", "hidden_size": 6, "bound": 0.25}
    spec |= {"layer_norm": True} if norm == "own" else {"compose": {"layer_norm": True}}
    model = make_model(spec, [3], 4)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            assert 0.15 < parameter.detach().abs().max() <= 0.25, name
        else:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
    out = model(torch.randn(5, 7, 3))
    assert out.std(0).min() > 0
    lstm = make_model({"cell": "lstm", "hidden_size": 6, "bound": 0.25}, [3], 4)
    assert all((p == 0).all() for p in lstm.parameters() if p.dim() == 1)  # the forget bias too


def test_layers_are_counted_by_the_list_of_their_sizes() -> None:
    two: Any = make_model({"cell": "gru", "hidden": [8, 8]}, [3], 2)
    assert two.recurrent.num_layers == 2
    with pytest.raises(InputError, match=r"expected num_layers=2, or none, beside hidden=\[8, 8\]"):
        make_model({"cell": "gru", "hidden": [8, 8], "num_layers": 3}, [3], 2)
    for wrong in (0, -2):
        with pytest.raises(InputError, match="num_layers"):
            make_model({"cell": "gru", "hidden_size": 8, "num_layers": wrong}, [3], 2)
