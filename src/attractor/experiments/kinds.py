"""The kinds of experiments: what their files hold, and where their work is done."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from attractor.errors import InputError, shortened
from attractor.experiments.changes import changed, merged, resized
from attractor.experiments.config import (
    ExperimentConfig,
    RunConfig,
    Settings,
    TaskConfig,
    WithOptions,
    labelled,
    read_toml,
    validated,
)
from attractor.experiments.continual_config import ContinualExperiment
from attractor.experiments.learned_config import LearnedExperiment
from attractor.tables import lookup


class ModelConfig(WithOptions):
    """Which cell, its sizes and its options."""

    cell: str
    hidden_size: int = Field(ge=1)
    num_layers: int = Field(default=1, ge=1)
    bidirectional: bool = False
    dropout: float = Field(default=0.0, ge=0, le=1)
    compose: dict[str, Any] = Field(default_factory=dict)
    """Normalisers and regularisers: the arguments of `attractor.cells.compose`."""


class TrainConfig(Settings):
    """With what a recurrent network is trained."""

    batch_size: int = Field(ge=1)
    optimiser: Literal["adam", "amsgrad", "rmsprop", "sgd"] = "adam"
    lr: float = Field(default=1e-3, gt=0)
    momentum: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=None, gt=0)
    log_every: int = Field(default=10, ge=1)
    eval_every: int = Field(default=100, ge=1)
    eval_batch_size: int = Field(default=250, ge=1)
    stop_below: float | None = Field(default=None, gt=0)
    compile: bool = False


class SequenceRun(RunConfig):
    """One recurrent network on one task."""

    kind: Literal["sequence"] = "sequence"
    task: TaskConfig
    model: ModelConfig
    train: TrainConfig


class Variant(ModelConfig):
    """A model of an experiment, with its name in tables, and how its training differs."""

    label: str
    train: dict[str, Any] = Field(default_factory=dict)


class SequenceExperiment(ExperimentConfig):
    """Several recurrent networks on one task."""

    run = SequenceRun

    kind: Literal["sequence"] = "sequence"
    task: TaskConfig
    train: TrainConfig
    model: list[Variant] = Field(min_length=1)

    def variants(self) -> dict[str, dict[str, Any]]:
        return labelled(
            (
                one.label,
                {
                    "task": self.task.model_dump(),
                    "model": one.model_dump(exclude={"label", "train"}),
                    "train": self.train.model_dump() | one.train,
                },
            )
            for one in self.model
        )


class Kind(NamedTuple):
    """How a kind of experiment is configured, and the module whose `build` makes its work."""

    config: type[ExperimentConfig]
    module: str


KINDS: dict[str, Kind] = {
    "continual": Kind(ContinualExperiment, "attractor.experiments.lifelong"),
    "learned": Kind(LearnedExperiment, "attractor.experiments.learned"),
    "sequence": Kind(SequenceExperiment, "attractor.experiments.sequence"),
}


def read(path: Path, changes: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment from a TOML file, with ``a.b=value`` changes."""
    content = read_toml(path)
    bases: list[str] = [path.name]
    while "base" in content:  # another file of the folder, of which this one changes some values
        base = content.pop("base")
        if not isinstance(base, str) or Path(base).name != base or base in ("", ".", ".."):
            raise InputError(
                f"expected the base of {bases[-1]} to be the name of a file beside it, but got "
                f"{shortened(base)}. Try such as 'demo.toml'."
            )
        bases.append(base)
        if base in bases[:-1]:
            raise InputError(
                f"expected files that end at one without a base, but got {' -> '.join(bases)}. "
                "Remove one of these bases."
            )
        content = merged(read_toml(path.with_name(base)), content)
    changes = list(changes)
    new, over = changed(content, changes), changed({}, changes)
    over = {name: table for name, table in over.items() if isinstance(new[name], dict)}
    _check_budget(content.get("budget"), new.get("budget"))
    kind = lookup("kind of experiment", KINDS, new.get("kind", "sequence"))
    experiment = validated(kind.config, {**new, "changes": over}, path.name)
    if experiment.budget == "full" and resized(content, over):
        return experiment.model_copy(update={"budget": "changed"})
    return experiment


def _check_budget(own: object, asked: object) -> None:
    """What ``--set`` says of the budget may not promise more than the file does."""
    order = ["quick", "changed", "full"]
    if asked in order[1:] and asked != own and order.index(str(asked)) > _place(own, order):
        raise InputError(
            f"expected the budget of the file ({own}) or a smaller one, but got budget={asked}, "
            "which its runs would not have. Try the experiment without -quick in its name."
        )


def _place(own: object, order: list[str]) -> int:
    return order.index(own) if isinstance(own, str) and own in order else -1
