"""The papers behind the methods, as BibTeX."""

import re
from functools import cache
from pathlib import Path

from attractor.errors import unknown


@cache
def _entries() -> dict[str, str]:
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    found = re.findall(r"^@\w+\{([^,]+),.*?^\}", text, flags=re.MULTILINE | re.DOTALL)
    bodies = re.findall(r"^@\w+\{.*?^\}", text, flags=re.MULTILINE | re.DOTALL)
    return dict(zip(found, bodies, strict=True))


class BibTeX(str):
    """An entry that an interactive session shows as it is, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def bibtex(reference: str) -> BibTeX:
    """The entry with this key."""
    if reference not in _entries():
        raise unknown("reference", reference, _entries())
    return BibTeX(_entries()[reference])


def year(reference: str) -> int:
    """When the paper came out."""
    found = re.search(r"year\s*=\s*\{(\d{4})\}", bibtex(reference))
    assert found, f"{reference} has no year"
    return int(found.group(1))
