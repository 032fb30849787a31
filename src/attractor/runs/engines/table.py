"""The table of engines: each does the same runs, in the same folders."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from attractor.errors import InputError, unknown
from attractor.runs.engines.local import do_all as local
from attractor.runs.engines.ray import do_all as ray
from attractor.runs.engines.slurm import do_all as slurm
from attractor.runs.jobs import Do, Ended


class Places(NamedTuple):
    """Where runs are done, and how many at a time.

    Args:
        engine: a key of `ENGINES`.
        jobs: runs at a time; by default as many as there is room for.
        address: of the cluster, where the engine has one.
    """

    engine: str = "local"
    jobs: int | None = None
    address: str | None = None

    def check(self) -> None:
        """Refuse an engine that there is not, and an address where none is needed."""
        if self.engine not in ENGINES:
            raise unknown("engine", self.engine, ENGINES)
        if self.engine == "local" and self.address is not None:
            raise InputError(
                f"expected no address for runs on this machine, but got {self.address!r}. "
                "Leave it out, or try --engine ray."
            )


class Engine(Protocol):
    """Does runs wherever it does them; one that fails does not stop the others."""

    def __call__(
        self,
        configs: Sequence[Any],
        do: Do[Any],
        *,
        name: Callable[[Any], str],
        folder: Path,
        threads: int,
        places: Any,
        on_end: Callable[[Ended[Any]], None],
    ) -> list[Ended[Any]]: ...


ENGINES: dict[str, Engine] = {"local": local, "ray": ray, "slurm": slurm}
