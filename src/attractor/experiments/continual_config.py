"""What the file of a continual-learning experiment holds."""

from typing import Any, Literal

from pydantic import Field

from attractor.experiments.changes import flat, merged, overruled
from attractor.experiments.config import (
    ExperimentConfig,
    Frozen,
    NetworkConfig,
    RunConfig,
    Settings,
    WithOptions,
    labelled,
)


class FeaturesConfig(Frozen):
    """The frozen network through which a stream is seen, and how it is pretrained."""

    network: NetworkConfig
    steps: int = Field(ge=1)
    batch_size: int = Field(default=32, ge=1)
    lr: float = Field(default=0.05, gt=0)
    """At the first update; it falls to zero in a straight line."""
    momentum: float = Field(default=0.9, ge=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    augment: bool = True
    """Shift and mirror the images."""
    seed: int = Field(default=0, ge=0)


class StreamConfig(WithOptions):
    """Which stream of tasks, and its options."""

    name: str
    tasks: int = Field(default=10, ge=1)
    """For streams that can have any number of them."""
    identity: bool = False
    """Tell the task of each sample, in the test too."""
    noise: float = Field(default=0.0, ge=0, le=1)
    """Share of the pixels that are shuffled in training data."""
    features: FeaturesConfig | None = Field(default=None, exclude_if=lambda value: value is None)
    """Show a network's features instead of the data; it learns the stream's first classes."""


class StrategyConfig(WithOptions):
    """Which strategy, its options, and another one on top of it."""

    name: str
    also: dict[str, Any] | None = None


class ContinualTrain(Settings):
    """With what a learner is trained; ``steps`` are the updates of each task."""

    batch_size: int = Field(default=10, ge=1)
    optimiser: Literal["adam", "rmsprop", "sgd"] = "sgd"
    lr: float = Field(default=0.01, gt=0)
    momentum: float = Field(default=0.0, ge=0)
    log_every: int = Field(default=10, ge=1)


class ContinualRun(RunConfig):
    """One network and one strategy on one stream."""

    kind: Literal["continual"] = "continual"
    stream: StreamConfig
    network: NetworkConfig
    strategy: StrategyConfig
    train: ContinualTrain

    @property
    def total(self) -> int | None:
        # imports torch, for which reading a file need not wait
        from attractor.tasks.streams.table import task_count

        options = {"tasks": self.stream.tasks, **self.stream.options}
        tasks = task_count(self.stream.name, options)
        return None if tasks is None else self.train.steps * tasks


class ContinualVariant(Frozen):
    """One line of a comparison: what differs from the tables above it."""

    label: str
    stream: dict[str, Any] = Field(default_factory=dict)
    network: dict[str, Any] = Field(default_factory=dict)
    strategy: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)


class ContinualExperiment(ExperimentConfig):
    """Several strategies or networks on one stream."""

    run = ContinualRun

    kind: Literal["continual"] = "continual"
    stream: dict[str, Any]
    network: dict[str, Any]
    train: dict[str, Any]
    strategy: dict[str, Any] = Field(default_factory=dict)
    variant: list[ContinualVariant] = Field(min_length=1)

    def variants(self) -> dict[str, dict[str, Any]]:
        """All, or with ``--set strategy=er`` the one with this name that has most of the changes.

        Of several such it is the first; if no variant has the name, the strategy goes alone.
        """
        base = {
            "stream": self.stream,
            "network": self.network,
            "strategy": {"name": "naive", **self.strategy},
            "train": self.train,
        }
        own = {one.label: one.model_dump(exclude={"label"}) for one in self.variant}
        each = labelled((one.label, merged(base, own[one.label])) for one in self.variant)
        name = self.changes.get("strategy", {}).get("name")
        if name is None:
            return each
        named = [label for label in each if own[label]["strategy"].get("name") == name]
        best = max(named, key=lambda label: _agreement(own[label], self.changes), default=None)
        return {name: base} if best is None else {best: each[best]}


def _agreement(own: dict[str, Any], changes: dict[str, Any]) -> int:
    """How many changes are what a variant says, less those that it contradicts."""
    both = flat(own).keys() & flat(changes).keys()
    return len(both) - 2 * len(overruled(own, changes))
