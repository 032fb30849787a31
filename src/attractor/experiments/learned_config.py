"""What the file of an experiment with optimisers holds."""

from typing import Any, Literal

from pydantic import Field

from attractor.experiments.changes import merged
from attractor.experiments.config import (
    ExperimentConfig,
    Frozen,
    NetworkConfig,
    RunConfig,
    Settings,
    TaskConfig,
    WithOptions,
    labelled,
)


class OptimiserConfig(WithOptions):
    """Which optimiser, learned or made by hand, and its options."""

    name: str
    pretrained: str | None = None
    """The weights of a learned one that come with the package, instead of meta-training."""
    grid: list[float] = Field(default_factory=list)
    """Learning rates of one made by hand, of which the best on validation data is taken."""


class LearnerConfig(NetworkConfig):
    """Which network learns, and where it starts."""

    bound: float | None = Field(default=None, gt=0)
    """Draw all weights evenly between plus and minus this number, and start biases at zero."""


class MetaConfig(Frozen):
    """How an optimiser is meta-trained; see `MetaTrainer` and `PESTrainer`."""

    method: Literal["bptt", "pes"] = "bptt"
    tasks: list[TaskConfig] = Field(default_factory=list)
    """What its learners learn, taking turns; by default the task of the run."""
    network: LearnerConfig | None = Field(default=None, exclude_if=lambda value: value is None)
    """What its learners are; by default the network of the run."""
    batch_size: int | None = Field(default=None, ge=1)
    """Of its learners; by default that of the run."""
    learners: int = Field(default=20, ge=1)
    steps: int | list[int] = 100
    unroll: int = Field(default=20, ge=1)
    together: int = Field(default=1, ge=1)
    lr: float = Field(default=1e-3, gt=0)
    order: Literal[1, 2] = 1
    objective: Literal["next", "same"] = "next"
    perturb: float = Field(default=0.0, ge=0)
    updates: int = Field(default=100, ge=1)
    """Of the rule, in all, by evolution strategies."""
    sigma: float = Field(default=0.01, gt=0)
    """How far evolution strategies move the weights."""


class LearnedTrain(Settings):
    """How the learner is trained; ``steps`` are its updates."""

    batch_size: int = Field(default=128, ge=1)
    tune_steps: int | None = Field(default=None, ge=1)
    """Updates with each learning rate of a grid; by default as many as ``steps``."""
    log_every: int = Field(default=10, ge=1)
    eval_every: int = Field(default=100, ge=1)
    eval_batch_size: int = Field(default=1000, ge=1)
    eval_batches: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    """Held-out batches, the first ones; by default all."""


class LearnedRun(RunConfig):
    """One optimiser, if need be meta-trained or tuned, and one learner trained with it."""

    kind: Literal["learned"] = "learned"
    task: TaskConfig
    network: LearnerConfig
    optimiser: OptimiserConfig
    meta: MetaConfig
    train: LearnedTrain


class LearnedVariant(Frozen):
    """One line of a comparison: what differs from the tables above it."""

    label: str
    optimiser: dict[str, Any]
    task: dict[str, Any] = Field(default_factory=dict)
    network: dict[str, Any] = Field(default_factory=dict)
    meta: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)


class LearnedExperiment(ExperimentConfig):
    """Several optimisers, each training the same learners on the same batches."""

    run = LearnedRun

    kind: Literal["learned"] = "learned"
    task: dict[str, Any]
    network: dict[str, Any]
    meta: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any]
    variant: list[LearnedVariant] = Field(min_length=1)

    def variants(self) -> dict[str, dict[str, Any]]:
        base = self.model_dump(include={"task", "network", "meta", "train"})
        return labelled(
            (one.label, merged(base, one.model_dump(exclude={"label"}))) for one in self.variant
        )
