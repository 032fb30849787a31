"""Put a page together: chapters of tables and figures, poured into one template."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.report.bundle import packed_script, script_safe
from attractor.report.chapter import Chapter, chapter
from attractor.report.claims import claims_on, counted
from attractor.report.comparing import listed
from attractor.report.figures import ROOM, Figure
from attractor.report.speed import speed_part
from attractor.report.standing import standing_part
from attractor.report.tables import STRIP_WIDTH
from attractor.results.speed import Result
from attractor.results.standing import Standing
from attractor.runs.read import Damaged, Run

if TYPE_CHECKING:
    from attractor.report.inside import Inside


BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\N{REPLACEMENT CHARACTER}")
"""Signs that turn the text after them around, also when it is not of the name that has one."""
SCRIPTS = ("state.js", "tables.js", "axes.js", "runs.js", "page.js")


def build(
    runs: Sequence[Run],
    title: str | None = None,
    damaged: Sequence[Damaged] = (),
    *,
    benchmarks: Sequence[Standing | Result] = (),
    watch: str = "",
    inside: "Mapping[str, Sequence[Inside]] | None" = None,
) -> str:
    """Turn runs into one HTML page. The same runs give the same page, byte for byte.

    Args:
        runs: as :func:`attractor.runs.read.read_runs` returns them; those of several
            experiments or budgets get a chapter each.
        title: the heading; ``None`` takes it from the runs.
        damaged: run folders that could not be read, which the page names.
        benchmarks: as :func:`attractor.results.benchmark.load` returns them; each gets a part
            after the chapters.
        watch: the version of a page that is served and asks now and then for the next one.
        inside: what `attractor.report.inside.looked_into` found in the runs, to be shown too.

    Returns:
        The page; it holds its styles, scripts and data, and asks for nothing else.
    """
    if not (runs or benchmarks):
        raise InputError("expected at least one run for a report, but got none. Try runs.")
    parts: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        parts.setdefault((run.experiment, run.budget), []).append(run)
    found = inside or {}
    claims = claims_on(runs)
    chapters = [
        chapter(
            part,
            found.get(f"{experiment}/{budget}", ()),
            claims.get(experiment, ()) if budget != "changed" else (),
            ROOM * len(part) / len(runs),
        )
        for (experiment, budget), part in parts.items()
    ]
    measured = [
        speed_part(one) if isinstance(one, Result) else standing_part(one) for one in benchmarks
    ]
    if title is None:
        title = _title([*(part.title for part in chapters), *(part.title for part in measured)])
    figures = [figure for part in chapters for figure in part.drawn]
    return page(
        "report.html.j2",
        [*figures, *(part.figure for part in measured)],
        title=title,
        headline=_headline(chapters) if chapters else measured[0].findings[0],
        chapters=chapters,
        benchmarks=measured,
        damaged=damaged,
        strip_width=STRIP_WIDTH,
        watch=watch,
        opened=_json([part.drill.data for part in chapters]),
    )


def _title(titles: Sequence[str]) -> str:
    """Of one or two experiments their own; of several, the first and how many more."""
    first, *others = dict.fromkeys(titles)
    if len(others) > 1:
        return f"{first}, and {len(others)} more experiments"
    return "; ".join((first, *others))


def _headline(chapters: Sequence[Chapter]) -> str:
    """The main finding: of one experiment its own; of several, where a variant is ahead."""
    if len(chapters) == 1:
        return chapters[0].headline
    ahead = [f"{one.leader} in {one.experiment}" for one in chapters if one.leader is not None]
    where = f"{len(ahead)} of {len(chapters)}" if ahead else f"none of {len(chapters)}"
    who = f" ({listed(ahead)})" if ahead else ""
    verb = "one variant is shown" if ahead else "is one variant shown"
    claims = [claim for one in chapters for claim in one.claims]
    first = f"In {where} experiments {verb} to be ahead of all others{who}."
    return " ".join([first, *counted(claims)])


def page(template: str, figures: Sequence[Figure], **parts: object) -> str:
    """A template with its figures, styles and scripts in it; it asks for nothing else."""
    drawn = [{"data": figure.traces, "layout": figure.layout} for figure in figures]
    return (
        _environment()
        .get_template(template)
        .render(
            figures=_json(drawn),
            style=_template("style.css"),
            script=script_safe("".join(map(_template, SCRIPTS))),
            plotting=packed_script(),
            **parts,
        )
    )


def write(html: str, path: Path) -> None:
    """Save a page; at every moment the file is the old one or the new one, never a part."""
    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"expected the name of a file for the report, but got the folder {path}. "
            f"Try {path / 'report.html'}."
        )
    write_atomic(path, html.encode("utf-8", errors="replace"))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("attractor.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalize(value: object) -> object:
    # An address in a description stays legible, yet nothing in the file looks like a link.
    if isinstance(value, str) and not isinstance(value, Markup):
        text = str(escape(value)).replace("://", ":&#47;&#47;").translate(BIDI)
        return Markup(text)  # noqa: S704 (escaped in the line above)
    return value


def _template(name: str) -> str:
    return resources.files("attractor.report").joinpath("templates", name).read_text("utf-8")


def _json(value: object) -> str:
    """JSON that cannot end the script element around it, nor hold an address."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for old, new in (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"), ("/", r"\/")):
        text = text.replace(old, new)
    for sign in BIDI:
        text = text.replace(f"\\u{sign:04x}", r"\ufffd")
    return text
