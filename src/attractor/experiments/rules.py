"""Meta-train a rule into a file, name optimisers, and tell what a file holds."""

import shutil
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import torch

from attractor.errors import InputError, RunError, unknown
from attractor.experiments import checkpoint
from attractor.experiments.checkpoint import Checkpoint
from attractor.experiments.config import validated
from attractor.experiments.folder import locked
from attractor.experiments.learned import HAND_MADE, hand_made, parts
from attractor.experiments.learned_config import LearnedRun, OptimiserConfig
from attractor.experiments.preparation import Factory, MetaTraining
from attractor.experiments.train import StoppedError
from attractor.experiments.work import DivergedError, Row
from attractor.optimisers import OPTIMISERS, Rule, load_rule, save_rule, shipped
from attractor.optimisers.files import about, load_pretrained, shipped_file

SUFFIX = ".safetensors"
"""Of the file of a rule, by which a rule's file is told from its name."""
POINTS = 40
"""Of the curve on a card."""


def train_rule(
    config: LearnedRun,
    out: Path,
    *,
    data: Path | None = None,
    on_row: Callable[[int, int, Row], None] = lambda step, planned, row: None,
    stop: Callable[[], bool] = lambda: False,
) -> Rule:
    """Meta-train the optimiser of a run, and write it with its card; goes on where it was stopped.

    Args:
        config: a run of kind ``learned``, whose optimiser is learned.
        out: the safetensors file to write; until it is there, a folder beside it has checkpoints.
        data: the data root.
        on_row: told of each update of the rule: which, of how many at most, and its losses.
        stop: asked after each update; if it says True, all is saved and `StoppedError` raised.

    If it diverges, a `RunError` says so, and in which file beside `out` the last good weights are.
    """
    if out.suffix != SUFFIX:
        raise InputError(
            f"expected the file to write to end in {SUFFIX}, but got {out}. Try {out}{SUFFIX}."
        )
    torch.set_num_threads(config.train.threads)
    preparation, _ = parts(config, data)
    if not isinstance(preparation, MetaTraining):
        raise InputError(
            f"expected an optimiser to meta-train, but {config.label} is made by hand or comes "
            "with its weights. Try --only with the label of another."
        )
    folder = out.with_name(f"{out.name}.training")
    curve: list[float] = []
    seconds = 0.0
    with locked(folder, wait=False):
        for saved in checkpoint.candidates(folder):
            if saved.values["id"] != config.id:
                raise InputError(
                    f"expected {folder} to hold the checkpoints of {config.id}, but they are of "
                    f"{saved.values['id']}. Delete that folder, or use another --out."
                )
            preparation.restore(saved._replace(values=saved.values["trainer"]))
            curve, seconds = saved.values["curve"], saved.values["seconds"]
            break
        started = time.monotonic() - seconds
        while not preparation.done:
            try:
                rows = preparation.advance()
            except DivergedError as error:
                kept = out.with_name(f"{out.stem}.diverged{SUFFIX}")
                told = card(config, curve, time.monotonic() - started)
                save_rule(preparation.rule, kept, about={"diverged": error.reason, **told})
                who = f"{config.label}, seed {config.seed}"
                raise RunError(f"{who}: {error.reason}. The weights are in {kept}.") from error
            for row in rows:
                curve.append(row["loss"])
                on_row(len(curve), preparation.planned, row)
            asked = stop()
            if asked or len(curve) % config.train.checkpoint_every == 0:
                trained = preparation.save()
                values = {
                    "trainer": trained.values,
                    "id": config.id,
                    "curve": curve,
                    "seconds": time.monotonic() - started,
                }
                checkpoint.write(folder, Checkpoint(trained.tensors, values))
            if asked:
                raise StoppedError
        save_rule(preparation.rule, out, about=card(config, curve, time.monotonic() - started))
    shutil.rmtree(folder)
    return preparation.rule


def card(config: LearnedRun, curve: list[float], seconds: float) -> dict[str, Any]:
    """What a user wants to know of a rule: tasks, budget, seed, and the loss as it learnt."""
    meta = config.meta.model_dump()
    tasks = meta.pop("tasks") or [config.task.model_dump()]
    every = max(1, len(curve) // POINTS)
    means = [curve[i : i + every] for i in range(0, len(curve), every)]
    return {
        "tasks": tasks,
        "network": config.network.model_dump(exclude_none=True),
        "batch size": meta.pop("batch_size") or config.train.batch_size,
        "meta-training": meta,
        "seed": config.seed,
        "updates of the rule": len(curve),
        "curve": [round(sum(some) / len(some), 4) for some in means],
        "seconds": round(seconds),
        "versions": {name: version(name) for name in ("attractor", "torch")},
    }


def read_card(name: str) -> dict[str, Any]:
    """The card of a file, or of a rule that comes with the package as ``kind/name``."""
    if name.endswith(SUFFIX):
        return about(Path(name))
    if name not in shipped():
        raise unknown("rule that comes with attractor", name, shipped())
    kind, _, which = name.partition("/")
    with as_file(shipped_file(kind, which)) as path:
        return about(path)


def named(text: str) -> Factory:
    """An optimiser by the name that a user types.

    Args:
        text: a file of a rule; ``lstm/mlp``, a rule that comes with the package, or ``lstm``, the
            first of that kind; or one made by hand with its options, such as
            ``sgd:lr=0.1,momentum=0.9``.

    Example:
        >>> named("adam:lr=0.01").keywords
        {'lr': 0.01}
    """
    if text.endswith(SUFFIX):
        return load_rule(text)
    kind, colon, listed = text.partition(":")
    if kind in HAND_MADE:
        options: dict[str, Any] = {"name": kind}
        for option in filter(None, listed.split(",")):
            key, _, value = option.partition("=")
            try:
                options[key] = float(value)
            except ValueError as error:
                raise InputError(
                    f"expected options as sgd:lr=0.1,momentum=0.9, but got {text!r}. "
                    "Give each option a number."
                ) from error
        return hand_made(validated(OptimiserConfig, options, text))
    kind, _, which = text.partition("/")
    if kind not in OPTIMISERS or colon:
        raise unknown("optimiser", text, OPTIMISERS)
    return load_pretrained(kind, which or None)
