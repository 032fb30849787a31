"""One run again: from the configuration in its folder, and held against what it came to."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from attractor.errors import InputError
from attractor.experiments.changes import changed, resized
from attractor.experiments.config import RunConfig, validated
from attractor.experiments.files import EXPERIMENTS, read_toml, with_bases
from attractor.experiments.kinds import kind
from attractor.experiments.read import check_budget
from attractor.experiments.train import run_folder, train
from attractor.runs.environment import differences, read, segments
from attractor.runs.folder import CONFIG, DONE, LOG_FILE, damage
from attractor.tables import code_in

NAMES = {"experiment", "label", "seed"}
"""What the file of one run says, and that of an experiment does not."""
TEXTS = {"title", "description", "label"}
"""What is shown and never looked up."""
TIMES = {"seconds", "seconds_per_level", "seconds_per_task", "log", "sha256"}
"""What two equal runs need not have in common, or is compared line by line."""


class Verdict(NamedTuple):
    """Whether a run that was repeated came to the same, and if not, what is different first."""

    difference: str
    elsewhere: list[str]
    """What may move numbers and was not as it is here."""
    lines: int
    """Of the log."""

    @property
    def same(self) -> bool:
        return not self.difference


def read_run(path: Path, changes: Iterable[str] = (), *, trust: bool = False) -> RunConfig | None:
    """The one run whose complete configuration a file holds, or None if it is of an experiment.

    Args:
        path: ``config.toml`` of a run folder, or a copy of it.
        changes: ``a.b=value``; they make it another run.
        trust: let it name code, as ``module:Class``, which is imported and called once the run is
            made. Without it, such a file is refused before anything is imported.
    """
    content = read_toml(path)
    if not content.keys() >= NAMES:
        return None
    if not trust:
        _refuse_code(content, path)
    changes = list(changes)
    new = changed(content, changes)
    check_budget(content.get("budget"), new.get("budget"))
    if new.get("budget") == "full" and resized(content, changed({}, changes)):
        new["budget"] = "changed"
    return validated(kind(str(new.get("kind"))).run, new, path.name)


def _refuse_code(content: Mapping[str, Any], path: Path) -> None:
    """Refuse the file of a run that names what is in no table and in no experiment of ours."""
    found = list(code_in({name: part for name, part in content.items() if name not in TEXTS}))
    if not found:
        return
    own = {name for one in EXPERIMENTS.values() for _, name in code_in(with_bases(one))}
    if others := [one for one in found if one[1] not in own]:
        key, name = others[0]
        raise InputError(
            f"expected a run made of attractor's own parts in {path}, but its {key} is {name!r}, "
            "code that would be imported and called. If you trust whoever made the run, try "
            "--trust on the command line, or trust=True in Python."
        )


def verify(folder: Path, *, data: Path | None = None, trust: bool = False) -> Verdict:
    """Repeat a finished run in a temporary folder, and compare the two bit for bit.

    Args:
        folder: of the run.
        data: the data root.
        trust: let the run name code of a module, which is then imported and called.
    """
    config = read_run(folder / CONFIG, trust=trust) if (folder / CONFIG).is_file() else None
    if config is None or not (folder / DONE).is_file():
        got = "a run that is not done" if config else "no run"
        raise InputError(
            f"expected the folder of a finished run at {folder}, but got {got}. Try such as "
            "runs/demo/lstm-0-1234567890, or finish it with `attractor run`."
        )
    with tempfile.TemporaryDirectory(prefix="attractor-verify-") as temporary:
        out = Path(temporary)
        train(config, out, data=data)
        return compared(folder, run_folder(out, config))


def compared(folder: Path, again: Path) -> Verdict:
    """Two folders of one run, held against each other."""
    here = read(again)
    elsewhere = [one for there in segments(read(folder)) for one in differences(there, here)]
    try:
        ours, theirs = ((one / LOG_FILE).read_bytes().splitlines() for one in (folder, again))
    except OSError as error:
        raise InputError(
            f"expected the log of a finished run at {folder / LOG_FILE}, but got: "
            f"{error.strerror}. Repeat the run with `attractor run`."
        ) from error
    return Verdict(
        _first_line(ours, theirs) or _first_number(folder, again) or damage(folder),
        list(dict.fromkeys(elsewhere)),
        len(theirs),
    )


def _first_line(ours: list[bytes], theirs: list[bytes]) -> str:
    for number, (one, other) in enumerate(zip_longest(ours, theirs), start=1):
        if one != other:
            return (
                f"line {number} of {LOG_FILE} is {_text(one)}, but the repeated run wrote "
                f"{_text(other)}"
            )
    return ""


def _first_number(folder: Path, again: Path) -> str:
    ours, theirs = (dict(_flat(_parsed(one / DONE))) for one in (folder, again))
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name, "missing"), theirs.get(name, "missing")
        if one != other and name.partition(".")[0] not in TIMES:
            return f"{name} in {DONE} is {one}, but the repeated run came to {other}"
    return ""


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}


def _flat(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Every number with its path, as text: so NaN is equal to itself."""
    if not isinstance(value, Mapping):
        yield name, json.dumps(value)
        return
    for key, inner in value.items():
        yield from _flat(inner, f"{name}.{key}" if name else str(key))


def _text(line: bytes | None) -> str:
    return "missing" if line is None else line.decode(errors="replace")
