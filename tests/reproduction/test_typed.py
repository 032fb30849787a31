"""Numbers of ours on the pages come from stored results, or from a script that the page names."""

import re
from pathlib import Path

import pytest

from attractor.reproduction.pages import PART

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
BY_HAND = ("older.md", "errata.md")
PRINTED = {
    "continual.md": ["python benchmarks/inside.py rates"],
    "networks.md": ["python benchmarks/inside.py gradients"],
    "optimisers.md": ["attractor meta test"],
}
"""By page, what prints its tables that are not made from stored results, in their order."""


def typed(text: str) -> list[str]:
    """The paragraphs above those tables outside generated parts that show results of ours."""
    outside = PART.sub("", text)
    blocks = re.split(r"\n\s*\n", outside)
    above = ""
    found = []
    for block in blocks:
        lines = block.strip().splitlines()
        if not lines or not lines[0].startswith("|"):
            above = block
            continue
        heads = [cell.strip() for cell in lines[0].strip("|").split("|")]
        if "±" in block or any(re.search(r"\bours\b", head) for head in heads):
            found.append(above)
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.name)
def test_no_result_is_typed_by_hand(path: Path) -> None:
    if path.name in BY_HAND:
        return
    above = typed(path.read_text(encoding="utf-8"))
    scripts = PRINTED.get(path.name, [])
    assert len(above) == len(scripts), f"a table of {path.name} is not made from stored results"
    for paragraph, script in zip(above, scripts, strict=True):
        assert script in paragraph


def test_a_typed_table_is_found() -> None:
    table = "| a | {} |\n|---|---|\n| b | {} |"
    hidden = f"<!-- generated: x -->\n{table.format('c', '1 ± 2')}\n<!-- end of generated part -->"
    assert typed(f"told\n\n{table.format('c', '1')}\n\n{hidden}") == []
    assert typed(f"told\n\n{table.format('c', '1 ± 2')}") == ["told"]
    assert typed(f"told\n\n{table.format('loss, ours', '1')}") == ["told"]
