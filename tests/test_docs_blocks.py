"""No block of code on a page escapes the tests: each has a language, and each language a test.

Python is run by `test_docs.py`, commands are understood by `test_docs_commands.py` and run by
`test_docs_run.py`; configurations and C++ are here.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

import attractor
from attractor.experiments import load, runs_of
from attractor.experiments.check import refusals
from attractor.optimisers import Pacer, save_rule

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(.*)$")
TESTED = {"python", "sh", "toml", "cpp"}
ABSENT = "ATTRACTOR_DATA"
"""In the sentence that says that data are not on this machine."""


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def blocks(path: Path) -> list[Block]:
    """The blocks of a page, also those that are fenced or indented in another way than ours."""
    found: list[Block] = []
    inside: list[str] = []
    opened: tuple[int, str] | None = None
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, inside = (number, line[3:] if line.startswith("```") else line), []
        elif opened is not None and fence and not fence[2]:
            found.append(Block(str(path.relative_to(ROOT)), *opened, "\n".join(inside) + "\n"))
            opened = None
        elif opened is not None:
            inside.append(line)
        elif line.startswith("    ") and not before.strip():
            found.append(Block(str(path.relative_to(ROOT)), number, "indented", line))
        before = line
    assert opened is None, path
    return found


BLOCKS = [block for page in PAGES for block in blocks(page)]
OTHERS = ("from avalanche",)
"""How blocks that are marked ``py`` begin: with libraries that the tests do not have."""
SMALLER = {'"mnist"': '"digits"', "784, 512": "64, 32"}
"""What is changed in the others that are marked so: they take minutes, and data."""
SHOWN = ("docs/report.md",)
"""Pages whose indented lines are formulas."""


def test_every_block_has_a_language_that_is_tested() -> None:
    assert len(BLOCKS) > 200
    for page, line, language, text in BLOCKS:
        at = f"{page}, line {line}"
        if language == "py":
            compile(text, at, "exec")
        elif language == "indented":
            assert page in SHOWN, at
        elif language in ("", "text"):
            assert not re.search(r"^\$? ?(attractor|python|pip|make) ", text, re.M), at
        else:
            assert language in TESTED, at


def test_what_is_not_a_plain_fence_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n\n    b = 1\n\n~~~python\nc\n~~~\n\n- d\n\n  ```python\n  e\n  ```\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert [one.language for one in blocks(page)] == ["indented", "~~~python", "  ```python"]


def test_long_blocks_run_in_small() -> None:
    ours = [one for one in BLOCKS if one.language == "py" and not one.text.startswith(OTHERS)]
    assert ours
    for one in ours:
        text = one.text
        for large, small in SMALLER.items():
            assert large in text
            text = text.replace(large, small)
        exec(compile(text, f"{one.page}, line {one.line}", "exec"), {"__name__": "example"})


MODULES = {
    "mycells": "from attractor.cells import LSTMCell as MyCell",
    "watching": "def watch(learner, rows):\n    pass",
}
"""Modules of the reader's own that configurations name."""

AROUND = {
    "supervised": {
        "task": '[task]\nname = "digits"\norder = "flat"',
        "model": '[model]\nname = "mlp"\nhidden = [8]',
        "train": "[train]\nsteps = 5",
        "variant": '[[variant]]\nlabel = "it"\noptimiser.name = "anytime"',
    },
    "continual": {
        "stream": '[stream]\nname = "permuted_images"\ndataset = "digits"\ntasks = 2',
        "model": '[model]\nname = "mlp"\nhidden = [8]',
        "optimiser": '[optimiser]\nname = "sgd"\nlr = 0.1',
        "train": "[train]\nsteps = 5",
        "variant": '[[variant]]\nlabel = "it"\nstrategy.name = "naive"',
    },
}
"""What the reader has around a table that is shown alone."""


def whole(text: str) -> str:
    """The experiment around the tables that a page shows."""
    shown = tomllib.loads(text)
    if "version" in shown:
        return text
    continual = "stream" in shown or "callbacks" in shown.get("train", {})
    kind = "continual" if continual else "supervised"
    head = f'version = 2\nkind = "{kind}"\ntitle = "It"\nbudget = "quick"\nseeds = [0]'
    around = [table for name, table in AROUND[kind].items() if name not in shown]
    if "cell" in text and "[meta]" not in text:
        around[0] = around[0].replace("flat", "rows")
    if "frozen" in shown.get("meta", {}):  # parts of the networks of pacer
        around[-1] = around[-1].replace('"anytime"', '"pacer"\noptimiser.hidden_size = 8')
    return "\n\n".join([head, text, *around]) + "\n"


CONFIGURATIONS = [block for block in BLOCKS if block.language == "toml"]


@pytest.mark.parametrize(
    "block", CONFIGURATIONS, ids=lambda block: f"{block.page}, line {block.line}"
)
def test_a_configuration_is_one(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in MODULES.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    save_rule(Pacer(hidden_size=8), "pacer-rule.safetensors")
    (tmp_path / "mine.toml").write_text(whole(block.text), encoding="utf-8")
    runs = runs_of(*load("mine.toml"))
    assert runs
    computed = "patches" in block.text or "[features]" in block.text  # from photographs, at length
    try:
        refused = refusals(runs, tmp_path if computed else None)
    finally:
        for name in MODULES:
            sys.modules.pop(name, None)
    assert [why for why in refused.values() if ABSENT not in why] == []


def test_what_is_no_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(whole("[train]\nsteps = 5\nbatch = 3"), encoding="utf-8")
    with pytest.raises(attractor.InputError, match="batch"):
        refusals(runs_of(*load("mine.toml")))
    (tmp_path / "mine.toml").write_text(whole("[model]\ncell = 'gru'\nhidden_size = 8\nheads = 3"))
    assert "heads" in str(refusals(runs_of(*load("mine.toml"))))


def test_all_of_a_kernel_is_shown() -> None:
    (block,) = (block for block in BLOCKS if block.language == "cpp")
    kernels = ROOT / "src" / "attractor" / "cells" / "kernels" / "native" / "cells"
    assert any(block.text in path.read_text(encoding="utf-8") for path in kernels.glob("*.hpp"))
