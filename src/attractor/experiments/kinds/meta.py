"""How a configuration meta-trains a learned optimiser: its table ``[meta]``."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from torch import Generator

from attractor.errors import InputError, unknown
from attractor.experiments.config import Frozen
from attractor.experiments.kinds.parts import Spec
from attractor.meta import Distribution, MetaTrainer, Problem
from attractor.meta.settings import bounds
from attractor.meta.trainer import options_of
from attractor.optimisers import Rule, load_rule
from attractor.optimisers.files import load_pretrained
from attractor.tables import code_in
from attractor.training.schedules import Schedule


class Meta(Frozen):
    """How an optimiser is meta-trained; see `MetaTrainer`."""

    newer = (
        *("random", "schedule", "clamp", "norm", "clip"),
        *("logarithm", "settled", "moves", "start", "frozen"),
        *("marks", "bound", "validate_every", "validate_on"),
    )

    method: Literal["bptt", "pes", "es", "whole"] = "bptt"
    tasks: list[Spec] = Field(default_factory=list)
    """What its learners learn, taking turns; by default the task of the run. One may have a
    ``model`` and a ``random`` of its own, the latter beside that of all."""
    model: Spec | None = None
    """What its learners are; by default the model of the run."""
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
    random: dict[str, Any] = Field(default_factory=dict)
    """What of each learner is drawn at random, as lists and ranges (see `Distribution`): ``model``,
    with options of the network, ``batch_size``, ``readout``, of which the last layer starts at so
    much, ``samples``, ``stretch`` and ``weight`` (see `Problem`)."""
    schedule: Schedule | None = None
    """How the rate of what updates the rule falls; by default it stays."""
    clamp: float | None = Field(default=None, gt=0)
    """Bound of each entry of the meta-gradient; by default the estimator's."""
    norm: float | None = Field(default=None, gt=0)
    """Bound of the norm of the meta-gradient; by default the estimator's."""
    clip: float | None = Field(default=None, gt=0)
    """Bound of a learner's loss, in times its first one, for evolution strategies and whole
    trainings; by default the estimator's."""
    logarithm: bool = False
    """Whether evolution strategies count the logarithms of losses."""
    settled: bool = False
    """Whether evolution strategies judge learners at the rule's average."""
    moves: int = Field(default=1, ge=1)
    """Pairs of learners that evolution strategies run alike, under moves of their own."""
    marks: int = Field(default=4, ge=1)
    """How often whole trainings are judged: at their end, half-way and so on."""
    bound: float = Field(default=0.2, gt=0)
    """How much one of them counts at most."""
    validate_every: int | None = Field(default=None, ge=1)
    """Updates of the rule between two measurements on fixed trainings; the best weights are kept.
    By default there are none."""
    validate_on: int = Field(default=20, ge=1)
    """How many fixed trainings."""
    start: str | None = None
    """Weights to begin with: a file, or the name of a set that comes with the package."""
    frozen: list[str] = Field(default_factory=list)
    """Weights of the rule that stay as they are, each by its name or the beginning of it."""


def begun(rule: Rule, meta: Meta) -> Rule:
    """The rule with the weights that it is to begin with, some of them frozen."""
    if meta.start is not None:
        named = meta.start.endswith(".safetensors")
        code = [name for _, name in code_in(rule.options)]  # which the configuration names itself
        begin = (
            load_rule(meta.start, type(rule), code=code)
            if named
            else load_pretrained(rule.key, meta.start)
        )
        if (type(begin), begin.options) != (type(rule), rule.options):
            raise InputError(
                f"expected meta.start to hold a rule {rule.key!r} of the options {rule.options}, "
                f"but {meta.start} has {begin.key!r} of {begin.options}. Set the same options in "
                "[optimiser]."
            )
        rule.load_state_dict(begin.state_dict())
    names = dict(rule.named_parameters())
    for start in meta.frozen:
        held = [name for name in names if name == start or name.startswith(f"{start}.")]
        if not held:
            raise unknown("weight of the rule in meta.frozen", start, names)
        for name in held:
            names[name].requires_grad_(False)
    return rule


def trainer_of(
    rule: Rule, problems: Sequence[Problem | Distribution], meta: Meta, generator: Generator
) -> MetaTrainer:
    """The meta-training of a configuration."""
    steps = meta.steps if isinstance(meta.steps, int) else bounds(meta.steps)
    side_by_side = {"pairs": meta.together, "trainings": meta.together}
    given = {**dict(meta), **side_by_side, "steps": steps}
    own = {name: given[name] for name in options_of(meta.method) if given.get(name) is not None}
    return MetaTrainer(
        rule,
        problems,
        estimator=meta.method,
        lr=meta.lr,
        schedule=meta.schedule,
        clamp=meta.clamp,
        norm=meta.norm,
        validate_every=meta.validate_every,
        validate_on=meta.validate_on,
        generator=generator,
        **own,
    )


def checked_random(choices: dict[str, Any]) -> dict[str, Any]:
    """What of each learner is drawn at random, once its names are known to be right."""
    known = ("model", "batch_size", "samples", "readout", "stretch", "weight")
    for name in choices:
        if name not in known:
            raise unknown("choice of meta.random", name, known)
    return choices
