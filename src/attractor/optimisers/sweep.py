"""Rules of a few numbers per coordinate: all parameters of a network in one compiled pass."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attractor.cells.kernels.fused import unwatched
from attractor.cells.kernels.native import STATUS, library
from attractor.cells.kernels.plan import uniform
from attractor.optimisers.given import check_numbers
from attractor.optimisers.rule import Rule, Update
from attractor.optimisers.state import State
from attractor.optimisers.view import View, fan_in, tensor_size

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
                if any(one.numel() != size for one in (grad, *each)):
                    return False  # a parameter that was replaced by one of another size
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
    if numbers.rates is not None and numbers.rates.numel() != first:
        return False  # as above
    return _swept(rule.key, rows, width, numbers.values)


def sweep_learners(
    rules: Sequence[Rule], grads: Tensor, state: State, params: Tensor, view: View
) -> Update | None:
    """Update learners, each by a rule of its own; None where there is no kernel for them.

    The rules are of one kind, and differ in their weights. A learner whose gradient is not finite
    is lost: its steps are NaN.

    Shape:
        as those of `Rule.update`, a rule for each learner.
    """
    told = [rule.numbers() for rule in rules]
    first = told[0]
    given = [grads, params, *state.named().values()]
    if first is None or first.rates is not None or STATUS.path is None or not unwatched():
        return None
    if not uniform(given) or view.context is not None or view.loss is not None:
        return None
    parts = view.parts()
    names = state.named()
    each = [names[name].clone(memory_format=torch.contiguous_format) for name in first.each]
    apart = rules[0].tensorwise
    shared = [
        (names[name] if apart else names[name][:, None].expand(-1, len(parts))).clone(
            memory_format=torch.contiguous_format
        )
        for name in first.shared
    ]
    after, slopes = params.clone(memory_format=torch.contiguous_format), grads.contiguous()
    width, size = params.element_size(), params.shape[1]
    starts = list(accumulate((count for _, count in parts), initial=0))
    scales = [tensor_size(view.fan_in(tensor)) for tensor, _ in parts]
    for learner, (rule, numbers) in enumerate(zip(rules, told, strict=True)):
        assert numbers is not None
        rows = []
        decay = rule.decay if view.decay is None else view.decay
        for tensor, (_, count) in enumerate(parts):
            coordinate = (learner * size + starts[tensor]) * width
            place = (learner * len(parts) + tensor) * width
            flat = [t.data_ptr() + coordinate for t in (after, slopes, *each)]
            own = [t.data_ptr() + place for t in shared]
            at = *flat, *[0] * (4 - len(each)), *own, *[0] * (3 - len(shared))
            rows.append(ROW.pack(count, *at, 0, 1.0, view.rate, decay, scales[tensor], 1.0))
        if not _swept(rule.key, rows, width, numbers.values):
            after[learner] = torch.nan
    kept = dict(zip(first.each, each, strict=True))
    kept |= {n: t if apart else t[:, 0] for n, t in zip(first.shared, shared, strict=True)}
    return after - params, state.filled({**names, **kept})


def _swept(key: str, rows: list[bytes], width: int, values: Sequence[float]) -> bool:
    """Run the kernel of a rule over tensors; False, with nothing changed, if one is not finite."""
    tensors = (Swept * len(rows)).from_buffer_copy(b"".join(rows))
    call = Sweep(width, torch.get_num_threads(), len(rows), tensors)
    call.number[: len(values)] = values
    found = _run()(key.encode(), ctypes.byref(call))
    assert found != -1, key
    if found == -2:
        raise MemoryError(f"no memory left for the kernel of {key}")
    return not found


@lru_cache(maxsize=4096)
def _scale(shape: torch.Size, table: bool) -> float:
    return tensor_size(fan_in(shape, table=table))


def _places(leaves: Sequence[Tensor], count: int) -> list[int]:
    """Their addresses, and nulls to fill so many places."""
    return [leaf.data_ptr() for leaf in leaves] + [0] * (count - len(leaves))
