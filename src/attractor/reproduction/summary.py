"""The first page: which claims hold, which do not and why, to be read in a minute."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from attractor.reproduction.claims import AGAINST_MARGIN, Finding
from attractor.reproduction.costs import costs
from attractor.reproduction.headlines import headlined
from attractor.reproduction.numbered import tabled
from attractor.reproduction.outcomes import WITHOUT_RUNS
from attractor.reproduction.published import DOCUMENTS
from attractor.reproduction.tables import claim_rows
from attractor.results.table import markdown

Claims = Mapping[str, Sequence[Finding]]

VERDICTS = {
    "contradicted": "significantly the other way",
    "contradicted, exact": "counted or worked out, and otherwise",
    "holds": "significantly so",
    "holds, exact": "counted or worked out, and so; no test is needed",
    "not shown": "not significant either way",
    "few seeds": "fewer than three of full runs",
    "quick, as claimed": "short runs agree, and decide nothing",
    "quick, the other way": "short runs say the contrary",
    "quick, open": "short runs cannot tell",
    "not run": "no results yet",
}
"""Of claims, in the order of the first page, with what they mean."""

DECIDED = ("holds", "not shown")


def counted(claims: Claims) -> str:
    """How many claims have which verdict, by document; controls of ours apart."""
    return "\n\n".join(
        [
            _counted(claims, "claims", control=False),
            "Controls of ours, which no document claims:",
            _counted(claims, "controls", control=True),
        ]
    )


def _counted(claims: Claims, what: str, *, control: bool) -> str:
    by_document: dict[str, Counter[str]] = {key: Counter() for key in DOCUMENTS}
    for key, found in claims.items():
        told = (one.told for one in found if one.claim.control == control)
        by_document[key.partition("/")[0]].update(told)
    shown = {DOCUMENTS[key]: counts for key, counts in by_document.items() if counts}
    return tabled(what, VERDICTS, shown)


def contradicted(claims: Claims) -> str:
    """The claims that are false, by runs at the budget of their document or by what is computed."""
    return _listed(claims, lambda one: one.verdict == "contradicted")


def controls(claims: Claims) -> str:
    """Comparisons of ours, which no document makes."""
    return _listed(claims, lambda one: True, control=True)


def decided(claims: Claims) -> str:
    """The other claims that runs at the budget of their document decide."""
    return _listed(claims, lambda one: one.verdict in DECIDED and not _computed(one))


def computed(claims: Claims) -> str:
    """The claims that are counted, worked out or simulated, but for those that are false."""
    return _listed(claims, lambda one: one.verdict in DECIDED and _computed(one))


def quick(claims: Claims) -> str:
    """The claims of which there are short runs alone, or too few: they decide nothing."""
    return _listed(claims, lambda one: one.verdict in ("quick", "few seeds"))


def waiting(claims: Claims) -> str:
    """The claims of which nothing is stored, and the experiments that would decide them."""
    rows = [
        [one.claim.says, f"`{key}`", ", ".join(map(_costed, _asked(one))), one.why]
        for key, found in claims.items()
        for one in found
        if one.verdict == "not run" and not one.claim.control
    ]
    columns = ("claim", "target", "would tell, and minutes of a run", "note")
    return markdown(columns, rows) if rows else "None."


def _asked(one: Finding) -> list[str]:
    return [*dict.fromkeys(filter(None, (one.claim.quick, one.claim.experiment)))]


def _costed(experiment: str) -> str:
    cost = costs().get(experiment)
    return f"`{experiment}`" + (f" ({cost['minutes']:.3g})" if cost else "")


SUMMARY: dict[str, Callable[[Claims], str]] = {
    "headlines": headlined,
    "counts": counted,
    "contradicted": contradicted,
    "controls": controls,
    "decided": decided,
    "computed": computed,
    "quick": quick,
    "waiting": waiting,
}
"""By the name of a generated part, what makes it."""


def _computed(one: Finding) -> bool:
    return one.claim.experiment in WITHOUT_RUNS


def _listed(claims: Claims, wanted: Callable[[Finding], bool], *, control: bool = False) -> str:
    told = [
        (key, one)
        for key, found in claims.items()
        for one in found
        if one.claim.control == control and wanted(one)
    ]
    if not told:
        return "None yet."
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    told.sort(key=lambda item: (order[item[1].told], item[0]))
    rows = [
        [f"**{one.told}**", one.claim.says, _short(one), f"`{key}`", one.why] for key, one in told
    ]
    return markdown(("verdict", "claim", "ours less the other", "target", "why"), rows)


def _short(one: Finding) -> str:
    _, difference, half, _, _, p, _ = claim_rows([one])[0]
    lost = f", {one.diverged} diverged" if one.diverged else ""
    counted = f"{one.n} seed{'s' * (one.n != 1)}{lost}"
    seeds = "" if one.half_width is None and _computed(one) else counted
    one_sided = one.claim.test in AGAINST_MARGIN and one.verdict == "not shown"
    told = (f"{difference} {half}".strip(), seeds, "" if one_sided else p and f"p {p}")
    return ", ".join(filter(None, told))
