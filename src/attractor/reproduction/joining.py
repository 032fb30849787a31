"""Finished runs joined to the tables that come with the package."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from attractor.errors import InputError
from attractor.experiments.files import EXPERIMENTS
from attractor.reproduction.comparisons import reads_curves
from attractor.reproduction.outcomes import END, STORED, Outcomes, ends, read, write
from attractor.reproduction.published import of_target
from attractor.reproduction.targets import TARGETS, target
from attractor.reproduction.work import finished


class Joined(NamedTuple):
    """A table, how many runs were joined to it, and how many it has now."""

    path: Path
    new: int
    all: int


def join(name: str, out: Path, tables: Path = STORED) -> list[Joined]:
    """Join the finished runs of a folder to the stored tables; a run that is there is replaced.

    What runs logged on the way is kept where a claim, a number or a page reads it, and where the
    table has such rows already; of others the end alone.

    Args:
        name: of an experiment, or of a target for all of its experiments.
        out: the folder that holds the runs; those of another configuration than today's are left.
        tables: the folder of the tables.
    """
    done = [one for experiment in _experiments(name) for one in _joined(experiment, out, tables)]
    if not done:
        raise InputError(
            f"expected finished runs of {name} in {out}, as it is configured today, but there are "
            "none. Try --out with the folder that `attractor run` had."
        )
    return done


def _experiments(name: str) -> list[str]:
    if name in EXPERIMENTS:
        return [name]
    one = target(name)
    return [*dict.fromkeys((*one.experiments("quick"), *one.experiments("full")))]


def _joined(experiment: str, out: Path, tables: Path) -> Iterator[Joined]:
    if not (new := finished(experiment, out)):
        return
    path = tables / f"{experiment}.csv.gz"
    old = read(path) if path.is_file() else Outcomes([])
    curves = any(row.split != END for row in old.rows)
    every = old.joined(new if curves or _reads_curves(experiment) else ends(new))
    write(every, path)
    yield Joined(path, _runs(new), _runs(every))


def _runs(outcomes: Outcomes) -> int:
    return len({(row.label, row.seed) for row in outcomes.rows})


def _reads_curves(experiment: str) -> bool:
    """Whether claims, numbers, the deviations over tasks beside them, or pages read them."""
    claims = (claim for one in TARGETS.values() for claim in one.claims if claim.split)
    sources = (
        source
        for one in TARGETS.values()
        for source in one.sources
        if source.split or any(number.spread is not None for number in of_target(one.key))
    )
    asked = {
        *(name for claim in claims for name in (claim.experiment, claim.quick)),
        *(name for source in sources for name in (source.full, source.quick)),
    }
    return experiment in asked or reads_curves(experiment)
