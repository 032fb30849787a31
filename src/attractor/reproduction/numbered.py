"""How the published numbers came out, counted by verdict and document."""

from collections import Counter

from attractor.reproduction.published import DOCUMENTS
from attractor.reproduction.stock import kept
from attractor.reproduction.tables import budget_of, number_rows
from attractor.reproduction.targets import TARGETS
from attractor.results.table import markdown

MEANS = {
    "agrees": "within our interval, which is narrow; or exactly so",
    "close": "outside it, within the tolerance",
    "better": "ours is better by more than the tolerance",
    "worse": "ours is worse by more than that",
    "differs": "ours is elsewhere, and neither is better",
    "undecided": "our interval is too wide to tell",
    "as set": "a setting, which is that of our runs",
    "set otherwise": "a setting, which is not",
    "no interval": "a best run, a deviation or a p: shown, not judged",
    "not judged": "no rule to judge by",
    "not solved": "an update at which not all of our runs had solved the task",
    "few seeds": "fewer than three of full runs",
    "quick": "shorter runs than the document's: shown, not judged",
    "not run": "no results yet",
    "quoted": "taken by the document from other papers",
}
"""Verdicts in the order of the page, and what they mean in a few words."""


def numbered() -> str:
    """How many published numbers have which verdict, by document."""
    counts = {key: Counter[str]() for key in DOCUMENTS}
    for key, one in TARGETS.items():
        found = kept(one)
        rows = number_rows(one, found, budget_of(one, found))
        counts[key.partition("/")[0]].update(row[-1].partition(":")[0] for row in rows)
    shown = {DOCUMENTS[key]: found for key, found in counts.items() if found}
    return tabled("numbers", MEANS, shown)


def tabled(what: str, means: dict[str, str], counts: dict[str, Counter[str]]) -> str:
    """A row for each verdict that was given, a column for each document, and the sums."""
    columns = [sum(counts.values(), Counter[str]()), *counts.values()]
    assert columns[0].keys() <= means.keys(), columns[0].keys() - means.keys()
    rows = [
        [f"**{verdict}**: {word}", *(str(found[verdict] or "") for found in columns)]
        for verdict, word in means.items()
        if columns[0][verdict]
    ]
    rows.append([what, *(str(found.total()) for found in columns)])
    return markdown(("verdict", "all", *counts), rows, right=range(1, len(columns) + 1))
