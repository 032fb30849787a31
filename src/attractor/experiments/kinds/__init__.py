"""The kinds of experiments: what a run of each is, and what builds it. One file each."""

from attractor.errors import unknown
from attractor.experiments.config import Kind
from attractor.tables import lookup

KINDS: dict[str, str] = {
    "continual": "attractor.experiments.kinds.continual:KIND",
    "lifelong": "attractor.experiments.kinds.lifelong:KIND",
    "supervised": "attractor.experiments.kinds.supervised:KIND",
}
"""Where each is, in the form in which a kind of the user's own is named; imported when asked for,
since it needs torch and a list of experiments does not."""


def kind(name: str) -> Kind:
    """The kind of a name, or the user's own as ``module:KIND``."""
    if name not in KINDS and ":" not in name:
        raise unknown("kind of experiment", name, KINDS)
    found: Kind = lookup("kind of experiment", {}, KINDS.get(name, name))
    return found
