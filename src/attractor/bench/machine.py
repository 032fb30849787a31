"""The machine on which a benchmark runs: what decides about times."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime

import torch

from attractor.bench.timing import matmul_peak, threads
from attractor.runs.environment import environment
from attractor.runs.memory import allocator

FACTS = ("cpu", "processor", "system", "python", "torch", "attractor")
"""What of the environment a reader wants to know."""


def facts(numbers_of_threads: Iterable[int]) -> dict[str, str]:
    """Processor, versions and allocator, and the matmul peak with so many threads."""
    found = _of_environment(FACTS) | {"allocator": allocator()}
    for number in numbers_of_threads:
        with threads(number):
            peak = matmul_peak()
        found[f"matmul peak, {number} thread{'s' if number > 1 else ''}"] = f"{peak:.0f} GFLOP/s"
    return found | {"when": datetime.now(UTC).isoformat(timespec="seconds")}


def key() -> dict[str, str]:
    """What times must have in common to stand in one table: the facts, and the very code."""
    return _of_environment((*FACTS, "source")) | {"allocator": allocator()}


def _of_environment(names: Iterable[str]) -> dict[str, str]:
    here = environment(torch.get_num_threads())
    return {name: str(here[name]) for name in names}


def load() -> str:
    """How many programs wanted a core in the last minute; nothing where the system does not tell.

    Example:
        >>> load() == "" or float(load()) >= 0
        True
    """
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
