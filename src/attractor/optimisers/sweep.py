"""Rules of a few numbers per coordinate: all parameters of a network in one compiled pass."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attractor.cells.kernels.fused import unwatched
from attractor.cells.kernels.native import STATUS, library
from attractor.optimisers.given import check_numbers
from attractor.optimisers.view import fan_in, tensor_size

if TYPE_CHECKING:
    from attractor.optimisers.learned import Learned


class Swept(ctypes.Structure):
    """As ``Swept`` in ``native/optimisers/sweep.hpp``, which says what each field is."""

    _fields_ = (
        ("size", ctypes.c_int64),
        ("param", ctypes.c_void_p),
        ("grad", ctypes.c_void_p),
        ("state", ctypes.c_void_p * 4),
        ("shared", ctypes.c_void_p * 3),
        ("rates", ctypes.c_void_p),
        ("sign", ctypes.c_double),
        ("rate", ctypes.c_double),
        ("decay", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("share", ctypes.c_double),
    )


ROW = struct.Struct("q10Q5d")
"""The same fields, packed at a tenth of the time that ctypes takes."""


class Sweep(ctypes.Structure):
    """As ``Sweep`` there."""

    _fields_ = (
        ("bytes", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("count", ctypes.c_int64),
        ("tensors", ctypes.POINTER(Swept)),
        ("number", ctypes.c_double * 24),
    )


@cache
def _run() -> Any:
    run = library().attractor_sweep
    run.argtypes, run.restype = (ctypes.c_char_p, ctypes.POINTER(Sweep)), ctypes.c_int64
    return run


def sweep(optimiser: Learned) -> bool:
    """Update all parameters that have a gradient; False where there is no kernel for them.

    It is False too, with nothing changed, where a gradient is not finite.
    """
    rule = optimiser.rule
    numbers = rule.numbers()
    if numbers is None or STATUS.path is None or not unwatched():
        return False
    weight = next(rule.parameters())
    if weight.dtype not in (torch.float32, torch.float64) or weight.device.type != "cpu":
        return False
    rows: list[bytes] = []
    dtype, width, first = weight.dtype, weight.element_size(), 0
    rates = None if numbers.rates is None else numbers.rates.data_ptr()
    for group in optimiser.param_groups:
        check_numbers(group)
        sign = -1.0 if group["maximize"] else 1.0
        rate, decay = float(group["lr"]), float(group["weight_decay"])
        for place, parameter in enumerate(group["params"]):
            size, grad = parameter.numel(), parameter.grad
            if grad is not None:
                kept = optimiser.started(parameter) if numbers.shared else {}
                each = [kept[name] for name in numbers.each]
                shared = [kept[name] for name in numbers.shared]
                for tensor in (parameter, grad, *each, *shared):
                    if (
                        tensor.dtype is not dtype
                        or not tensor.is_contiguous()
                        or type(tensor) not in (Tensor, nn.Parameter)
                    ):
                        return False
                own = 0 if rates is None else rates + first * width
                at = parameter.data_ptr(), grad.data_ptr(), *_places(each, 4), *_places(shared, 3)
                scale = _scale(parameter.shape, place in group["tables"])
                if size:
                    rows.append(ROW.pack(size, *at, own, sign, rate, decay, scale, 1.0))
            first += size
    tensors = (Swept * len(rows)).from_buffer_copy(b"".join(rows))
    call = Sweep(width, torch.get_num_threads(), len(rows), tensors)
    call.number[: len(numbers.values)] = numbers.values
    found = _run()(rule.key.encode(), ctypes.byref(call))
    assert found != -1, rule.key
    if found == -2:
        raise MemoryError(f"no memory left for the kernel of {rule.key}")
    return not found


@lru_cache(maxsize=4096)
def _scale(shape: torch.Size, table: bool) -> float:
    return tensor_size(fan_in(shape, table=table))


def _places(leaves: Sequence[Tensor], count: int) -> list[int]:
    """Their addresses, and nulls to fill so many places."""
    return [leaf.data_ptr() for leaf in leaves] + [0] * (count - len(leaves))
