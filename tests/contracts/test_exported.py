"""Every cell leaves by torch.export and for ONNX, with any length and any batch."""

import io
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.utils._pytree import tree_leaves

from contracts.cells import FORMS, NAMES, OPTIONS, inputs, make_layer

SAVED = ("lstm", "nru")
"""Cells whose export is saved and loaded: that is torch's work, the same for all."""
TIME = torch.export.Dim("time", min=2, max=4096)
SIZES = {0: TIME, 1: torch.export.Dim("batch", min=2)}
tracing = pytest.mark.filterwarnings("ignore")  # of torch's tracers about themselves


@pytest.fixture(scope="module")
def registry() -> Iterator[None]:
    """The table of ONNX's operators, which torch would put together again for each export."""
    with pytest.MonkeyPatch.context() as patch:
        once = staticmethod(cache(ONNXRegistry.from_torchlib))
        patch.setattr(ONNXRegistry, "from_torchlib", once)
        yield


def agree(run: Callable[[Tensor], Any], layer: nn.Module, **bounds: Any) -> None:
    """Compare at the sizes of the export and at others."""
    for length, batch in ((4, 3), (11, 5)):
        x = inputs(length, batch)
        torch.testing.assert_close(tree_leaves(run(x)), tree_leaves(layer(x)), **bounds)


def exported(layer: nn.Module) -> torch.export.ExportedProgram:
    """The export of a layer, once it is known to give the same numbers."""
    program = torch.export.export(layer, (inputs(4, 3),), dynamic_shapes={"input": SIZES})
    agree(program.module(), layer)
    return program


def in_onnxruntime(model: Any) -> Callable[[Tensor], list[Tensor]]:
    session: Any = onnxruntime.InferenceSession(
        model.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    return lambda x: [torch.from_numpy(one) for one in session.run(None, {given.name: x.numpy()})]


@pytest.mark.timeout(900)  # external memories take ten seconds of a processor that is free
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("registry")
@tracing
@torch.no_grad()
def test_it_gives_the_same_numbers_wherever_it_goes(name: str) -> None:
    # layers and directions are the layer's own work: exported for one cell, not for each
    form = {"num_layers": 2, "bidirectional": True} if name == "rnn" else {}
    layer = make_layer(name, **form).eval()
    program = exported(layer)
    if name in SAVED:
        saved = io.BytesIO()
        torch.export.save(program, saved)
        saved.seek(0)
        agree(torch.export.load(saved).module(), layer)
    model = torch.onnx.export(program, dynamo=True, verbose=False)
    agree(in_onnxruntime(model), layer, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("registry")
@tracing
def test_lstm_of_torch_keeps_the_length_that_it_was_exported_with() -> None:
    """So the guide says; where torch mends it, the guide is to change."""
    layer, x = nn.LSTM(3, 8).eval(), inputs(4, 3)
    with pytest.raises(Exception, match="specialized it to be a constant"):
        torch.export.export(layer, (x,), dynamic_shapes={"input": {0: TIME}})
    model = torch.onnx.export(
        layer, (x,), dynamo=True, dynamic_shapes={"input": {0: TIME}}, verbose=False
    )
    run = in_onnxruntime(model)
    torch.testing.assert_close(run(x)[0], layer(x)[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        run(inputs(11, 3))


@tracing
def test_an_earlier_export_leaves_the_next_one_its_dynamic_batch() -> None:
    torch.export.export(make_layer("lstm").eval(), (inputs(4, 2),), dynamic_shapes=[{0: TIME}])
    exported(make_layer("janet").eval())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), FORMS)
@tracing
def test_other_forms_are_exported(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPTIONS, name, OPTIONS.get(name, {}) | options)
    exported(make_layer(name).eval())
