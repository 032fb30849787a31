"""What a page warns of: short or changed runs, failures, few seeds, different seeds."""

from collections.abc import Iterable, Sequence

from attractor.report.comparing import listed
from attractor.report.configured import changes
from attractor.results.numbers import plural
from attractor.results.variants import Group
from attractor.runs.environment import mixed
from attractor.runs.read import Run


def cautions(runs: Sequence[Run], groups: Sequence[Group]) -> list[str]:
    """What a reader should know before the numbers."""
    failed = sum(run.status == "failed" for run in runs)
    unfinished = sum(run.status == "unfinished" for run in runs)
    warnings = []
    if runs[0].budget == "quick":
        warnings.append(
            "Quick budget: these runs are much shorter than published ones. "
            "Their numbers show that things work, not how well they can work."
        )
    if runs[0].budget == "changed":
        warnings.append(
            "Changed budget: these runs are longer or shorter than those of the experiment of this "
            "name. Their numbers are not to be read beside published ones."
        )
    if otherwise(groups):
        warnings.append(
            "Changed settings: these runs have no published numbers, claims or verdicts beside "
            f"them where they are not as {runs[0].experiment} is configured today. "
            f"{otherwise(groups)}"
        )
    if failed:
        verb = "was" if failed == 1 else "were"
        warnings.append(
            f"{plural(failed, 'run')} failed and {verb} left out of all means: "
            "read the means as those of the runs that did not fail."
        )
    if unfinished:
        verb, they = ("is", "it") if unfinished == 1 else ("are", "they")
        warnings.append(
            f"{plural(unfinished, 'run')} {verb} not finished: in the curves as far as {they} "
            "came, but not in the numbers of the table."
        )
    if said := mixed(run.environment for run in runs):
        warnings.append(f"{said[0].upper()}{said[1:]}.")
    if all(len(variant.runs) == 1 for variant in groups):
        warnings.append("One seed for each variant: differences may be luck, so no intervals.")
    warnings += _unlike(groups)
    return warnings


def otherwise(groups: Sequence[Group]) -> str:
    """Which variants have other settings than today's configuration, as a sentence, if any do."""
    found = changes(groups)
    if not found:
        return ""
    keys = listed([*dict.fromkeys(key for keys in found.values() for key in keys)], most=8)
    who = "these runs" if len(found) == len(groups) else f"the runs of {listed([*found])}"
    return f"Changed in {who}: {keys}."


def _unlike(groups: Sequence[Group]) -> list[str]:
    """That variants have different seeds, if they do."""
    by_seeds: dict[frozenset[int], list[str]] = {}
    for group in groups:
        if done := frozenset(run.seed for run in group.runs if run.status == "done"):
            by_seeds.setdefault(done, []).append(group.label)
    if len(by_seeds) < 2:
        return []
    each = "; ".join(f"{ranges(seeds)} of {listed(who)}" for seeds, who in by_seeds.items())
    return [
        f"Different seeds: {each}. Means and ranks are over the seeds that each variant has, so "
        "part of a difference may be that of the seeds; only the tests compare shared seeds."
    ]


def ranges(seeds: Iterable[int]) -> str:
    """``0–4, 7``: consecutive seeds as ranges."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ", ".join(
        str(low) if low == high else f"{low}{'–' if high - low > 1 else ', '}{high}"
        for low, high in found
    )
