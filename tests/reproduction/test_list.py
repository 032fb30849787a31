"""`attractor reproduce list`: one can read it in a terminal of any width, and in a pipe."""

import json

import pytest
from typer.testing import CliRunner

from attractor.cli import tables
from attractor.cli.commands import app
from attractor.reproduction import TARGETS, stock, target
from attractor.reproduction.outcomes import END, Outcomes, Row
from attractor.reproduction.stock import brief
from attractor.reproduction.targets import ASIDES


def listed(width: int | None, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    done = CliRunner().invoke(app, ["reproduce", "list", *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(("width", "most"), [(None, 100), (80, 80), (100, 100), (160, 160)])
def test_no_line_is_wider_and_no_number_is_broken(
    width: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = listed(width, monkeypatch).splitlines()
    assert max(map(len, lines)) <= most
    assert [line.split()[0] for line in lines if line.startswith("00")] == [*TARGETS]
    assert len(lines) < 3.2 * len(TARGETS)
    told = " ".join(" ".join(lines).split())
    assert all(place in told and why in told for place, why in ASIDES.items())
    (row,) = (line for line in lines if line.startswith("000/table-4.1 "))
    assert row.split()[1:4] == ["18", "44,759", "quick"]


def test_what_it_is_about_is_told_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 160):
        text = " ".join(listed(width, monkeypatch).split())
        for one in TARGETS.values():
            assert one.what in text
            assert all(twin in text for twin in one.twins)


def test_json_has_all_and_tells_what_is_a_least(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row["target"]: row for row in json.loads(listed(80, monkeypatch, "--json"))}
    assert rows["000/table-6.5"]["full_is_least"] is True
    assert rows["000/table-6.1"]["full_is_least"] is False
    assert rows["000/table-6.1"]["status"].startswith("stored: full")
    assert rows["001/section-3.7.4"]["quick"] is None


def test_a_short_status_tells_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert brief(target("table-2.1")) == "computed"
    assert brief(target("section-3.7.4")) == "quoted"
    assert brief(target("figure-4.7")) == "full"
    assert brief(target("002/table-2")) == "full"
    own = target("table-6.4")
    ((name, (_, labels)),) = own.experiments("full").items()

    def keeping(seeds: int, variants: int) -> None:
        rows = [
            Row(name, "full", label, seed, "r", END, 1, "accuracy", 0.5)
            for label in labels[:variants]
            for seed in range(seeds)
        ]
        known = Outcomes(rows)
        monkeypatch.setattr(stock, "stored", lambda asked: known if asked == name else Outcomes([]))

    keeping(20, len(labels))
    assert brief(own) == "full"
    keeping(19, len(labels))
    assert brief(own) == "some full"
    keeping(20, 1)
    assert brief(own) == "some full"
    keeping(0, 0)
    assert brief(own) == "not run"


def test_a_last_column_stands_beside_the_others_or_below() -> None:
    rows = [["a", "1", "one two three four five six seven eight nine ten"], ["bcd", "20", "x\x1b"]]
    wide = tables.hanging(("k", "n", "what"), rows, 50, right=(1,))
    assert wide == [
        "k     n  what",
        "a     1  one two three four five six seven eight",
        "         nine ten",
        "bcd  20  x\\x1b",
    ]
    narrow = tables.hanging(("k", "n", "what"), rows, 30, right=(1,))
    assert narrow == [
        "k     n",
        "  what",
        "a     1",
        "  one two three four five six",
        "  seven eight nine ten",
        "bcd  20",
        "  x\\x1b",
    ]
