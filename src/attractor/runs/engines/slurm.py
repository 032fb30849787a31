"""Runs by Slurm, one job of an array for each, through submitit.

A job whose time is over, or that must make room for others, is queued again by itself and goes on
from its checkpoint.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attractor.errors import InputError
from attractor.files import explained
from attractor.runs.jobs import Do, Ended, at_a_time, run_as_worker, stoppable

BETWEEN_LOOKS = 2.0
CLUSTERS = (None, "slurm", "local")
"""``local`` does the same in processes of this machine, to try it out."""
TURN = 240
"""Minutes that a job asks for, where ``SBATCH_TIMELIMIT`` says nothing; submitit's five are few."""
TURNS = 10
"""How often a job is queued again because its time was over."""
DAYS = 30 * 24 * 60
"""Minutes of a job on this machine, which nobody queues again."""


class Turn:
    """A run as a job: what submitit asks for if it has to leave its place."""

    def __call__(self, *given: Any) -> Ended[Any]:
        """See `attractor.runs.jobs.run_as_worker`."""
        return run_as_worker(*given)

    def checkpoint(self, *given: Any) -> Any:
        """What to queue in its place: the same, since a run goes on from where it was saved."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *given)


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
    """Hand runs to Slurm and wait for them.

    Args:
        configs: what to run.
        do: does one of them, on whichever node.
        name: of a run, in messages.
        folder: that every node sees; logs of the jobs go into its ``slurm``.
        threads: of each run.
        places: ``address`` is ``None`` for Slurm or ``"local"``; ``jobs`` at a time, here by
            default as many as the cores have room for.
        on_end: told of each run as it ends.
    """
    executor = _executor(folder / "slurm", places.address, places.jobs, threads)
    results: list[Ended[Any]] = []
    # Slurm has them wait by itself, all in one array
    at_once = at_a_time(places.jobs, threads) if places.address == "local" else len(configs)
    waiting = list(configs)
    going: dict[Any, Any] = {}

    def take(ended: Ended[Any]) -> None:
        on_end(ended)
        results.append(ended)

    with stoppable(folder) as flag:
        while waiting or going:
            if flag.exists():
                for config in waiting:
                    take(Ended(config, "stopped"))
                waiting = []
            room = at_once - len(going)
            now, waiting = waiting[:room], waiting[room:]
            if now:
                with explained(folder / "slurm"), executor.batch():
                    sent = [executor.submit(Turn(), one, do, name, flag) for one in now]
                going.update(zip(sent, now, strict=True))
            for job in [job for job in going if job.done()]:
                take(_ended(job, going.pop(job), name))
            if going:
                time.sleep(min(BETWEEN_LOOKS, 0.2 if places.address == "local" else 60))
    return results


def _ended(job: Any, config: Any, name: Callable[[Any], str]) -> Ended[Any]:
    try:
        ended: Ended[Any] = job.result()
    except Exception as error:  # submitit raises what it likes for a job that was lost
        what = str(error).strip().splitlines()[0]
        return Ended(config, "failed", f"{name(config)}: lost by the cluster ({what})")
    return ended


def _executor(logs: Path, cluster: str | None, jobs: int | None, threads: int) -> Any:
    try:
        import submitit
    except ImportError as error:
        raise InputError(
            "expected submitit for --engine slurm, but it is not installed. "
            'Try pip install "attractor[slurm]".'
        ) from error
    if cluster not in CLUSTERS:
        raise InputError(
            f"expected no address or 'local' for --engine slurm, but got {cluster!r}. "
            "Slurm finds its cluster by itself: leave --address out."
        )
    try:
        with explained(logs):
            executor = submitit.AutoExecutor(
                folder=logs, cluster=cluster or "slurm", slurm_max_num_timeout=TURNS
            )
    except RuntimeError as error:
        raise InputError(
            f"expected Slurm on this machine for --engine slurm, but got: {error}. "
            "Try it on a login node, or --engine local."
        ) from error
    minutes = DAYS if cluster == "local" else TURN
    executor.update_parameters(name="attractor", cpus_per_task=threads, timeout_min=minutes)
    if jobs and cluster != "local":
        executor.update_parameters(slurm_array_parallelism=jobs)
    return executor
