"""Which variant is ahead, and of which that is shown: paired over the seeds that both have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attractor.estimates import Estimate
from attractor.report.claims import Told, counted, joined, pool
from attractor.report.configured import changes
from attractor.report.rounding import plain, with_interval
from attractor.reproduction.claims import LEVEL, Finding, corrected, paired
from attractor.reproduction.published import Published, published
from attractor.reproduction.targets import TARGETS, Claim, Test
from attractor.reproduction.verdicts import judge
from attractor.results.measures import main_metric, measure, words
from attractor.results.numbers import MISSING, is_share, plural
from attractor.results.summary import SummaryRow, summary
from attractor.results.variants import variants
from attractor.runs.read import Run

NOT_SHOWN = "not shown"
BEHIND = "behind"
FEW = "few seeds"


@dataclass(frozen=True)
class Standing:
    """How the variants of a chapter stand to the one with the best mean.

    Args:
        metric: what they are compared by.
        share: whether it is shown in per cent.
        best: the label with the best mean; ``None`` if there are no numbers.
        others: by label, the paired difference of the best one to it, corrected by Holm.
        claimed: whether claims of the documents were tested on the runs. If so, p is corrected
            over all claims too, and a comparison that is a claim has the p of that claim.
    """

    metric: str
    share: bool
    best: str | None
    others: Mapping[str, Finding]
    claimed: bool = False

    def told(self, label: str) -> str:
        """``behind``, ``not shown`` or, with fewer than three shared seeds, ``few seeds``."""
        found = self.others[label]
        if found.corrected is None or found.effect is None:
            return FEW
        return BEHIND if found.corrected < LEVEL and found.effect > 0 else NOT_SHOWN

    @property
    def proven(self) -> bool:
        """Whether the best is ahead of all others."""
        return bool(self.others) and all(self.told(one) == BEHIND for one in self.others)


def standing(runs: Sequence[Run], claims: Sequence[Told] = ()) -> Standing:
    """Compare each variant of an experiment and budget with the best.

    Args:
        runs: of one experiment and budget.
        claims: on these runs, so that no comparison is shown here and not shown there.
    """
    metric = main_metric(runs)
    what = measure(metric, runs)
    values = {
        group.label: {run.seed: run.test[metric] for run in group.runs if metric in run.test}
        for group in variants(runs)
    }
    values = {label: found for label, found in values.items() if found}
    every = [value for found in values.values() for value in found.values()]
    share = is_share(what, every)
    if not values or what.goal == "none":
        return Standing(metric, share, None, {})
    means = {label: sum(found.values()) / len(found) for label, found in values.items()}
    best = (max if what.goal == "max" else min)(means, key=lambda label: means[label])
    test: Test = "higher" if what.goal == "max" else "lower"
    tests = {
        label: paired(Claim("", "", best, label, metric, test), values[best], found)
        for label, found in values.items()
        if label != best
    }
    tested = [one for one in claims if one.finding.corrected is not None]
    told = {one.labels - {best}: one.finding for one in tested if one.compares(best, metric)}
    raised = {
        label: replace(test, corrected=told[frozenset({label})].corrected)
        for label, test in tests.items()
        if frozenset({label}) in told
    }
    rest = [test for label, test in tests.items() if label not in raised]
    fresh = iter(corrected([*rest, *(pool(tested) if tested else ())]))
    others = {label: raised[label] if label in raised else next(fresh) for label in tests}
    return Standing(metric, share, best, others, bool(tested))


def findings(runs: Sequence[Run], claims: Sequence[Told] = ()) -> list[str]:
    """What came out, in sentences: who is ahead, of whom that is shown, what was published."""
    stand = standing(runs, claims)
    rows = {row.label: row for row in summary(runs)}
    if stand.best is None:
        return [_nothing(runs)]
    published = [*_beside(runs, rows), *counted(claims)]
    level = _level(rows)
    first = _tied(level, stand, rows) if len(level) > 1 else _first(stand, rows[stand.best])
    return [first, *_apart(stand, level), *published]


def headline(runs: Sequence[Run], claims: Sequence[Told] = ()) -> str:
    """The main finding in one sentence."""
    stand = standing(runs, claims)
    if not stand.others or stand.best is None:
        return findings(runs)[0]
    rows = {row.label: row for row in summary(runs)}
    row = rows[stand.best]
    if len(level := _level(rows)) > 1:
        return _tied(level, stand, rows)
    number = f"{with_interval(row.estimate, stand.share)}{'%' if stand.share else ''}"
    what = words(stand.metric)
    total = len(stand.others)
    if all(stand.told(label) == FEW for label in stand.others):
        few = "too few shared seeds to tell whether that is luck"
        return f"{row.label} has the best mean {what}, {number}: {few}."
    every = f"all {total} others" if total > 1 else listed([*stand.others])
    if stand.proven:
        return f"{row.label} is shown to be ahead of {every}: mean {what} {number}."
    ahead = sum(stand.told(label) == BEHIND for label in stand.others)
    some = f"and is shown to be ahead of {ahead} of {total} others"
    none = f"but is not shown to be ahead of {'any other' if total > 1 else every}"
    return f"{row.label} has the best mean {what}, {number}, {some if ahead else none}."


def compared(stand: Standing) -> str:
    """How variants were compared, and over what p is corrected; empty if there is one alone."""
    if not stand.others:
        return ""
    tests = sum(one.p is not None for one in stand.others.values())
    also = " and all claims of the documents that have results" if stand.claimed else ""
    how = (
        f"“behind” if a paired t test, corrected by Holm over the {plural(tests, 'comparison')} "
        f"with the best{also}, is below 5%, else “not shown”."
        if tests
        else "fewer than three shared seeds are not tested."
    )
    return (
        "Behind the best: the difference to the variant with the best mean, paired over the seeds "
        "that both have, ± half of its 95% interval. The interval is of this comparison alone and "
        "the test is corrected, so a difference whose interval leaves out zero may be “not shown”; "
        f"{how} A bold number is significantly better than every other variant's."
    )


def _first(stand: Standing, row: SummaryRow) -> str:
    unit = "%" if stand.share else ""
    number = f"{with_interval(row.estimate, stand.share)}{unit}"
    what = words(stand.metric)
    if not stand.others:
        over = "one seed" if row.n == 1 else f"mean over {row.n} seeds"
        return f"{row.label} reaches {_a(what)} of {number} ({over})."
    return f"{row.label} has the best mean {what}: {number} over {plural(row.n, 'seed')}."


def _nothing(runs: Sequence[Run]) -> str:
    """Why there are no results."""
    why = "No run is done yet"
    if any(run.status == "done" for run in runs):
        why = "No run that is done measured a number that ranks"
    elif all(run.status == "failed" for run in runs):
        why = "The run failed" if len(runs) == 1 else f"All {len(runs)} runs failed"
    return f"{why}: there are no results to compare."


def _level(rows: Mapping[str, SummaryRow]) -> list[str]:
    """The variants that share the best mean."""
    return [label for label, row in rows.items() if row.rank == 1]


def _tied(level: Sequence[str], stand: Standing, rows: Mapping[str, SummaryRow]) -> str:
    """That nobody is first."""
    found = rows[level[0]].estimate
    number = f"{plain(found.mean if found else None, stand.share)}{'%' if stand.share else ''}"
    among = sum(row.estimate is not None for row in rows.values())
    who = listed(level)
    if len(level) == among > 2:
        who = f"All {among} variants"
    return (
        f"{who} have the same {'best ' * (len(level) < among)}mean {words(stand.metric)}: {number}."
    )


def _a(what: str) -> str:
    """A measure with its article.

    Example:
        >>> _a("accuracy"), _a("loss"), _a("steps to solve")
        ('an accuracy', 'a loss', 'steps to solve')
    """
    if what.startswith("steps"):
        return what
    return f"{'an' if what[0] in 'aeio' else 'a'} {what}"


def _apart(stand: Standing, level: Sequence[str]) -> list[str]:
    """From whom the best is shown to be apart; nothing of those that are as good."""
    by = {
        word: [one for one in stand.others if stand.told(one) == word and one not in level]
        for word in (BEHIND, NOT_SHOWN, FEW)
    }
    it = str(stand.best) if len(level) > 1 else "it"
    sentences = []
    if by[BEHIND]:
        sentences.append(
            f"Over shared seeds {it} is shown to be ahead of {listed(by[BEHIND])} "
            "(paired t tests, p below 5% when corrected for many tests)."
        )
    if by[NOT_SHOWN]:
        subject = it if len(level) > 1 else "It"
        sentences.append(f"{subject} is not shown to be ahead of {listed(by[NOT_SHOWN])}.")
    if by[FEW]:
        sentences.append(f"With {listed(by[FEW])} {it} shares fewer than three seeds: no test.")
    return sentences


def _beside(runs: Sequence[Run], rows: Mapping[str, SummaryRow]) -> list[str]:
    full = runs[0].budget == "full"
    told: dict[str, int] = {}
    apart = changes(variants(runs))
    for one in published(runs[0].experiment):
        row = None if one.label in apart else rows.get(one.label)
        found = row.estimates.get(one.measure) if row else None
        if found is None or "/" in one.measure:
            continue
        tolerance = TARGETS[one.number.target].tolerance
        _, verdict = judge(one.number, dict(enumerate(found.values)), tolerance, full=full)
        told[verdict] = told.get(verdict, 0) + 1
    if not told:
        return []
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(told.items()))
    return [f"Beside the published numbers: {said}."]


def on_paper(runs: Sequence[Run], metric: str) -> dict[str, Published]:
    """By label, the published number of a measure, where runs are as configured today."""
    apart = changes(variants(runs))
    every = (one for one in published(runs[0].experiment) if one.measure == metric)
    return {one.label: one for one in every if one.label not in apart}


def behind(stand: Standing, label: str) -> tuple[str, float | None]:
    """What the table says of a variant beside the best, and what it sorts by."""
    if label == stand.best:
        return "best mean", 0.0
    found = stand.others.get(label)
    if found is None or found.difference is None:
        return MISSING, None
    size = abs(found.difference)
    shown = with_interval(Estimate((), size, size, found.half_width), stand.share)
    return f"{shown}, {stand.told(label)}", size


def listed(labels: Sequence[str], most: int = 4) -> str:
    """``A``, ``A and B``, ``A, B and 3 others``; labels with a comma in quotes."""
    labels = [f"“{label}”" if "," in label else label for label in labels]
    if len(labels) > most:
        return f"{', '.join(labels[: most - 1])} and {len(labels) - most + 1} others"
    return joined(labels)
