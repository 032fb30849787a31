"""Small changes to the maths of a file: each is a mutant that a test should notice."""

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
SWAPPED = {
    "sigmoid": "tanh",
    "tanh": "sigmoid",
    "minimum": "maximum",
    "maximum": "minimum",
    "amax": "amin",
    "sum": "mean",
    "mean": "sum",
    "sin": "cos",
    "cos": "sin",
}
DROPPED = {"exp", "log", "sqrt", "rsqrt", "square", "relu", "abs", "clamp", "detach", "softmax"}
SKIPPED = {"__repr__", "extra_repr", "state_dict", "load_state_dict"}
SIZES = ("size", "sizes", "heads", "cells", "layers", "shape", "len", "dim", "count")
"""A product of sizes is not what the file computes: a change there fails at once, whoever looks."""

Changes = Callable[[ast.expr], Iterator[ast.expr]]
"""By an expression, what may stand in its place."""


@dataclass(frozen=True)
class Mutant:
    """One change: what it is called, the file, and which node of it becomes which."""

    name: str
    whole: ast.Module
    old: ast.AST
    new: ast.AST

    @property
    def line(self) -> int:
        """Where it is."""
        return int(getattr(self.old, "lineno", 0))

    @property
    def tree(self) -> ast.Module:
        """The file with the change."""
        return replaced(self.whole, self.old, self.new)


def sampled(
    path: str, source: str, count: int, seed: int, changes: Changes | None = None
) -> list[Mutant]:
    """Some mutants of a file: always the same ones, and an edit elsewhere changes no choice."""
    found = mutants(path, source, changes)
    chosen = sorted(found, key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    return sorted(chosen[:count], key=lambda m: m.line)


def mutants(path: str, source: str, changes: Changes | None = None) -> list[Mutant]:
    """All mutants of a file: of its maths, unless other changes are asked for."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    seen: dict[str, int] = {}
    for where, node in _expressions(tree):
        for new in (changes or maths)(node):
            name = f"{path} {where}: {ast.unparse(node)} -> {ast.unparse(new)}"
            seen[name] = seen.get(name, 0) + 1
            number = f" #{seen[name]}" if seen[name] > 1 else ""
            found.append(Mutant(name + number, tree, node, new))
    return found


def replaced(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """A copy of the tree with another node in the place of one."""

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is marked else self.generic_visit(node)

    index = next(i for i, node in enumerate(ast.walk(tree)) if node is old)
    changed = copy.deepcopy(tree)
    marked = next(node for i, node in enumerate(ast.walk(changed)) if i == index)
    made = Replace().visit(changed)
    assert isinstance(made, ast.Module)
    return ast.fix_missing_locations(made)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods, by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _expressions(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for where, function in functions(tree):
        if function.name not in SKIPPED:
            for statement in function.body:
                for node in _inside(statement):
                    yield where, node


def _inside(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are computed with: no checks of arguments, types, indices or texts."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Subscript):
        if isinstance(node, ast.Subscript):
            yield from _inside(node.value)
        return
    if isinstance(node, ast.If) and all(isinstance(s, ast.Raise) for s in node.body):
        return
    if isinstance(node, ast.expr):
        yield node
    for field, value in ast.iter_fields(node):
        if field == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def maths(node: ast.expr) -> Iterator[ast.expr]:
    """The changes to what an expression computes."""
    match node:
        case ast.BinOp(left, operator, right) if not (is_size(node) or _is_listed(node)):
            if type(operator) in BINARY:
                yield ast.BinOp(left, BINARY[type(operator)](), right)
            if isinstance(operator, ast.Mult):
                yield left
                yield right
            for side, make in _constants(node):
                yield make(side)
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Compare(left, [operator], [right]) if not is_size(node):
            if type(operator) in COMPARE:
                yield ast.Compare(left, [COMPARE[type(operator)]()], [right])
        case ast.Call(ast.Attribute(value, name) as function, arguments):
            yield from _of_call(node, function, value, name, arguments)
        case ast.Constant(float() as number):
            yield ast.Constant(number * 1.5 if number else 0.5)


def _of_call(
    node: ast.Call, function: ast.Attribute, value: ast.expr, name: str, given: list[ast.expr]
) -> Iterator[ast.expr]:
    if name in SWAPPED:
        renamed = ast.Attribute(value, SWAPPED[name], function.ctx)
        yield ast.Call(renamed, given, node.keywords)
    module = isinstance(value, ast.Name) and value.id in {"torch", "F", "np", "math"}
    if name in DROPPED:
        yield given[0] if module and given else value
    if name == "lerp" and module and len(given) == 3:
        yield ast.Call(function, [given[1], given[0], given[2]], [])


def _constants(
    node: ast.BinOp,
) -> Iterator[tuple[ast.Constant, Callable[[ast.Constant], ast.expr]]]:
    """Whole numbers that are added, multiplied and the like; floats are found on their own."""
    left, right = node.left, node.right
    if isinstance(left, ast.Constant) and type(left.value) is int:
        other = ast.Constant(left.value + 1)
        yield other, lambda new: ast.BinOp(new, node.op, right)
    if isinstance(right, ast.Constant) and type(right.value) is int:
        other = ast.Constant(right.value + 1)
        yield other, lambda new: ast.BinOp(left, node.op, new)


def is_size(node: ast.AST) -> bool:
    """Whether sizes are computed with."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    names += [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    return any(name in SIZES or name.endswith(("_size", "_sizes")) for name in names)


def _is_listed(node: ast.BinOp) -> bool:
    listed = ast.List | ast.Tuple | ast.JoinedStr | ast.ListComp | ast.Dict
    texts = [n for n in (node.left, node.right) if isinstance(n, ast.Constant)]
    return (
        isinstance(node.left, listed)
        or isinstance(node.right, listed)
        or any(isinstance(text.value, str) for text in texts)
    )
