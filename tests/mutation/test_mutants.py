"""The mutants are what they say, and their tables speak of files, code and tests that are there."""

import ast

import pytest

from mutation.decisions import both
from mutation.forks import Job
from mutation.native import NATIVE, Line, lines
from mutation.operators import mutants, sampled
from mutation.rooms import DECIDING
from mutation.run import ROOT, SOURCE, collect, known
from mutation.table import NAMED, TARGETS, Named

CODE = """
def step(x, h, size):
    if size < 1:
        raise ValueError(size + 1)
    z = torch.sigmoid(x[size + 1])
    return (1 - z) * h + 0.5 * x
"""

DECIDED = """
def worst(found, asked, best):
    if found is None:
        raise ValueError(asked == best)
    kept = asked & best if asked in found and len(best) <= 3 else sorted(best)
    return not any(0 <= one < 2 for one in kept)
"""


def test_every_change_is_one_of_the_maths() -> None:
    found = {m.name.removeprefix("a.py step: ") for m in mutants("a.py", CODE)}
    assert found == {
        "torch.sigmoid(x[size + 1]) -> torch.tanh(x[size + 1])",
        "1 - z -> 1 + z",
        "1 - z -> 2 - z",
        "(1 - z) * h -> (1 - z) / h",
        "(1 - z) * h -> 1 - z",
        "(1 - z) * h -> h",
        "(1 - z) * h + 0.5 * x -> (1 - z) * h - 0.5 * x",
        "0.5 * x -> 0.5 / x",
        "0.5 * x -> 0.5",
        "0.5 * x -> x",
        "0.5 -> 0.75",
    }


def test_every_change_is_one_of_what_is_decided() -> None:
    found = {m.name.removeprefix("a.py worst: ") for m in mutants("a.py", DECIDED, both)}
    chosen = "asked & best if asked in found and len(best) <= 3 else sorted(best)"
    assert found == {
        f"{chosen} -> asked & best",
        f"{chosen} -> sorted(best)",
        "asked & best -> asked | best",
        "asked in found and len(best) <= 3 -> asked in found or len(best) <= 3",
        "asked in found and len(best) <= 3 -> asked in found",
        "asked in found and len(best) <= 3 -> len(best) <= 3",
        "asked in found -> asked not in found",
        "len(best) <= 3 -> len(best) < 3",
        "sorted(best) -> best",
        "not any((0 <= one < 2 for one in kept)) -> any((0 <= one < 2 for one in kept))",
        "any((0 <= one < 2 for one in kept)) -> all((0 <= one < 2 for one in kept))",
        "0 <= one < 2 -> 0 < one < 2",
        "0 <= one < 2 -> 0 <= one <= 2",
    }
    assert [m.name for m in mutants("a.py", CODE, both)] == [m.name for m in mutants("a.py", CODE)]


def test_a_mutant_differs_in_one_place_and_leaves_the_rest() -> None:
    (mutant,) = [m for m in mutants("a.py", CODE) if m.name.endswith("1 - z -> 1 + z")]
    assert mutant.line == 6
    expected = ast.unparse(ast.parse(CODE)).replace("(1 - z)", "(1 + z)")
    assert ast.unparse(mutant.tree) == expected


def test_a_sample_does_not_depend_on_other_lines() -> None:
    chosen = [m.name for m in sampled("a.py", CODE, 3, seed=0)]
    longer = CODE + "\n\ndef other(x):\n    return x.exp()\n"
    kept = [m.name for m in sampled("a.py", longer, 4, seed=0)]
    assert len(chosen) == 3
    assert set(chosen) <= {*kept, "a.py other: x.exp() -> x"}
    assert chosen != [m.name for m in sampled("a.py", CODE, 3, seed=1)]


def test_tables_speak_of_what_is_there() -> None:
    named = ((n.path, n.tests) for n in NAMED)
    for path, tests in [*TARGETS.items(), *DECIDING.items(), *named]:
        assert (SOURCE / path).is_file(), path
        for test in tests:
            assert (ROOT / "tests" / test).exists(), test


@pytest.mark.parametrize("named", NAMED, ids=lambda named: str(named.name))
def test_named_mutants_are_found(named: Named) -> None:
    source = (SOURCE / named.path).read_text(encoding="utf-8")
    assert ast.unparse(named.of(source).tree) != ast.unparse(ast.parse(source))


@pytest.mark.parametrize("line", lines(), ids=str)
def test_lines_of_kernels_are_found_once(line: Line) -> None:
    text = (ROOT / NATIVE / line.path).read_text(encoding="utf-8")
    assert text.count(line.before) == 1
    assert line.after != line.before
    for test in line.tests:
        assert (ROOT / "tests" / test).exists(), test


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return collect()[0]


def test_every_target_has_a_mutant(jobs: list[Job]) -> None:
    """A file without maths in it needs one by name; else its entry says nothing."""
    changed = {str(job.path) for job in jobs}
    assert [path for path in (*TARGETS, *DECIDING) if str(SOURCE / path) not in changed] == []


def test_every_file_of_the_rooms_that_computes_is_in_one_of_the_tables() -> None:
    assert TARGETS.keys() & DECIDING.keys() == set()
    rooms = sorted({path.partition("/")[0] for path in DECIDING})
    assert len(rooms) == 7
    computing = [
        name
        for room in rooms
        for path in (SOURCE / room).rglob("*.py")
        if len(mutants(name := str(path.relative_to(SOURCE)), path.read_text("utf-8"))) >= 4
    ]
    assert len(computing) > 60
    assert sorted(set(computing) - TARGETS.keys() - DECIDING.keys()) == []


def test_code_that_has_gone_is_missed_with_a_sentence() -> None:
    gone = Named("x", "cells/gru.py", "GRUCell.step", "a + b", "a - b", ())
    with pytest.raises(LookupError, match="expects 'a \\+ b' in GRUCell.step of .*/cells/gru.py"):
        gone.of("class GRUCell:\n    def step(self):\n        return a * b\n")


def test_about_two_hundred_and_fifty_of_each_table_are_run_and_known_survivors_among_them(
    jobs: list[Job],
) -> None:
    deciding = [job for job in jobs if str(job.path) in {str(SOURCE / path) for path in DECIDING}]
    assert 190 <= len(deciding) <= 260
    assert 190 <= len(jobs) - len(deciding) <= 260
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names)
    assert set(known()) <= set(names), "survivors.toml names a mutant that is no longer there"
