"""Small changes to what a file decides, beside those to its maths: which, whether, and of what."""

import ast
from collections.abc import Iterator

from mutation.operators import COMPARE, is_size, maths

OPPOSITE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SETS = {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}
DROPPED = {"sorted", "reversed", "abs", "round", "set"}


PLACES = {"folder", "root", "path", "FOLDER", "data_root", "out"}
"""What a name is put behind with ``/`` is a file: nothing is divided."""


def both(node: ast.expr) -> Iterator[ast.expr]:
    """The changes to the maths of an expression, and to what it decides."""
    if not _is_file(node):
        yield from maths(node)
    yield from decisions(node)


def decisions(node: ast.expr) -> Iterator[ast.expr]:
    """The changes to what an expression decides."""
    match node:
        case ast.Compare(left, operators, others):
            maths_has_it = len(operators) == 1 and not is_size(node)
            for place, operator in enumerate(operators):
                other = OPPOSITE.get(type(operator))
                if other is None and not maths_has_it:
                    other = COMPARE.get(type(operator))
                if other is not None:
                    changed = [*operators[:place], other(), *operators[place + 1 :]]
                    yield ast.Compare(left, changed, others)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for place in range(len(values)):
                left_over = values[:place] + values[place + 1 :]
                one = len(left_over) == 1
                yield left_over[0] if one else ast.BoolOp(operator, left_over)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in SETS:
            if not _are_types(node):
                yield ast.BinOp(left, SETS[type(operator)](), right)
        case ast.IfExp(_, body, otherwise):
            yield body
            yield otherwise
        case ast.Call(ast.Name(name), [first, *_] as given):
            if name in EXCHANGED:
                yield ast.Call(ast.Name(EXCHANGED[name], ast.Load()), given, node.keywords)
            if name in DROPPED:
                yield first


def _is_file(node: ast.expr) -> bool:
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return divides and not PLACES.isdisjoint(_names(node))


def _are_types(node: ast.BinOp) -> bool:
    """Whether it is as in ``int | None``: types, which are asked about and not computed with."""
    kinds = {"int", "float", "str", "list", "tuple", "dict", "bool"}
    return any(name in kinds or (name[0].isupper() and not name.isupper()) for name in _names(node))


def _names(node: ast.expr) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
