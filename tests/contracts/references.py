"""Whether a method has a second implementation in NumPy, and a test that compares the two."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """Every module or name that a file imports, in full: ``reference.maths.sigmoid``."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def used(path: Path) -> set[str]:
    """Every name that a file reads."""
    return {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}


def dependent(path: Path) -> list[str]:
    """What a reference imports, itself or through others, that is not its own."""
    found: list[str] = []
    waiting, seen = [path], {path}
    while waiting:
        for name in imports(waiting.pop()):
            top, *rest = name.split(".")
            if top in ("attractor", "torch"):
                found.append(name)
            elif top == "reference":
                inner = TESTS / "reference" / f"{rest[0]}.py"
                if inner.exists() and inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
    return found


def fault(module: str, function: str, name: str, tests: str) -> str | None:
    """Why the method called `name` cannot be held against ``reference.<module>``, or ``None``.

    Args:
        module: the file in tests/reference.
        function: what it must define.
        name: the class or function under test, as tests import it.
        tests: the folder whose tests must compare the two.
    """
    path = TESTS / "reference" / f"{module}.py"
    if not path.exists():
        return f"tests/reference/{module}.py is missing: a second {name} in NumPy"
    if function not in {n.name for n in parsed(path).body if isinstance(n, ast.FunctionDef)}:
        return f"tests/reference/{module}.py has no function {function}"
    if borrowed := dependent(path):
        return f"tests/reference/{module}.py is not independent: it imports {borrowed[0]}"
    for test in sorted((TESTS / tests).rglob("test_*.py")):
        if f"reference.{module}" in imports(test) and {module, name} <= used(test):
            return None
    return f"no test in tests/{tests} holds {name} against reference.{module}"
