"""Results as rows of text, for the terminal and for pages."""

import math
from collections.abc import Iterable, Set

from attractor.reproduction.claims import Finding, corrected, examined
from attractor.reproduction.derived import Place, competing, places
from attractor.reproduction.outcomes import EXACT, Outcomes
from attractor.reproduction.published import of_target
from attractor.reproduction.stock import kept
from attractor.reproduction.targets import TARGETS, Budget, Claim, Target
from attractor.reproduction.verdicts import FEWEST, Judged, judged

NONE = ""

NUMBERS = ("row", "column", "published", "ours", "95%", "seeds", "verdict")
CLAIMS = ("claim", "difference", "95%", "effect", "seeds", "p (Holm)", "verdict")


def number_rows(target: Target, outcomes: Outcomes, budget: Budget) -> list[list[str]]:
    """A row for each published number."""
    if target.contests:
        return _place_rows(target, places(target.contests, outcomes, budget), budget)
    return [_number_row(one) for one in judged(target, outcomes, budget)]


def _number_row(one: Judged) -> list[str]:
    number, ours = one.number, one.ours
    spread = NONE if number.spread is None else f" ± {number.spread:g}"
    mean = half = seeds = NONE
    if ours is not None:
        digits = max(2, -math.floor(math.log10(2 * number.rounding)))
        mean, seeds = f"{ours.mean:,.{digits}f}", str(ours.n)
        half = NONE if ours.half_width is None else f"± {ours.half_width:,.{digits}f}"
        mean += NONE if one.over_tasks is None else f" ({one.over_tasks:.1f} over tasks)"
    elif one.single is not None:
        mean = _number(one.single)
    lost = ((one.diverged, "diverged"), (one.unsolved, "unsolved"))
    seeds = ", ".join(filter(None, (seeds, *(f"{n} {word}" for n, word in lost if n))))
    unit = f"({number.unit})" if number.unit.startswith("1 =") else number.unit
    published = f"{number.value:,g}{spread} {unit}"
    verdict = f"{one.verdict}: {one.why}" if one.why else one.verdict
    return [number.row, number.column, published, mean, half, seeds, verdict]


def _place_rows(target: Target, found: Iterable[Place], budget: Budget) -> list[list[str]]:
    by_row = {one.row: one for one in found}
    rows = []
    for number in of_target(target.key):
        place = by_row[number.row]
        best, surely, of = place.among(1 if "1" in number.column else 2)
        if not of or (budget == "full" and of < place.asked):
            verdict = f"not run: {of} of {place.asked} tasks"
        elif budget == "quick":
            verdict = "quick"
        elif surely <= number.value <= best:
            verdict = "agrees" if surely == best else "undecided"
        else:
            verdict = "differs"
        rows.append(
            [
                number.row,
                number.column,
                f"{number.value:g} {number.unit}",
                f"{best} of {of}, {surely} surely" if of else NONE,
                NONE,
                NONE,
                verdict,
            ]
        )
    return rows


def remark(target: Target, outcomes: Outcomes, budget: Budget) -> str:
    """What a table of places rests on: how many networks competed in each of the tasks."""
    if not target.contests:
        return NONE
    each = competing(target.contests, outcomes, budget)
    told = ", ".join(f"`{name}` {networks}" for name, networks in each.items())
    return f"Networks that competed, by experiment: {told}."


def claim_row(one: Finding, *, share: bool = True) -> list[str]:
    """A claim, the difference of the two variants, and the verdict."""
    scale = 100 if share else 1
    difference = _difference(one, scale)
    half = NONE if one.half_width is None else f"± {scale * one.half_width:.2g}"
    known = one.effect is not None and math.isfinite(one.effect)
    effect = f"{one.effect:+.2f}" if known else NONE
    p = NONE if one.corrected is None else _p(one.corrected)
    seeds = f"{one.right} of {one.n}" if one.half_width is not None else str(one.n or NONE)
    if one.claim.experiment == EXACT and one.n:
        seeds = "exact"
    seeds += f", {one.diverged} diverged" if one.diverged else NONE
    says = f"{one.claim.says} (a control of ours)" if one.claim.control else one.claim.says
    return [says, difference, half, effect, seeds, p, one.told]


def _difference(one: Finding, scale: float) -> str:
    """Ours less the other's; beside a bound, ours and the bound."""
    if one.difference is None:
        return NONE
    if one.claim.bound is None:
        if scale == 100:
            return f"{round(100 * one.difference, 3):+.3g} points"
        return f"{one.difference:+.3g}"
    ours = one.difference + one.claim.bound
    word = "said" if one.claim.test == "same" else "bound"
    return f"{_number(ours)}, {word} {_number(one.claim.bound)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _p(value: float) -> str:
    return "< 0.001" if value < 1e-3 else f"{value:.3f}"


SHARES = ("accuracy", "transfer", "error", "sparsity")


def is_share(one: Finding) -> bool:
    """Whether the measure of a claim is a share of one, to be shown in points."""
    return one.claim.bound is None and any(word in one.claim.measure for word in SHARES)


def claim_rows(found: Iterable[Finding]) -> list[list[str]]:
    """A row for each claim."""
    return [claim_row(one, share=is_share(one)) for one in found]


def budget_of(target: Target, outcomes: Outcomes) -> Budget:
    """Full where there are results of the document's budget, from enough seeds; else quick.

    A table of places is full where all of its contests are.
    """
    full = [{one.experiment} for one in target.contests] or [{*target.experiments("full")}]
    return "full" if all(_has_enough(names, outcomes) for names in full) else "quick"


def _has_enough(names: Set[str], outcomes: Outcomes) -> bool:
    seeds = {r.seed for r in outcomes.rows if r.budget == "full" and r.experiment in names}
    return len(seeds) >= FEWEST


def all_claims(own: Target | None = None, new: Outcomes | None = None) -> dict[str, list[Finding]]:
    """By target, its claims, corrected over all that have results.

    Args:
        own: a target whose results are not the stored ones.
        new: its results, which decide the claims of others that are shown with it, too.
    """
    each: list[tuple[str, Finding]] = []
    anew = () if own is None or new is None else (own.key, *own.claims_of)
    for key, target in TARGETS.items():
        found = new if new is not None and key in anew else kept(target)
        each += [(key, _examined(claim, found)) for claim in target.claims]
    done: dict[str, list[Finding]] = {key: [] for key in TARGETS}
    for (key, _), one in zip(each, corrected(one for _, one in each), strict=True):
        done[key].append(one)
    return done


def _examined(claim: Claim, found: Outcomes) -> Finding:
    """At the document's budget, or, where that has too few seeds, at the one with more."""
    full, quick = examined(claim, found), examined(claim, found, "quick")
    return quick if full.n < min(FEWEST, quick.n) else full
