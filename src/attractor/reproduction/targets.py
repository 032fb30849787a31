"""What can be reproduced: one entry for each table, figure and claim of the documents."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from attractor.errors import InputError, unknown
from attractor.reproduction.computed.settings import is_configured
from attractor.reproduction.outcomes import WITHOUT_RUNS, Take
from attractor.reproduction.published import DOCUMENTS, Number

Budget = Literal["quick", "full"]
Test = Literal["higher", "lower", "same", "no lower", "steadier"]

LEFT = "thousand_left"
"""In the place of a measure: thousands of parameters that are not pruned."""


@dataclass(frozen=True)
class Source:
    """An experiment that gives numbers of a target.

    Args:
        full: the experiment at the budget of the document.
        quick: one that takes minutes: a shorter experiment, or the full one with few seeds.
        quick_seeds: the seeds of the latter; empty for those of its file.
        rows: by the row of the document, the label of our variant.
        quick_rows: the same for the quick experiment, where its labels are others; empty where it
            has no such variant.
        columns: by the column of the document, our measure, as runs end with it; ``/best``,
            ``/deviation`` and ``/p`` after it take the best and the standard deviation over seeds,
            and the p of a t test of two independent samples. ``config:train.steps`` is a setting
            of the full configuration, ``task:baseline`` what its task works out,
            ``thousand_left`` the parameters that are not pruned.
        prefix: what the rows of the document have before the names in ``rows``.
        split: takes the mean of what was logged in this split from step ``first`` to ``last``, or,
            without ``last``, the best of it.
        against: by the row of the document, the label of another variant beside which ours stands.
        quick_against: the same for the quick experiment, where its labels are others.
        relation: what is taken of the two: ours less the other, ours over the other, or how much
            less ours has, as a share of the other.
        bounds: by the column of the document, on which side of a published bound ours has to be.
        test: which of the two is said to be higher, where the bound is on a p.
    """

    full: str | None = None
    quick: str | None = None
    quick_seeds: tuple[int, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)
    quick_rows: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    split: str = ""
    first: int = 0
    last: int = 0
    against: Mapping[str, str] = field(default_factory=dict)
    quick_against: Mapping[str, str] = field(default_factory=dict)
    relation: Literal["difference", "ratio", "removed"] = "difference"
    bounds: Mapping[str, Literal["below", "above"]] = field(default_factory=dict)
    test: Literal["higher", "lower"] = "higher"

    def has(self, number: Number) -> bool:
        """Whether a published number is one of those that this gives."""
        row = number.row.removeprefix(self.prefix)
        named = number.row.startswith(self.prefix) and row in self.rows
        return named and number.column in self.columns

    def label(self, row: str, budget: Budget = "full") -> str:
        """Our variant for a row of the document."""
        own = row.removeprefix(self.prefix)
        return self.quick_rows.get(own, self.rows[own]) if budget == "quick" else self.rows[own]

    def other(self, row: str, budget: Budget = "full") -> str | None:
        """The variant beside which ours stands; ``None`` where it stands alone."""
        own = self.against.get(row)
        return self.quick_against.get(row, own) if budget == "quick" else own

    @property
    def runs(self) -> bool:
        """Whether it takes runs: not if all of its numbers are configured."""
        return not self.columns or not all(map(is_configured, self.columns.values()))

    def ends(self, column: str) -> bool:
        """Whether the numbers of a column are measures that runs of one variant end with."""
        measure = self.columns[column]
        worked_out = is_configured(measure) or measure == LEFT
        return not self.split and not self.against and not worked_out

    def experiment(self, budget: Budget) -> str | None:
        return self.full if budget == "full" else self.quick


@dataclass(frozen=True)
class Claim:
    """A comparison that a document makes, as a test on runs that share their seeds.

    Args:
        says: the claim, in our words.
        experiment: whose runs decide, at full budget.
        quick: the experiment whose runs are looked at with a quick budget.
        ours: the label of the variant that is claimed to be better.
        other: that of the one it is compared with; empty where there is a bound.
        measure: what is compared, as runs end with it.
        test: ``higher`` or ``lower`` (paired t test), ``same`` (within ``margin``, two one-sided
            tests), ``no lower`` (by more than ``margin``, one-sided) or ``steadier`` (paired t test
            on distances from the median).
        bound: a number in the place of the other variant.
        quick_bound: that of a quick budget, if it is another.
        quick_labels: by the label of a variant, the one that the quick experiment has for it.
        margin: what counts as the same, in units of the measure.
        split: takes the mean of a logged row of this split, from step ``first`` to ``last``, or
            over the last fifth of the updates where there is no ``last``.
        other_first: where the window of the other one starts, if it has one of its own.
        other_last: and where that ends.
        take: of logged rows, not their mean, but ``median`` or ``swing``, the mean change from one
            to the next.
        why: by verdict, what explains it.
        other_measure: that of the other, where one variant is compared with itself in another way.
        control: whether it is a comparison of ours, which no document makes.
        ceiling: of the measure ``diverged``: the test loss above which a run has diverged as well,
            though its numbers are finite.
    """

    says: str
    experiment: str
    ours: str
    other: str = ""
    measure: str = ""
    test: Test = "higher"
    quick: str | None = None
    bound: float | None = None
    quick_bound: float | None = None
    quick_labels: Mapping[str, str] = field(default_factory=dict)
    margin: float = 0.0
    split: str | None = None
    first: int = 0
    last: int = 0
    other_first: int | None = None
    other_last: int | None = None
    take: Take = "mean"
    lines: str = ""
    why: Mapping[str, str] = field(default_factory=dict)
    other_measure: str = ""
    control: bool = False
    ceiling: float = math.inf

    def label(self, name: str, budget: Budget) -> str:
        """Our variant, as the experiment of a budget calls it."""
        return self.quick_labels.get(name, name) if budget == "quick" else name


@dataclass(frozen=True)
class Contest:
    """A task in which networks are ranked, for a table that counts who is among the best."""

    experiment: str
    measure: str
    rows: Mapping[str, str]
    test: Literal["higher", "lower"] = "higher"
    quick: str | None = None


@dataclass(frozen=True)
class Target:
    """A table, a figure or a claim of a document, and what it takes to reproduce it.

    Args:
        key: document and place, such as ``000/table-6.1``.
        kind: ``table``, ``figure`` or ``claim``.
        what: it is about, in our words.
        lines: where it stands in the text of the document.
        data: the data sets that are needed.
        sources: the experiments that give its numbers.
        claims: what it is said to show.
        figure: the name by which ``attractor figure`` draws it.
        tolerance: how far from a published number a mean may be and still count as close, in its
            unit.
        derived: the targets whose results this one is made of.
        claims_of: those of them whose claims are shown with this one; they count there alone.
        contests: where this one counts who is among the best.
        note: what a reader must know: why there is no configuration, or what is different.
        see: a page of the documentation with more.
        unjudged: by the column of the document, why there is no verdict on its numbers.
        twins: other places that say the same, such as those of a paper that a thesis repeats. They
            are accepted in the place of the key.
    """

    key: str
    kind: Literal["table", "figure", "claim"]
    what: str
    lines: str = ""
    data: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    claims: tuple[Claim, ...] = ()
    figure: str = ""
    tolerance: float = 1.0
    derived: tuple[str, ...] = ()
    claims_of: tuple[str, ...] = ()
    contests: tuple[Contest, ...] = ()
    note: str = ""
    see: str = ""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    twins: tuple[str, ...] = ()

    @property
    def document(self) -> str:
        return DOCUMENTS[self.key.partition("/")[0]]

    @property
    def name(self) -> str:
        """Without the document, such as ``table-6.1``."""
        return self.key.partition("/")[2]

    @property
    def slug(self) -> str:
        """As a file is named, such as ``000-table-6.1``."""
        return self.key.replace("/", "-")

    def experiments(self, budget: Budget) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """What to run: by experiment its seeds (empty for those of its file) and its variants."""
        found: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}

        def add(name: str | None, seeds: tuple[int, ...], labels: tuple[str, ...]) -> None:
            if name is not None and name not in WITHOUT_RUNS:
                old_seeds, old = found.get(name, (seeds, ()))
                every = dict.fromkeys(filter(None, (*old, *labels)))
                found[name] = (old_seeds or seeds, tuple(every))

        for one in filter(lambda source: source.runs, self.sources):
            quick = budget == "quick"
            rows = {**one.rows, **(one.quick_rows if quick else {})}
            others = {**one.against, **(one.quick_against if quick else {})}
            seeds = one.quick_seeds if quick else ()
            add(one.experiment(budget), seeds, (*rows.values(), *others.values()))
        for claim in self.claims:
            name = claim.experiment if budget == "full" else claim.quick
            labels = (claim.label(claim.ours, budget), claim.label(claim.other, budget))
            add(name, found.get(name or "", ((), ()))[0], labels)
        return found


def _target(key: str, entry: dict[str, Any]) -> Target:
    sources = tuple(
        Source(**{**one, "quick_seeds": tuple(one.get("quick_seeds", ()))})
        for one in entry.pop("source", ())
    )
    claims = tuple(Claim(**one) for one in entry.pop("claim", ()))
    contests = tuple(Contest(**one) for one in entry.pop("contest", ()))
    return Target(
        key,
        sources=sources,
        claims=claims,
        contests=contests,
        data=tuple(entry.pop("data", ())),
        derived=tuple(entry.pop("derived", ())),
        claims_of=tuple(entry.pop("claims_of", ())),
        twins=tuple(entry.pop("twins", ())),
        **entry,
    )


def _read() -> tuple[dict[str, Target], dict[str, str]]:
    found: dict[str, Target] = {}
    aside: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "documents").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        for entry in document["target"]:
            key = entry.pop("key")
            found[key] = _target(key, entry)
        for left in document.get("aside", ()):
            aside |= dict.fromkeys(left["places"], left["why"])
    return found, aside


TARGETS, ASIDES = _read()
"""Targets by key; by other places, where there is nothing to compare, what there is."""


TWINS: dict[str, str] = {twin: one.key for one in TARGETS.values() for twin in one.twins}
"""By another place that says the same, the key of the target."""


def target(name: str) -> Target:
    """A target by its key, one of its twins, or a place alone where only one document has it.

    Example:
        >>> target("table-6.1").key, target("001/table-4.1").kind
        ('000/table-6.1', 'table')
        >>> target("003/table-2").key
        '000/table-4.3'
    """
    if (key := TWINS.get(name, name)) in TARGETS:
        return TARGETS[key]
    same = sorted(key for key in (*TARGETS, *TWINS) if key.partition("/")[2] == name)
    left = [key for key in ASIDES if name in (key, key.partition("/")[2])]
    if left and not same:
        raise InputError(
            f"expected a place that can be reproduced, but {left[0]} cannot: {ASIDES[left[0]]}. "
            "`attractor reproduce list` shows all that can."
        )
    if len(same) == 1:
        return target(same[0])
    if same:
        raise InputError(
            f"expected one document, but {name!r} is in several: {', '.join(same)}. Try {same[0]}."
        )
    raise unknown("target", name, names(), listed="attractor reproduce list")


def names() -> list[str]:
    """All that a target can be called, whether or not several have that name."""
    keys = [*TARGETS, *TWINS]
    return [*keys, *(key.partition("/")[2] for key in keys)]
