"""Runs in processes of this machine, as many as its cores have room for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attractor.runs import jobs
from attractor.runs.jobs import Do, Ended


def do_all(
    configs: Sequence[Any],
    do: Do[Any],
    *,
    name: Callable[[Any], str],
    folder: Path,
    threads: int,
    places: Any,
    on_end: Callable[[Ended[Any]], None],
) -> list[Ended[Any]]:
    """See `attractor.runs.jobs.do_all`; by default one run per core and thread of it."""
    workers = jobs.at_a_time(places.jobs, threads)
    return jobs.do_all(configs, do, name=name, jobs=workers, on_end=on_end)
