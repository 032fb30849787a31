"""The catalogue of data sets, read from ``catalogue.toml``."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from attractor.errors import unknown


@dataclass(frozen=True)
class File:
    """One published file: its path below the data root, and what it must look like.

    A sum or size that is not known is ``None``.
    """

    path: str
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None

    @property
    def has_sum(self) -> bool:
        """Whether a copy can be told from the published file."""
        return self.md5 is not None or self.sha256 is not None


@dataclass(frozen=True)
class Part:
    """One array of a data set, or a text, which has no shape; the forms are equivalent.

    The first form is the one to fetch, or the one to which the data set's archive unpacks.
    """

    shape: tuple[int, ...] | None
    forms: tuple[File, ...]


@dataclass(frozen=True)
class Dataset:
    """A data set: its parts by name, and the addresses below which its files are published.

    Where there is an `archive`, it is what is published, and holds the parts at their paths.
    """

    title: str
    homepage: str
    licence: str
    addresses: tuple[str, ...]
    parts: dict[str, Part]
    archive: File | None = None


def parse(entry: dict[str, Any]) -> Dataset:
    """A data set, from its table in the catalogue."""
    parts = {
        name: Part(
            tuple(part["shape"]) if "shape" in part else None,
            tuple(File(**form) for form in part["forms"]),
        )
        for name, part in entry["parts"].items()
    }
    archive = File(**entry["archive"]) if "archive" in entry else None
    addresses = tuple(entry["addresses"])
    return Dataset(**entry | {"addresses": addresses, "parts": parts, "archive": archive})


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
