"""Typed, frozen configuration of experiments and runs, read from TOML: what all kinds share."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from attractor.errors import InputError, shortened, unknown
from attractor.experiments.changes import agreement, laid_over, name_of, overruled
from attractor.experiments.files import TABLES, VERSION

Budget = Literal["quick", "full", "changed"]
"""Much shorter than published, as published, or as published but for what ``--set`` changed."""


Table = dict[str, Any]
"""A table of a configuration: as a rule a ``name``, and options that are checked by it."""


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    newer: ClassVar[tuple[str, ...]] = ()
    """Settings that came later, and have no part in a run's name while they are as by default: so
    runs from before go on."""

    @property
    def usual(self) -> set[str]:
        """Those of the newer settings that are as by default."""
        known = type(self).model_fields
        defaults = {n: known[n].get_default(call_default_factory=True) for n in self.newer}
        return {name for name in self.newer if getattr(self, name) == defaults[name]}


class Settings(Frozen):
    """How long a run is, and where it runs."""

    steps: int = Field(ge=1)
    checkpoint_every: int | None = Field(default=None, ge=1)
    """Save after so many updates too, not only every few seconds."""
    device: str = "cpu"
    threads: int = Field(default=1, ge=1)


def file_name(name: str) -> str:
    """A name, once it is known to be that of one file or folder, wherever it is put."""
    if not re.fullmatch(r"[\w.,=+() -]{1,100}", name) or not name.strip(". "):
        raise InputError(
            "expected the name of an experiment to be letters, digits and -_.,=+() alone, at most "
            f"100 of them and not dots alone, but got {shortened(name)}. Rename its file."
        )
    return name


def slug(text: str) -> str:
    """Text as a part of a file's name: small letters, digits and dashes.

    Example:
        >>> slug("../LSTM [big]")
        'lstm-big'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:100] or "run"


class RunConfig(Frozen):
    """One variant, one seed: all that decides the numbers of a run."""

    version: int = VERSION
    kind: str
    experiment: Annotated[str, AfterValidator(file_name)]
    title: str
    description: str = ""
    budget: Budget
    label: str
    seed: int = Field(ge=0)
    train: Settings

    @property
    def total(self) -> int | None:
        """Steps from start to end; ``None`` where only the data can tell."""
        return self.train.steps

    @property
    def id(self) -> str:
        """Label and seed for people, then a hash of all that decides the numbers."""
        names = dict.fromkeys(("kind", "title", "description", "budget"), True)
        parts = {name: part.usual for name, part in self if isinstance(part, Frozen)}
        parts["train"] = {"checkpoint_every", *parts["train"]}
        content = self.model_dump(exclude={**names, **parts})
        text = json.dumps(content, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f"{slug(self.label)}-{self.seed}-{digest[:10]}"

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(exclude_none=True))


class Tables(Frozen):
    """The tables that a comparison has for all of its variants, and each variant of its own."""

    task: Table = Field(default_factory=dict)
    stream: Table = Field(default_factory=dict)
    features: Table = Field(default_factory=dict)
    model: Table = Field(default_factory=dict)
    optimiser: Table = Field(default_factory=dict)
    strategy: Table = Field(default_factory=dict)
    meta: Table = Field(default_factory=dict)
    train: Table = Field(default_factory=dict)

    @property
    def tables(self) -> dict[str, Table]:
        """Those that say something."""
        return {name: table for name, table in self if name in TABLES and table}


class Variant(Tables):
    """One line of a comparison: what differs from the tables above it."""

    label: str


class ExperimentConfig(Tables):
    """A comparison: several variants, each from several seeds."""

    version: int = VERSION
    kind: str
    title: str
    description: str = ""
    budget: Budget
    seeds: list[int] = Field(min_length=1)
    variant: list[Variant] = Field(min_length=1)
    changes: dict[str, Table] = Field(default_factory=dict)
    """What ``--set`` lays over the tables of every variant, whatever it says itself."""

    def variants(self, only: Iterable[str] = ()) -> dict[str, dict[str, Table]]:
        """By label, the tables of each variant.

        If ``--set`` names what the variants choose, such as ``strategy=er``, it is the one of that
        name that has most of the changes, the first of several such; if none has the name, it goes
        alone. Variants that `only` names are changed, whatever they choose.
        """
        labels = [one.label for one in self.variant]
        if len(set(labels)) < len(labels):
            raise InputError(
                f"expected each variant to have its own label, but got {labels}. Rename one."
            )
        base = self.tables
        own = {one.label: one.tables for one in self.variant}
        each = {label: laid_over(base, tables) for label, tables in own.items()}
        for table, change in self.changes.items():
            choices = {label: name_of(one.get(table, {})) for label, one in own.items()}
            name = name_of(change)
            if name is None or not any(choices.values()) or own.keys() & set(only):
                continue
            named = [label for label, choice in choices.items() if choice == name]
            best = max(named, key=lambda label: agreement(own[label], self.changes), default=None)
            if best is None:  # a network in the place of the first one has its sizes
                first = next(one[table] for one in each.values() if table in one)
                return {name: {**base, table: first}}
            return {best: each[best]}
        return each

    def runs(self, name: str, run: type["R"], only: Iterable[str] = ()) -> list["R"]:
        """Every run of the comparison, seed by seed; with `only`, of the variants named."""
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(
                f"expected different seeds, but got {self.seeds}. Leave the repeated ones out."
            )
        only = list(only)
        variants = self.variants(only)
        chosen = only or list(variants)
        for label in chosen:
            if label not in variants:
                raise unknown("variant of this experiment", label, variants)
        names = {"experiment": name, **self.model_dump(include={*_NAMES})}
        return [
            validated(run, {**names, "seed": seed, **self._changed(label, tables)}, label)
            for seed in self.seeds
            for label, tables in variants.items()
            if label in chosen
        ]

    def _changed(self, label: str, tables: dict[str, Table]) -> dict[str, Any]:
        """A variant as ``--set`` makes it; its label may name what is no longer so."""
        own = next((one.tables for one in self.variant if one.label == label), {})
        said = [f"{key}={value}" for key, value in overruled(own, self.changes).items()]
        told = f"{label} ({', '.join(said)})" if said else label
        return {"label": told, **laid_over(tables, self.changes)}


class Kind(NamedTuple):
    """What a run of a kind of experiment is, and what builds its process.

    Args:
        run: the configuration of one run.
        build: from a run and what is around it to its `attractor.experiments.work.Work`.
    """

    run: type[RunConfig]
    build: Callable[[Any, Any], Any]


R = TypeVar("R", bound=RunConfig)
_NAMES = ("kind", "title", "description", "budget")


M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], content: dict[str, Any], where: str) -> M:
    """Check a dictionary against a configuration, or say in one sentence what is wrong."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = [part for part in first["loc"] if isinstance(part, str)]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise unknown(f"key in {where}", name, _keys(model, path[:-1])) from error
        if first["type"] == "missing":
            raise InputError(
                f"expected a value for {name!r} in {where}, but there is none. "
                "Add one, or see docs/experiments.md for an example."
            ) from error
        raise InputError(
            f"expected a valid {name!r} in {where} ({first['msg'][0].lower()}{first['msg'][1:]}), "
            f"but got {shortened(first['input'])}. Try another value in the file, or with --set."
        ) from error


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """Full names of the keys of the table at `path`."""
    for part in path:
        inner: Any = model.model_fields[part].annotation
        model = getattr(inner, "__args__", (inner,))[0]
    return [".".join([*path, field]) for field in model.model_fields]
