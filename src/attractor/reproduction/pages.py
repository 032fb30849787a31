"""Pages of the documentation, made from stored results and never edited by hand."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.reproduction.claims import Finding
from attractor.reproduction.comparisons import COMPARISONS, compared
from attractor.reproduction.costs import cost, told
from attractor.reproduction.numbered import numbered
from attractor.reproduction.outcomes import Outcomes
from attractor.reproduction.races import RACES, raced
from attractor.reproduction.stock import kept, left_out, status
from attractor.reproduction.summary import SUMMARY
from attractor.reproduction.tables import (
    CLAIMS,
    NUMBERS,
    all_claims,
    budget_of,
    claim_rows,
    number_rows,
    remark,
)
from attractor.reproduction.targets import TARGETS, Budget, Target, target
from attractor.results.table import markdown

BEGIN = "<!-- generated: {} -->"
END = "<!-- end of generated part -->"
PART = re.compile(r"<!-- generated: (\S+) -->\n.*?<!-- end of generated part -->", re.DOTALL)


def part(
    one: Target,
    outcomes: Outcomes,
    claims: Mapping[str, Sequence[Finding]],
    budget: Budget | None = None,
) -> str:
    """The results of a target: its numbers, its claims, and those of others it shows."""
    budget = budget or budget_of(one, outcomes)
    blocks = []
    rows = number_rows(one, outcomes, budget)
    shown = [row for row in rows if row[3]]
    if shown:
        blocks.append(markdown(NUMBERS, shown, right=(2, 3, 4, 5)))
        if told := remark(one, outcomes, budget):
            blocks.append(told)
    if left := Counter(row[6] for row in rows if not row[3]):
        others = ", ".join(f"{count} {verdict}" for verdict, count in left.items())
        blocks.append(
            f"{'Other published' if shown else 'Published'} numbers of this place: {others}."
        )
    for key in (one.key, *one.claims_of):
        heard = [found for found in claims[key] if found.n]
        if heard and key != one.key:
            blocks.append(f"The claims of `{key}`, which count there:")
        if heard:
            blocks.append(markdown(CLAIMS, claim_rows(heard), right=(1, 2, 3, 4, 5)))
    return "\n\n".join(blocks) or "Nothing is stored for this target yet."


def target_page(
    one: Target,
    outcomes: Outcomes,
    claims: Mapping[str, Sequence[Finding]],
    options: str,
    budget: Budget | None = None,
) -> str:
    """A page about one target.

    Args:
        one: the target.
        outcomes: its results.
        claims: of all targets, by their keys.
        options: of the command that gave the results, such as ``--budget quick``.
        budget: whose results are shown; by default the one that there are enough runs of.
    """
    run = f"attractor reproduce {one.key} {options}"
    lines = [f"# {one.key}: {one.what}", f"{one.document}, lines {one.lines} of its text. `{run}`."]
    lines += [f"{one.note[0].upper()}{one.note[1:]}."] if one.note else []
    return "\n\n".join([*lines, part(one, outcomes, claims, budget)]) + "\n"


def overview() -> str:
    """Every target: what it takes, and what there is."""
    rows = []
    for one in TARGETS.values():
        takes = [told(cost(one, budget)) for budget in ("quick", "full")]
        also = f"also {', '.join(one.twins)}" if one.twins else ""
        aside = "; ".join(filter(None, (one.note, also)))
        what = f"{one.what} ({aside})" if aside else one.what
        rows.append([f"`{one.key}`", what, ", ".join(one.data), *takes, status(one)])
    columns = ("target", "what", "data", "quick", "full", "status")
    return markdown(columns, rows, right=(3, 4))


def content(name: str, claims: Mapping[str, Sequence[Finding]]) -> str:
    """What goes into a generated part: summary, comparison, race, or results of a target."""
    if name in SUMMARY:
        return SUMMARY[name](claims)
    if name == "numbers":
        return numbered()
    if name == "targets":
        return overview()
    if name == "asides":
        rows = [[places, why] for places, why in left_out()]
        return markdown(("place", "what it is"), rows)
    if name in COMPARISONS:
        return compared(name)
    if name in RACES:
        return raced(name)
    one = target(name)
    return part(one, kept(one), claims)


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
