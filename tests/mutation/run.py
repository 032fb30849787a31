"""`make mutants`: changes maths and decisions in small ways, and lists what no test notices.

Survivors that are known, and why no test can or need notice them, are in ``survivors.toml``. A
survivor that is not there, or an entry there that no longer survives, ends the run with 1.

    python tests/mutation/run.py [--only PART] [--all] [--workers N]
"""

import argparse
import os
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from mutation.decisions import both  # noqa: E402
from mutation.forks import Job, run  # noqa: E402
from mutation.operators import Changes, Mutant, maths, mutants, sampled  # noqa: E402
from mutation.rooms import DECIDING  # noqa: E402
from mutation.table import NAMED, PER_FILE, SEED, TARGETS  # noqa: E402

SOURCE = ROOT / "src" / "attractor"
LIMIT = 60
"""Seconds of a processor after which a mutant counts as noticed: it never ends."""


def known() -> dict[str, str]:
    """Survivors by name, with the reason."""
    text = Path(__file__).with_name("survivors.toml").read_text(encoding="utf-8")
    return {entry["mutant"]: entry["why"] for entry in tomllib.loads(text).get("survivor", [])}


def collect(only: str = "", count: int | None = PER_FILE) -> tuple[list[Job], dict[str, int]]:
    """What to run, and on which line each mutant is."""
    jobs, lines = [], {}

    def add(mutant: Mutant, path: str, tests: tuple[str, ...]) -> None:
        jobs.append(Job(mutant.name, tests, SOURCE / path, mutant))
        lines[mutant.name] = mutant.line

    for named in NAMED:
        if only in named.path or only in named.name:
            source = (SOURCE / named.path).read_text(encoding="utf-8")
            add(named.of(source), named.path, named.tests)
    tables: tuple[tuple[dict[str, tuple[str, ...]], Changes], ...] = (
        (TARGETS, maths),
        (DECIDING, both),
    )
    for table, changes in tables:
        for path, tests in table.items():
            if only in path:
                source = (SOURCE / path).read_text(encoding="utf-8")
                for mutant in (
                    mutants(path, source, changes)
                    if count is None
                    else sampled(path, source, count, SEED, changes)
                ):
                    add(mutant, path, tests)
    return jobs, lines


def unchanged(jobs: list[Job]) -> list[Job]:
    """The tests without a mutant: what fails then says nothing."""
    commands = dict.fromkeys(job.tests for job in jobs)
    return [Job(" ".join(tests), tests) for tests in commands]


def main() -> int:
    """Run, print, and say whether all went as known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="mutants of files whose path has this in it")
    parser.add_argument("--all", action="store_true", help="all mutants, not a sample (hours)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="at a time")
    options = parser.parse_args()
    preload()
    try:
        jobs, lines = collect(options.only, None if options.all else PER_FILE)
    except LookupError as gone:
        print(gone)
        return 1
    since = time.monotonic()
    for done in run(unchanged(jobs), ROOT, limit=LIMIT, workers=options.workers):
        if done.code != 0:
            print(f"{done.job.name} fails without any mutant:\n{done.printed}")
            return 1
    survived: list[str] = []
    for done in run(jobs, ROOT, limit=LIMIT, workers=options.workers):
        if done.code == 0:
            survived.append(done.job.name)
            print(f"survived: {done.job.name}", flush=True)
    return report(jobs, sorted(survived), lines, time.monotonic() - since)


def preload() -> None:
    """Import what takes long, once, before the forks; nothing of attractor."""
    import hypothesis.strategies  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize  # noqa: F401
    import torch
    import torch._dynamo  # what torch.compile needs is most of what there is to import

    torch.set_num_threads(1)


def report(jobs: list[Job], survived: list[str], lines: dict[str, int], seconds: float) -> int:
    """Print what survived; 1 if that is not what is known."""
    explained, ran = known(), {job.name for job in jobs}
    new = [name for name in survived if name not in explained]
    stale = [name for name in explained if name in ran and name not in survived]
    print(f"{len(jobs)} mutants, {len(jobs) - len(survived)} noticed, {seconds:.0f} s")
    for name in survived:
        if name in explained:
            print(f"  known: {name}: {explained[name]}")
    for name in new:
        path, rest = name.split(" ", 1)
        print(f"  NEW: src/attractor/{path}:{lines[name]} {rest}")
    for name in stale:
        print(f"  no longer survives, take it out of survivors.toml: {name}")
    return 1 if new or stale else 0


if __name__ == "__main__":
    sys.exit(main())
