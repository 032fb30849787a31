"""What the pages say about speed is what was measured."""

from pathlib import Path

from attractor.cells import CELLS
from attractor.results.speed import Result, load
from attractor.results.speed_tables import beside, markdown

DOCS = Path(__file__).parents[2] / "docs"
LIKE_LSTM = ("lstm", "gru", "janet", "fastgrnn", "sru", "tlstm")
MEMORIES = ("dntm", "ntm", "tardis")
ASKED = {
    **{cell: 1.0 for cell in CELLS if cell in LIKE_LSTM or cell.startswith(("irc_", "ihc_"))},
    **dict.fromkeys(("nru", "decaynet"), 0.8),
    **dict.fromkeys(("eurnn", "goru", "stat_ru"), 0.7),
}
"""Of a training in one thread, times as fast as ``nn.LSTM``."""


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def small(result: Result) -> Result:
    """Where few sequences go side by side."""
    timed = tuple(one for one in result.timed if one.case.shape.batch <= 10)
    return Result(result.machine, timed, ())


def test_kernels_are_as_fast_as_their_page_says() -> None:
    text, found = page("kernels"), load(DOCS / "assets" / "bench.json")
    assert beside(found, "training", 1).markdown() in text
    assert beside(small(found), "training", 1, "eager").markdown() in text
    timed = [one for one in found.timed if (one.case.way, one.case.threads) == ("training", 1)]
    missed = [
        f"| `{one.case.cell}` | {one.case.shape} | {ASKED[one.case.cell]} | {one.to_lstm:.2f} |"
        for one in timed
        if one.to_lstm < ASKED.get(one.case.cell, 0.0)
    ]
    head = "| cell | shape | asked | found |\n| --- | --- | ---: | ---: |\n"
    assert head + "\n".join(missed) + "\n\n" in text
    slow = {
        one.case.cell
        for one in small(found).timed
        if (one.case.way, one.case.threads) == ("training", 1)
        and (one.to_eager or 0) < (10 if one.case.cell in MEMORIES else 3)
    }
    assert f"Fewer times than that: {', '.join(f'`{cell}`' for cell in sorted(slow))}." in text


def test_the_page_of_all_measurements_is_the_benchmarks() -> None:
    assert page("speed").endswith("\n\n" + markdown(load(DOCS / "assets" / "bench.json")))


def test_peers_are_as_fast_as_their_page_says() -> None:
    text, found = page("bench"), load(DOCS / "assets" / "bench-peers.json")
    for way in ("training", "forward"):
        assert beside(found, way, 1).markdown() in text
