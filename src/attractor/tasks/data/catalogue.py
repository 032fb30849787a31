"""The catalogue of data sets, read from ``catalogue.toml``."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from attractor.errors import unknown


@dataclass(frozen=True)
class File:
    """One published file: its path below the data root, and what it must look like.

    A sum or size that is not known is ``None``; the MD5 sum always is.
    """

    path: str
    md5: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Part:
    """One array of a data set; `forms` are equivalent, and the first is the one to fetch."""

    shape: tuple[int, ...]
    forms: tuple[File, ...]


@dataclass(frozen=True)
class Dataset:
    """A data set: its parts by name, and the addresses below which its files are published."""

    title: str
    homepage: str
    licence: str
    addresses: tuple[str, ...]
    parts: dict[str, Part]


def parse(entry: dict[str, Any]) -> Dataset:
    """A data set, from its table in the catalogue."""
    parts = {
        name: Part(tuple(part["shape"]), tuple(File(**form) for form in part["forms"]))
        for name, part in entry["parts"].items()
    }
    return Dataset(**entry | {"addresses": tuple(entry["addresses"]), "parts": parts})


DATASETS: dict[str, Dataset] = {
    name: parse(entry)
    for name, entry in tomllib.loads(
        files("attractor.tasks.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    ).items()
}
"""All data sets that can be fetched, by name."""


def dataset(name: str) -> Dataset:
    """The data set of that name.

    Example:
        >>> dataset("mnist").parts["train images"].shape
        (60000, 28, 28)
    """
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]
