"""Pages of the documentation, made from stored results and never edited by hand."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.reproduction.claims import Finding
from attractor.reproduction.costs import minutes
from attractor.reproduction.outcomes import Outcomes
from attractor.reproduction.stock import kept, status
from attractor.reproduction.tables import (
    CLAIMS,
    NUMBERS,
    all_claims,
    budget_of,
    claim_rows,
    number_rows,
)
from attractor.reproduction.targets import TARGETS, Target, target

BEGIN = "<!-- generated: {} -->"
END = "<!-- end of generated part -->"
PART = re.compile(r"<!-- generated: (\S+) -->\n.*?<!-- end of generated part -->", re.DOTALL)

VERDICTS = {
    "holds": "hold",
    "contradicted": "are contradicted",
    "not shown": "are not shown",
    "few seeds": "have too few seeds",
    "quick": "have quick runs alone",
}
"""Of claims, in the order of the first page, with the words that count them."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table in Markdown; numbers of the columns in ``right`` stand on the right."""
    lines = [_line(columns)]
    lines.append(_line("---:" if place in right else "---" for place in range(len(columns))))
    lines += [_line(row) for row in rows]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def part(one: Target, outcomes: Outcomes, claims: Sequence[Finding]) -> str:
    """The results of a target: its numbers, then its claims."""
    budget = budget_of(one, outcomes)
    blocks = []
    rows = number_rows(one, outcomes, budget)
    shown = [row for row in rows if row[3]]
    if shown:
        blocks.append(table(NUMBERS, shown, right=(2, 3, 4, 5)))
        left = Counter(row[6] for row in rows if not row[3])
        if left:
            others = ", ".join(f"{count} {verdict}" for verdict, count in left.items())
            blocks.append(f"Other published numbers of this place: {others}.")
    told = [found for found in claims if found.n]
    if told:
        blocks.append(table(CLAIMS, claim_rows(told), right=(1, 2, 3, 4, 5)))
    return "\n\n".join(blocks) or "Nothing is stored for this target yet."


def target_page(one: Target, outcomes: Outcomes, claims: Sequence[Finding]) -> str:
    """A page about one target."""
    run = f"attractor reproduce {one.key} --budget {budget_of(one, outcomes)}"
    lines = [f"# {one.key}: {one.what}", f"{one.document}, lines {one.lines} of its text. `{run}`."]
    lines += [f"{one.note[0].upper()}{one.note[1:]}."] if one.note else []
    return "\n\n".join([*lines, part(one, outcomes, claims)]) + "\n"


def front(claims: Mapping[str, Sequence[Finding]]) -> str:
    """Which claims hold and which do not: the first thing to read."""
    told = [(key, one) for key, found in claims.items() for one in found if one.n]
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    told.sort(key=lambda item: (order[item[1].verdict], item[0]))
    counts = Counter(one.verdict for _, one in told)
    untold = sum(not one.n for found in claims.values() for one in found)
    said = ", ".join(f"{counts[one]} {word}" for one, word in VERDICTS.items() if counts[one])
    total = len(told) + untold
    head = f"Of {total} claims {len(told)} have stored results: {said}; {untold} are not run."
    rows = [
        [f"**{one.verdict}**", one.claim.says, _short(one), f"`{key}`", one.why]
        for key, one in told
    ]
    return f"{head}\n\n{table(('verdict', 'claim', 'ours less the other', 'target', 'why'), rows)}"


def _short(one: Finding) -> str:
    _, difference, half, _, _, p, _ = claim_rows([one])[0]
    told = (f"{difference} {half}".strip(), f"{one.n} seeds", p and f"p {p}")
    return ", ".join(filter(None, told))


def overview() -> str:
    """Every target: what it takes, and what there is."""
    rows = []
    for one in TARGETS.values():
        cost = [_minutes(minutes(one, "quick")), _minutes(minutes(one, "full"))]
        rows.append([f"`{one.key}`", one.what, ", ".join(one.data), *cost, status(one), one.note])
    columns = ("target", "what", "data", "quick", "full", "status", "note")
    return table(columns, rows, right=(3, 4))


def _minutes(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def content(name: str, claims: Mapping[str, Sequence[Finding]]) -> str:
    """What goes into a generated part: ``claims``, ``targets`` or the results of a target."""
    if name == "claims":
        return front(claims)
    if name == "targets":
        return overview()
    one = target(name)
    return part(one, kept(one), claims[one.key])


def refreshed(text: str, claims: Mapping[str, Sequence[Finding]]) -> str:
    """A page with its generated parts made anew; the rest stays as it is."""

    def made(found: re.Match[str]) -> str:
        name = found[1]
        return f"{BEGIN.format(name)}\n\n{content(name, claims)}\n\n{END}"

    return PART.sub(made, text)


def write_pages(folder: Path) -> list[Path]:
    """Refresh the generated parts of all pages below a folder; says which files changed."""
    if not folder.is_dir():
        raise InputError(
            f"expected a folder of pages at {folder}, but there is none. Try --pages docs."
        )
    claims = all_claims()
    changed = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := refreshed(text, claims)) != text:
            write_atomic(path, new)
            changed.append(path)
    return changed
