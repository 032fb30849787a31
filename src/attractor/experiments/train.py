"""One run: train a network, survive anything, end with the same numbers."""

import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from attractor.cells import compile_steps
from attractor.errors import InputError, RunError
from attractor.experiments import checkpoint
from attractor.experiments.build import Parts, build
from attractor.experiments.checkpoint import Checkpoint
from attractor.experiments.config import RunConfig
from attractor.experiments.folder import (
    DONE,
    FAILED,
    METRICS,
    Log,
    clear,
    describe,
    locked,
    run_folder,
    sweep,
    write_json,
)
from attractor.tasks import Split


class StoppedError(Exception):
    """The user asked to stop; the run is saved and goes on when it is started again."""


@dataclass
class Progress:
    """Where a run is: what a checkpoint keeps besides tensors."""

    step: int = 0
    seconds: float = 0.0
    solved: bool = False


def train(
    config: RunConfig,
    out: Path,
    *,
    data: Path | None = None,
    wait: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Do a run, or what is left of it; a run that is done is left alone.

    Args:
        config: what to run.
        out: the folder that holds all runs.
        data: the data root.
        wait: wait for another process that has the same run, instead of saying so.
        force: do the run again, even if it is done.
        stop: asked after each step; if it says True, the run is saved and `StoppedError` raised.
    """
    folder = run_folder(out, config)
    if (folder / DONE).exists() and not force:
        return
    parts = build(config, data)
    with locked(folder, wait=wait):
        if force:
            clear(folder)
        elif (folder / DONE).exists():
            return
        sweep(folder)
        (folder / FAILED).unlink(missing_ok=True)
        describe(folder, config)
        progress, position = _restore(folder, parts)
        log = Log(folder, position)
        try:
            _loop(config, folder, parts, progress, log, stop)
        finally:
            log.close()


def _loop(
    config: RunConfig,
    folder: Path,
    parts: Parts,
    progress: Progress,
    log: Log,
    stop: Callable[[], bool],
) -> None:
    settings = config.train
    if settings.compile:
        _check_compiler()
        compile_steps(parts.model, steps=30)
    started = time.monotonic() - progress.seconds
    norm = math.nan
    while progress.step < settings.steps and not progress.solved:
        batch = parts.sampler.draw()
        loss = parts.task.loss(parts.model(batch.x.to(parts.device)), batch.y.to(parts.device))
        parts.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        before, norm = norm, gradient_norm(parts.model, settings.clip)
        if not (math.isfinite(loss.item()) and math.isfinite(norm)):
            raise _diverged(folder, config, progress.step + 1, loss.item(), norm, before)
        parts.optimiser.step()
        progress.step += 1
        if progress.step % settings.log_every == 0:
            log.add(step=progress.step, split="train", loss=loss.item(), gradient_norm=norm)
        if progress.step % settings.eval_every == 0:
            found = evaluate(parts, "valid", settings.eval_batch_size)
            log.add(step=progress.step, split="valid", **found)
            progress.solved = (
                settings.stop_below is not None and found["loss"] < settings.stop_below
            )
        progress.seconds = time.monotonic() - started
        asked = stop()
        if asked or progress.step % settings.checkpoint_every == 0:
            if not all(p.isfinite().all() for p in parts.model.parameters()):
                raise _diverged(folder, config, progress.step, math.nan, norm, before)
            _save(folder, parts, progress, log)
        if asked:
            raise StoppedError
    test = evaluate(parts, "test", settings.eval_batch_size)
    log.add(step=progress.step, split="test", **test)
    if settings.stop_below is not None:
        # a run that did not get there counts as long as it was tried, and `solved` says so
        test |= {"steps_to_solve": progress.step, "solved": float(progress.solved)}
    write_json(
        folder / DONE,
        {
            "steps": progress.step,
            "seconds": round(time.monotonic() - started, 3),
            "parameters": sum(p.numel() for p in parts.model.parameters()),
            "test": test,
        },
    )


@torch.no_grad()
def evaluate(parts: Parts, split: Split, batch_size: int) -> dict[str, float]:
    """The task's metrics over a split, each answer counting the same."""
    parts.model.eval()
    totals: dict[str, float] = {}
    weight = 0
    for batch in parts.task.held_out(split, batch_size):
        y = batch.y.to(parts.device)
        found = parts.task.metrics(parts.model(batch.x.to(parts.device)), y)
        count = parts.task.weight(y)
        weight += count
        for name, value in found.items():
            totals[name] = totals.get(name, 0.0) + float(value) * count
    parts.model.train()
    return {name: total / weight for name, total in totals.items()}


def gradient_norm(model: nn.Module, clip: float | None) -> float:
    """The norm of all gradients, which are scaled down to `clip` if it is greater."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    limit = math.inf if clip is None else clip
    return float(nn.utils.clip_grad_norm_(parameters, limit))


def _diverged(
    folder: Path, config: RunConfig, step: int, loss: float, norm: float, before: float
) -> RunError:
    what = "the gradient norm" if math.isfinite(loss) else "the loss"
    reason = (
        f"{what} became {norm if math.isfinite(loss) else loss} at step {step} of "
        f"{config.train.steps} (gradient norm {norm:.3g}, {before:.3g} a step before)"
    )
    write_json(folder / FAILED, {"step": step, "reason": reason})
    clip = "a smaller" if config.train.clip else "train.clip=1, a smaller"
    return RunError(
        f"{config.label}, seed {config.seed}: {reason}. The last good checkpoint is kept. "
        f"Try {clip} train.lr than {config.train.lr:g}, or another seed."
    )


def _check_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise InputError(
            f"expected a C++ compiler for train.compile=true, but there is no {compiler}. "
            "Install one, or use --set train.compile=false, which is slower."
        )


def _save(folder: Path, parts: Parts, progress: Progress, log: Log) -> None:
    optimiser = checkpoint.pack_optimiser(parts.optimiser)
    random: dict[str, Tensor] = {"global": torch.get_rng_state()}
    if parts.device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(parts.device)
    tensors = checkpoint.merged(
        {
            "model": parts.model.state_dict(),
            "optimiser": optimiser.tensors,
            "sampler": parts.sampler.state_dict(),
            "random": random,
        }
    )
    values = {**vars(progress), "optimiser": optimiser.values, "position": log.position}
    checkpoint.write(folder, Checkpoint(tensors, values))


def _restore(folder: Path, parts: Parts) -> tuple[Progress, int]:
    """Put the parts where the newest whole checkpoint left them; also the length of the log."""
    for saved in checkpoint.candidates(folder):
        values = dict(saved.values)
        position = values.pop("position")
        metrics = folder / METRICS
        if not metrics.exists() or metrics.stat().st_size < position:
            continue
        optimiser = Checkpoint(checkpoint.part(saved.tensors, "optimiser"), values.pop("optimiser"))
        parts.model.load_state_dict(checkpoint.part(saved.tensors, "model"))
        checkpoint.unpack_optimiser(parts.optimiser, optimiser)
        parts.sampler.load_state_dict(checkpoint.part(saved.tensors, "sampler"))
        random = checkpoint.part(saved.tensors, "random")
        torch.set_rng_state(random["global"])
        if "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"], parts.device)
        return Progress(**values), position
    return Progress(), 0
