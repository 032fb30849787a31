"""The claims of the documents on the runs of a page, as `attractor reproduce` decides them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from attractor.estimates import Estimate
from attractor.report.configured import changed
from attractor.report.rounding import plain, with_interval
from attractor.reproduction.claims import Finding, corrected, examined
from attractor.reproduction.outcomes import EXACT, Outcomes, of_runs, stored
from attractor.reproduction.tables import SHARES, all_claims, claim_rows
from attractor.reproduction.targets import TARGETS, Budget, Claim, Target
from attractor.reproduction.verdicts import FEWEST
from attractor.results.variants import variants
from attractor.runs.read import Run

HEADINGS = ("Claim", "Place", "Ours less the other", "Seeds as claimed", "p (Holm)", "Verdict")

DECIDED = {
    "holds": ("holds", "hold"),
    "contradicted": ("is contradicted", "are contradicted"),
    "not shown": ("is not shown", "are not shown"),
    "few seeds": ("has too few seeds", "have too few seeds"),
}
"""How a verdict is told of one claim and of several."""
LEANING = {
    "quick, as claimed": "agree with",
    "quick, open": "cannot tell on",
    "quick, the other way": "point the other way on",
}
"""What short runs do."""


@dataclass(frozen=True)
class Told:
    """A claim, what the runs of a page say of it, the target it is of, and whose runs decide."""

    target: Target
    experiment: str
    finding: Finding

    @property
    def labels(self) -> frozenset[str]:
        """The two variants that are compared, as the experiment calls them."""
        claim = self.finding.claim
        budget: Budget = "full" if self.experiment == claim.experiment else "quick"
        return frozenset({claim.label(claim.ours, budget), claim.label(claim.other, budget)})

    @property
    def cells(self) -> tuple[tuple[str, float | None], ...]:
        """In the order of ``HEADINGS``: text, and the number that it sorts by."""
        says, difference, half, _, seeds, p, verdict = claim_rows([self.finding])[0]
        number = difference.removesuffix(" points")
        ours = f"{number} {half}".strip() + difference.removeprefix(number)
        if self.finding.claim.bound is not None:
            ours = _beside_bound(self.finding)
        if self.finding.verdict == "few seeds":
            seeds = f"{self.finding.right} of {self.finding.n}"
        place = f"{self.target.document}, {self.target.name.replace('-', ' ')}"
        return (
            (says, None),
            (place, None),
            (ours, self.finding.difference),
            (seeds, self.finding.right),
            (p, self.finding.corrected),
            (verdict, None),
        )

    def compares(self, label: str, metric: str) -> bool:
        """Whether it says if a variant ends with a better measure than another."""
        claim = self.finding.claim
        plain = claim.split is None and claim.bound is None and not claim.other_measure
        asked = claim.test in ("higher", "lower") and claim.measure == metric
        return plain and asked and label in self.labels


def claims_on(runs: Sequence[Run]) -> dict[str, list[Told]]:
    """By experiment, the claims that runs of a page say something of.

    All p are corrected as `attractor reproduce` does for the target of the claim: over its claims
    on these runs and those of all other targets on the stored results.

    Args:
        runs: of any experiments. Those of a changed budget or of another configuration than
            today's take no part, nor do those whose label covers several settings.
    """
    known = {
        name
        for target in TARGETS.values()
        for one in target.claims
        for name in (one.experiment, one.quick)
    }
    own = [run for run in runs if run.experiment in known]
    there = {run.experiment for run in own}
    page = _outcomes(own)
    found: dict[str, list[Told]] = {}
    for target in TARGETS.values():
        if there.isdisjoint(name for one in target.claims for name in (one.experiment, one.quick)):
            continue
        for told in _decided(target, page):
            if told.experiment in there and told.finding.n:
                found.setdefault(told.experiment, []).append(told)
    return found


def pool(told: Sequence[Told]) -> list[Finding]:
    """All claims that p is corrected over: these, and the stored ones of other targets."""
    own = {one.target.key for one in told}
    others = [one for key, kept in _kept().items() if key not in own for one in kept]
    return [*(one.finding for one in told), *others]


def counted(told: Sequence[Told]) -> list[str]:
    """How many claims have which verdict, as a sentence; none where there are no claims."""
    if not told:
        return []
    counts = Counter(one.finding.told for one in told)
    left = len(told)
    decided, leaning = [], []
    for verdict in [*DECIDED, *LEANING]:
        if not (n := counts[verdict]):
            continue
        left -= n
        number = "the other" if len(told) == 2 and (n, left) == (1, 0) else _word(n)
        if verdict in DECIDED:
            decided.append(f"{number} {DECIDED[verdict][n > 1]}")
        else:
            leaning.append(f"{LEANING[verdict]} {number}")
    short = [f"short runs {joined(leaning)}"] if leaning else []
    claims = "claim" if len(told) == 1 else "claims"
    return [f"Of {_word(len(told))} published {claims}, {joined([*decided, *short])}."]


def _word(number: int) -> str:
    return "one" if number == 1 else str(number)


def joined(parts: Sequence[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _beside_bound(one: Finding) -> str:
    """Ours with its interval, and the bound, both in per cent if they are shares."""
    bound, difference = one.claim.bound, one.difference
    if bound is None or difference is None:
        return ""
    share = any(word in one.claim.measure for word in SHARES)
    ours = Estimate((), difference + bound, difference + bound, one.half_width)
    word = "said" if one.claim.test == "same" else "bound"
    return f"{with_interval(ours, share)}, {word} {plain(bound, share)}"


def _outcomes(runs: Sequence[Run]) -> Outcomes:
    own = [run for run in runs if run.budget != "changed" and not changed(run)]
    plain = [group for group in variants(own) if group.label == group.runs[0].label]
    clear = [run for group in plain for run in group.runs]
    return of_runs(clear, {(run.experiment, run.label) for run in clear})


def _decided(target: Target, page: Outcomes) -> list[Told]:
    """The claims of a target, with p corrected beside the stored ones of other targets."""
    known = page.joined(stored(f"{target.slug}.{EXACT}"))
    own = [_looked_at(target, claim, known) for claim in target.claims]
    anew = (target.key, *target.claims_of)
    also = [_looked_at(target, c, known) for key in target.claims_of for c in TARGETS[key].claims]
    others = [one for key, kept in _kept().items() if key not in anew for one in kept]
    each = corrected([*(one.finding for one in (*own, *also)), *others])
    return [Told(target, one.experiment, found) for one, found in zip(own, each, strict=False)]


def _looked_at(target: Target, claim: Claim, found: Outcomes) -> Told:
    """At the document's budget, or, where that has too few seeds, at the one with more."""
    full, quick = examined(claim, found), examined(claim, found, "quick")
    if claim.quick is not None and full.n < min(FEWEST, quick.n):
        return Told(target, claim.quick, quick)
    return Told(target, claim.experiment, full)


@cache
def _kept() -> dict[str, list[Finding]]:
    return all_claims()
