"""Meta-train a rule into a file, name optimisers, and tell what a file holds."""

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import as_file
from pathlib import Path
from typing import Any

from attractor.errors import InputError, RunError, unknown
from attractor.experiments.kinds.supervised import SupervisedRun, meta_training
from attractor.meta import MetaTrainer
from attractor.optimisers import OPTIMISERS, Maker, Rule, load_rule, save_rule, shipped
from attractor.optimisers.files import about, chosen, load_pretrained, shipped_file
from attractor.runs.checkpoint import candidates
from attractor.runs.drive import Context, Every, drive
from attractor.runs.folder import LOG_FILE
from attractor.tables import code_in
from attractor.training.process import Diverged, Row

SUFFIX = ".safetensors"
"""Of the file of a rule, by which a rule's file is told from its name."""
POINTS = 40
"""Of the curve on a card."""


def train_rule(
    config: SupervisedRun,
    out: Path,
    *,
    data: Path | None = None,
    on_row: Callable[[int, int, Row], None] = lambda step, planned, row: None,
    stop: Callable[[], bool] = lambda: False,
) -> Rule:
    """Meta-train the optimiser of a run, and write it with its card; goes on where it was stopped.

    Args:
        config: a run of kind ``supervised``, whose optimiser is learned.
        out: the safetensors file to write; until it is there, a folder beside it has checkpoints.
        data: the data root.
        on_row: told of each update of the rule: which, of how many at most, and its losses.
        stop: asked after each update; if it says True, all is saved and `Stopped` raised.

    If it diverges, a `RunError` says so, and in which file beside `out` the last good weights are.
    """
    if out.suffix != SUFFIX:
        raise InputError(
            f"expected the file to write to end in {SUFFIX}, but got {out}. Try {out}{SUFFIX}."
        )
    folder = out.with_name(f"{out.name}.training")
    made: list[MetaTrainer] = []

    def make() -> MetaTrainer:
        made.append(meta_training(config, Context(data, out.parent, stop)))
        return made[0]

    def write(process: MetaTrainer) -> dict[str, Any]:
        save_rule(process.rule, out, about=card(config, *_history(folder)))
        return {"file": out.name}

    def show(process: MetaTrainer, rows: list[Row]) -> None:
        for row in rows:
            on_row(process.step, process.planned, row)

    try:
        drive(
            make,
            folder,
            key=config.id,
            outcome=write,
            context=Context(data, out.parent, stop),
            every=Every(steps=config.train.checkpoint_every),
            threads=config.train.threads,
            makes=out,
            watch=show,
        )
    except Diverged as error:
        kept = out.with_name(f"{out.stem}.diverged{SUFFIX}")
        told = card(config, *_history(folder))
        save_rule(made[0].rule, kept, about={"diverged": error.reason, **told})
        who = f"{config.label}, seed {config.seed}"
        raise RunError(
            f"{who}: {error.reason}. {error.advice} The weights are in {kept}."
        ) from error
    code = [name for _, name in code_in(config.optimiser)]
    rule = load_rule(out, type(made[0].rule) if made else None, code=code)
    shutil.rmtree(folder)
    return rule


def _history(folder: Path) -> tuple[list[Row], float]:
    """The rows in the log of a training, and its seconds up to its last checkpoint."""
    lines = (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()
    seconds = next((saved["seconds"] for saved in candidates(folder)), 0.0)
    return [json.loads(line) for line in lines], seconds


def card(config: SupervisedRun, rows: list[Row], seconds: float) -> dict[str, Any]:
    """What a user wants to know of a rule: tasks, budget, seed, and the loss as it learnt."""
    assert config.meta is not None
    curve = [row["loss"] for row in rows if row["split"] == "meta"]
    fixed = [round(row["loss"], 4) for row in rows if row["split"] == "meta-valid"]
    meta = config.meta.model_dump(exclude_none=True)
    tasks = meta.pop("tasks") or [config.task]
    every = max(1, len(curve) // POINTS)
    means = [curve[i : i + every] for i in range(0, len(curve), every)]
    return {
        "tasks": tasks,
        "model": config.model,
        "batch size": meta.pop("batch_size", None) or config.train.batch_size,
        "meta-training": meta,
        "seed": config.seed,
        "updates of the rule": len(curve),
        "curve": [round(sum(some) / len(some), 4) for some in means],
        **({"validation": fixed} if fixed else {}),
        "seconds": round(seconds),
        "versions": {name: version(name) for name in ("attractor", "torch")},
    }


def read_card(name: str) -> dict[str, Any]:
    """The card of a file, or of a rule that comes with the package: ``kind/name``, or its kind."""
    if name.endswith(SUFFIX):
        return about(Path(name))
    kind, _, which = name.partition("/")
    if name not in shipped() and (which or kind not in OPTIMISERS):
        raise unknown("rule that comes with attractor", name, shipped())
    with as_file(shipped_file(kind, chosen(kind, which or None))) as path:
        return about(path)


def named(text: str) -> Maker:
    """An optimiser by the name that a user types.

    Args:
        text: a file of a rule; ``lstm/mlp``, a rule that comes with the package, or ``lstm``, the
            only one of that kind; or one made by hand with its options, such as
            ``sgd:lr=0.1,momentum=0.9``.

    Example:
        >>> named("adam:lr=0.01").keywords
        {'lr': 0.01}
    """
    if text.endswith(SUFFIX):
        return load_rule(text)
    kind, colon, listed = text.partition(":")
    if kind in OPTIMISERS and not OPTIMISERS[kind].learned:
        return OPTIMISERS[kind](**_numbers(text, listed))
    kind, _, which = text.partition("/")
    if kind not in OPTIMISERS or colon:
        raise unknown("optimiser", text, OPTIMISERS)
    return load_pretrained(kind, which or None)


def _numbers(text: str, listed: str) -> dict[str, float]:
    options: dict[str, float] = {}
    for option in filter(None, listed.split(",")):
        key, _, value = option.partition("=")
        try:
            options[key] = float(value)
        except ValueError as error:
            raise InputError(
                f"expected options as sgd:lr=0.1,momentum=0.9, but got {text!r}. "
                "Give each option a number."
            ) from error
    return options
