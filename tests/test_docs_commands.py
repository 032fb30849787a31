"""The commands of the documentation can be given: commands, options and names are there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from attractor.cli.commands import app
from attractor.experiments import EXPERIMENTS
from attractor.reproduction.targets import target

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`attractor ((?:run|reproduce|figure|fit)\s+[a-z\d][^`]*)`")
COMMAND = re.compile(r"^\$? ?(?:\S+ .*-m )?attractor (.*)$")


def in_blocks(page: Path) -> list[str]:
    """What follows `attractor` in blocks."""
    lines = "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    return [found[1] for line in lines.splitlines() if (found := COMMAND.match(line))]


def commands(page: Path) -> list[str]:
    """The same, and in lines of text where it is given whole."""
    text = page.read_text(encoding="utf-8")
    inline = [" ".join(found.split()) for found in INLINE.findall(text)]
    whole = [line for line in inline if not re.search(r"\b[A-Z_]{3,}\b|\.\.\.|…", line)]
    return in_blocks(page) + whole


LINES = {f"{page.relative_to(ROOT)}: {line}": line for page in PAGES for line in commands(page)}


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command and its options as the command line understands them; nothing is run."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("attractor", list(words))
    path = []
    while isinstance(command, typer.core.TyperGroup) and (left := context._protected_args):
        name, command, rest = command.resolve_command(context, [*left, *context.args])
        context = command.make_context(name, rest, parent=context)
        path.append(str(name))
    return " ".join(path), context.params


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_documentation_is_understood(line: str) -> None:
    words = shlex.split(LINES[line], comments=True)
    if "--help" in words:  # which would print
        words.remove("--help")
    name, options = parsed(words)
    if name in ("run", "sweep"):
        experiment = str(options["name"])
        assert experiment.endswith(".toml") or experiment in EXPERIMENTS
    if name == "reproduce" and options["name"] not in ("list", "pages"):
        assert not (options["stored"] and "--budget" in words)  # which is refused
        assert (options["join"] and options["name"] in EXPERIMENTS) or target(options["name"])


def test_what_is_not_there_is_not_understood() -> None:
    assert len(LINES) > 60
    assert parsed(["bench", "optimisers", "--quick"])[0] == "bench optimisers"
    for wrong in (
        "rum demo",
        "run demo --sett a=1",
        "bench optimiser",
        "fit",
        "fit a.tsv --epochs x",
    ):
        with pytest.raises(Exception, match=r"No such|Missing|valid integer"):
            parsed(wrong.split())
