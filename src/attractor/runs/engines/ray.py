"""Runs on a Ray cluster: a run whose worker or node dies goes on elsewhere from its checkpoint.

The folder of the runs must be one that every node sees, as on any cluster with shared storage.
"""

import logging
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attractor.errors import InputError, RunError, shortened
from attractor.runs.jobs import Do, Ended, run_as_worker, stoppable

RETRIES = 10
"""How often a run is taken up again because its worker or node died."""
BETWEEN_LOOKS = 0.5
PATIENCE = 5.0
"""Seconds in which a cluster answers, if there is one."""
FOUND = ("auto", "local")
"""Addresses that Ray finds by itself."""


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
    """Do runs on a Ray cluster, each on as many processors as it has threads.

    Args:
        configs: what to run.
        do: does one of them, on whichever node.
        name: of a run, in messages.
        folder: that every node sees; the word to stop is passed through it.
        threads: of each run.
        places: ``address`` of the cluster, such as ``"auto"``, or ``None`` for one of this
            machine's own; ``jobs`` at a time.
        on_end: told of each run as it ends.
    """
    results: list[Ended[Any]] = []
    with stoppable(folder) as flag, _cluster(places.address, places.jobs, threads) as ray:
        work = ray.remote(run_as_worker).options(num_cpus=threads, max_retries=RETRIES)
        waiting = list(reversed(configs))
        going: dict[Any, Any] = {}
        while waiting or going:
            while waiting and len(going) < (places.jobs or len(configs)):
                config = waiting.pop()
                going[work.remote(config, do, name, flag)] = config
            ready, _ = ray.wait(list(going), num_returns=1, timeout=BETWEEN_LOOKS)
            for one in ready:
                ended = _ended(ray, one, going.pop(one), name)
                on_end(ended)
                results.append(ended)
    return results


def _ended(ray: Any, one: Any, config: Any, name: Callable[[Any], str]) -> Ended[Any]:
    try:
        ended: Ended[Any] = ray.get(one)
    except ray.exceptions.RayError as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return Ended(config, "failed", f"{name(config)}: lost by the cluster ({what})")
    return ended


@contextmanager
def _cluster(address: str | None, jobs: int | None, threads: int) -> Iterator[Any]:
    """Ray, connected to a cluster, or with one of its own for as long as this lasts."""
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "expected Ray for --engine ray, but it is not installed. "
            'Try pip install "attractor[ray]".'
        ) from error
    own: dict[str, Any] = {} if address else {"num_cpus": jobs * threads if jobs else None}
    try:
        if address is not None:
            _reach(address)
        ray.init(
            address=address,
            include_dashboard=False if address is None else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            **own,
        )
    except InputError:
        raise
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0].rstrip(".")
        raise RunError(
            f"expected a Ray cluster at {address or 'this machine'}, but got: {why}. "
            "Start one with `ray start --head`."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Try whether something answers at an address: Ray itself would try for minutes.

    Args:
        address: of a cluster; what has no host and port, such as ``auto``, is for Ray to find.
    """
    match = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d{1,5})", address)
    if match:
        with socket.create_connection((match[1], int(match[2])), timeout=PATIENCE):
            pass
    elif address not in FOUND and "://" not in address:
        raise InputError(
            f"expected auto, HOST:PORT or ray://HOST:PORT as the address of a Ray cluster, but got "
            f"{shortened(address)}. Try --address auto."
        )
