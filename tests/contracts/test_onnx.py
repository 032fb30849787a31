"""Every cell leaves for ONNX, with any length of sequence."""

from typing import Any

import onnxruntime
import pytest
import torch
from torch.utils._pytree import tree_leaves

from contracts.cells import NAMES, inputs, make_layer

FAST = ("decaynet", "gru")
"""Cells that are exported in every run of the tests; all of them take minutes."""


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
@pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves
def test_onnx_with_dynamic_length(name: str) -> None:
    layer = make_layer(name).eval()
    length = {0: torch.export.Dim("time", min=2, max=4096)}
    program: Any = torch.onnx.export(
        layer, (inputs(4, 2),), dynamo=True, dynamic_shapes={"input": length}, verbose=False
    )
    session: Any = onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    for steps in (4, 11):
        x = inputs(steps, 2)
        found = [torch.from_numpy(value) for value in session.run(None, {given.name: x.numpy()})]
        torch.testing.assert_close(found, tree_leaves(layer(x)), rtol=1e-4, atol=1e-5)
