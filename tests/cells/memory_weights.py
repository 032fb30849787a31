"""Weights of the cells with a memory under the names of the NumPy references."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.cells.memory.controllers import Controller
from cells.against import array
from reference.result import Array

ORDER = {4: "ifco", 3: "rzh", 1: "h"}
"""The gates in the order in which attractor stacks them, by their number."""


def scatter(module: Any, seed: int = 0) -> Any:
    """Give every parameter of a float64 module large random values."""
    g = Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=g, dtype=torch.float64))
    return module


def controller_weights(controller: nn.Module) -> dict[str, Array]:
    assert isinstance(controller, Controller)
    assert controller.bias is not None
    named: dict[str, Array] = {}
    for n, gate in enumerate(ORDER[controller.gates]):
        rows = slice(n * len(controller.bias) // controller.gates, None)
        size = len(controller.bias) // controller.gates
        named[f"b_{gate}"] = array(controller.bias)[rows][:size]
        for side, weight in (
            ("x", controller.weight_ih),
            ("h", controller.weight_hh),
            ("r", controller.weight_rh),
        ):
            if weight is not None:
                named[f"W_{side}{gate}"] = array(weight)[rows][:size]
    return named


def head_weights(
    sizes: dict[str, int], head: str, ih: Tensor, hh: Tensor, bias: Tensor
) -> dict[str, Array]:
    """The rows of one head, cut into its named parts."""
    named: dict[str, Array] = {}
    start = 0
    for name, size in sizes.items():
        rows = slice(start, start + size)
        named[f"W_x{name}_{head}"] = array(ih)[rows]
        named[f"W_h{name}_{head}"] = array(hh)[rows]
        named[f"b_{name}_{head}"] = array(bias)[rows]
        start += size
    assert start == len(bias)
    return named


def check_gradients(layer: nn.Module, input_size: int) -> None:
    """Gradients of a float64 layer, once and twice, against finite differences."""
    names, weights = zip(*layer.named_parameters(), strict=True)
    g = Generator().manual_seed(2)
    x = torch.randn(3, 2, input_size, generator=g, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, *values: Tensor) -> Any:
        given = dict(zip(names, values, strict=True))
        output, state = torch.func.functional_call(layer, given, (x,))
        return output, *(leaf for leaf in state if leaf.requires_grad)

    arguments = (x, *(w.detach().requires_grad_() for w in weights))
    assert torch.autograd.gradcheck(run, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, arguments, fast_mode=True)
