"""The claims that a reader asks for first, and how they came out, in a table for a minute."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attractor.reproduction.claims import Finding
from attractor.reproduction.tables import is_share
from attractor.results.table import markdown

Claims = Mapping[str, Sequence[Finding]]


@dataclass(frozen=True)
class Headline:
    """A row of the table.

    Args:
        claim: in a few words.
        why: it came out as it did.
        rests: by what it is compared with or on, ``TARGET: CLAIM``, whose test decides.
    """

    claim: str
    why: str
    rests: Mapping[str, str]


def _read() -> tuple[Headline, ...]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(Headline(**row) for row in tomllib.loads(text)["row"])


HEADLINES = _read()


def headlined(claims: Claims) -> str:
    """The table; verdicts and differences are those of stored results."""
    rows = [[one.claim, _came_out(one, claims), one.why] for one in HEADLINES]
    return markdown(("claim", "came out?", "why"), rows)


def _came_out(one: Headline, claims: Claims) -> str:
    """What it rests on, by verdict."""
    told: dict[str, list[str]] = {}
    for name, given in one.rests.items():
        found = _finding(given, claims)
        control = ", a control of ours" if found.claim.control else ""
        told.setdefault(found.told, []).append(f"{name} ({_amount(found)}{control})")
    return "; ".join(f"**{verdict}**: {', '.join(each)}" for verdict, each in told.items())


def _finding(given: str, claims: Claims) -> Finding:
    key, _, says = given.partition(": ")
    found = [one for one in claims[key] if one.claim.says == says]
    assert len(found) == 1, f"{key} has {len(found)} claims that say: {says}"
    return found[0]


def _amount(one: Finding) -> str:
    """One number: the difference, rounded; of races, how many seeds were won."""
    if one.difference is None:
        return "no runs"
    if one.claim.measure == "steps_to_solve":
        return f"{one.right} of {one.n} seeds"
    return points(one.difference) if is_share(one) else rounded(one.difference)


def points(share: float) -> str:
    """A share of one in points: whole from ten on, else with one decimal."""
    value = round(100 * share, 1)
    return f"{value:+.{0 if abs(value) >= 10 else 1}f} points"


def rounded(value: float) -> str:
    """Two digits that count, never with an exponent."""
    return f"{float(f'{value:.1e}'):+,.{max(0, 1 - exponent(value))}f}"


def exponent(value: float) -> int:
    """The power of ten of the first digit that is shown."""
    return int(f"{value:.1e}".partition("e")[2])
