"""Maps written as text, such as ``tanh(3*x)``: read as a tree of known parts, never run as code."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attractor.errors import InputError, shortened

LONGEST = 200
"""Characters that an expression may have."""

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "cos": torch.cos,
    "exp": torch.exp,
    "log": torch.log,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "sin": torch.sin,
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
}
PAIRED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "max": torch.maximum,
    "min": torch.minimum,
}
CONSTANTS = {"pi": math.pi, "e": math.e}
OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: torch.add,
    ast.Sub: torch.sub,
    ast.Mult: torch.mul,
    ast.Div: torch.div,
    ast.Pow: torch.pow,
    ast.USub: torch.neg,
    ast.UAdd: torch.positive,
}

Values = Mapping[str, Tensor]
Part = Callable[[Values], Tensor]


def expression(text: str, names: Sequence[str] = ("x",)) -> Callable[..., Tensor]:
    """The function that a text writes down.

    Args:
        text: numbers, the names, ``pi``, ``e``, ``+ - * / **`` and brackets, and the functions
            ``abs cos exp log max min relu sigmoid sign sin sqrt tan tanh``.
        names: what the function takes, in this order.

    Returns:
        A function of tensors, one for each name, that works element by element.

    Example:
        >>> expression("tanh(3*x)")(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.9951])
        >>> expression("r*x*(1 - x)", ("x", "r"))(torch.tensor(0.5), torch.tensor(4.0))
        tensor(1.)
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        got = f"{len(text)} characters" if isinstance(text, str) else repr(text)
        raise InputError(
            f"expected a map of 1 to {LONGEST} characters, but got {got}. Try 'tanh(3*x)'."
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"expected a map such as 'tanh(3*x)', but {shortened(text)} cannot be read. "
            "Check its brackets and operators; a power is written **."
        ) from error
    part = _part(tree.body, tuple(names), text)

    def function(*values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        return part(given) + torch.zeros_like(next(iter(given.values())))

    return function


def _part(node: ast.AST, names: tuple[str, ...], text: str) -> Part:
    """What a node of the tree computes from the values of the names."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _constant(value, names, text)
    if isinstance(node, ast.Name):
        name = node.id
        if name in names:
            return lambda values: values[name]
        if name in CONSTANTS:
            return _constant(CONSTANTS[name], names, text)
        raise InputError(
            f"expected a map of {', '.join(names)}, but {shortened(text)} has the unknown name "
            f"{shortened(name)}. Known: {', '.join([*names, *CONSTANTS, *FUNCTIONS, *PAIRED])}."
        )
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATIONS:
        inner, change = _part(node.operand, names, text), OPERATIONS[type(node.op)]
        return lambda values: change(inner(values))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        left, right = _part(node.left, names, text), _part(node.right, names, text)
        join = OPERATIONS[type(node.op)]
        return lambda values: join(left(values), right(values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_part(one, names, text) for one in node.args], text)
    raise InputError(
        f"expected a map of numbers, names, + - * / ** and known functions, but {shortened(text)} "
        f"has a part of another kind ({type(node).__name__}). Try 'tanh(3*x)'."
    )


def _constant(value: float, names: tuple[str, ...], text: str) -> Part:
    try:
        number = float(value)
    except OverflowError as error:
        raise InputError(
            f"expected numbers that fit into 64 bits, but {shortened(text)} has a larger one. "
            "Try a smaller number."
        ) from error
    first = names[0]
    return lambda values: torch.as_tensor(
        number, dtype=values[first].dtype, device=values[first].device
    )


def _call(name: str, inner: list[Part], text: str) -> Part:
    if name in FUNCTIONS and len(inner) == 1:
        one, of = FUNCTIONS[name], inner[0]
        return lambda values: one(of(values))
    if name in PAIRED and len(inner) == 2:
        two, (left, right) = PAIRED[name], inner
        return lambda values: two(left(values), right(values))
    known = ", ".join([*FUNCTIONS, *PAIRED])
    raise InputError(
        f"expected a function of one argument (two for max and min) among {known}, but "
        f"{shortened(text)} calls {shortened(name)} with {len(inner)}. Try 'tanh(3*x)'."
    )
