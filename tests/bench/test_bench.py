"""A benchmark: what it measures, how it is kept, and when it complains."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from attractor.bench import Result, Shape, bench, load, save
from attractor.bench.cells import SHAPES, cases, measure
from attractor.bench.growth import of_cell, of_starts
from attractor.bench.kept import Kept
from attractor.bench.room import FEW, Cost, cost, memory
from attractor.bench.run import Grow, again
from attractor.bench.timing import Work, best_of, threads
from attractor.bench.works import PEERS, fitting, passes
from attractor.cells import CELLS
from attractor.errors import InputError
from attractor.results.speed import Case, Growth, Timed, found_in, row
from attractor.training import Stopped
from experiments.helpers import called

SMALL = Shape(5, 3, 2, 8)
CASE = Case("gru", SMALL, "training", 1)


class Clock:
    """A clock that only works move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.order = 0.0, list[str]()
        for name in ("process_time", "perf_counter"):
            monkeypatch.setattr(time, name, lambda: self.now)

    def work(self, name: str, *takes: float) -> Callable[[], None]:
        left = iter(takes)

        def do() -> None:
            self.order.append(name)
            self.now += next(left)

        return do


def test_best_of_takes_turns_and_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    works = {"a": clock.work("a", 30, 10, 20), "b": clock.work("b", 5, 6, 7)}
    took = best_of(works, seconds=0, turns=3)
    assert clock.order == ["a", "b"] * 3
    assert took == {"a": 10, "b": 5}


def test_best_of_begins_no_turn_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert best_of({"a": clock.work("a", 9, *[4] * 9)}, seconds=22) == {"a": 4}
    assert clock.now == 9 + 3 * 4  # a fourth would end at 25


def test_what_is_slow_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    works = {
        "slow": clock.work("slow", 50),
        "layer": clock.work("layer", *[2] * 9),
        "gru": clock.work("gru", *[3] * 9),
    }
    took = best_of(works, seconds=66, spared=["slow", "gru"])
    assert took == {"slow": 50, "layer": 2, "gru": 3}
    assert clock.order == ["slow", "layer", "gru"] + ["layer", "gru"] * 2
    assert clock.now == 65
    late = Clock(monkeypatch)
    best_of({"slow": late.work("slow", 50), "layer": late.work("layer", 2, 2)}, 1, 2, ["slow"])
    assert late.order == ["slow", "layer", "layer"]  # what is judged is done twice, come what may


def test_one_thread_is_timed_by_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, tick in (("process_time", 1), ("perf_counter", 10)):
        monkeypatch.setattr(time, name, partial(next, count(0, tick)))
    for number, tick in ((1, 1), (2, 10)):
        with threads(number):
            assert best_of({"a": lambda: None}, seconds=-1, turns=1) == {"a": tick}


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_has_work_that_trains(cell: str) -> None:
    found = passes(Case(cell, SMALL, "training", 1))
    assert list(found) == ["layer", "eager", "lstm", "gru"]
    for passing in found.values():
        passing(SMALL.steps)()


def test_layer_and_loop_are_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = list[torch.Tensor]()
    monkeypatch.setattr(
        "attractor.bench.works.forward", lambda layer, x: lambda: outputs.append(layer(x))
    )
    found = passes(CASE._replace(way="forward"))
    for name, steps in (("layer", 5), ("eager", 5), ("eager", 3)):
        found[name](steps)()
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(outputs[0][:3], outputs[2])


def test_forward_keeps_no_gradient() -> None:
    work = passes(CASE._replace(way="forward"))["layer"](5)
    with pytest.MonkeyPatch.context() as patch:
        seen = list[bool]()

        def called_with(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor]:
            seen.append(torch.is_grad_enabled())
            return (x,)

        patch.setattr(nn.Module, "__call__", called_with)
        work()
    assert seen == [False]


def test_whole_benchmark_has_all_cells_ways_and_threads() -> None:
    found = cases(list(CELLS), SHAPES, [1, 2])
    assert len(set(found)) >= 2 * 2 * 9 * len(CELLS)
    assert {one.threads for one in found} == {1, 2}
    assert fitting("eurnn", 630) == 1024


def test_installed_peers_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PEERS["sru"] == ("SRU",)
    module = ModuleType("sru")
    module.SRU = nn.RNN  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sru", module)
    monkeypatch.setitem(sys.modules, "torchrecurrent", None)
    found = [one for one in cases(["gru"], [SMALL], [1]) if "." in one.cell]
    assert [one.cell for one in found] == ["sru.SRU", "sru.SRU"]
    assert measure(found[0], 0, turns=1).eager is None
    module.SRU = nn.Linear  # type: ignore[attr-defined]
    with pytest.raises(
        InputError, match=r"sru.SRU forward 5,3,2,8.*breaks here \(TypeError: .*num_l"
    ):
        measure(found[0], 0, turns=1)


def test_a_few_steps_tell_what_all_cost() -> None:
    found = passes(CASE)["eager"]
    loop = cost(found, 5)
    assert loop.bytes > 3 * 8 * 4  # a state of each sequence at least
    assert loop.seconds > 0
    forward = cost(passes(CASE._replace(way="forward"))["eager"], 5)
    assert forward.bytes == 0


def test_memory_that_others_have_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    77 kB\nBuffers: 5 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    assert memory() == 77 * 1024
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "MemTotal: 9000 kB")
    assert memory() > 10**9  # all there is


def test_the_loop_is_done_for_as_many_steps_as_are_affordable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attractor.bench.room.memory", lambda: 1000)
    assert Cost(1.0, 0.1).affordable(1000) == 100  # ten seconds
    assert Cost(10.0, 0.1).affordable(1000) == 50  # half of the memory
    assert Cost(10.0, 0.1).affordable(20) == 20
    assert Cost(1e9, 0.1).affordable(1000) == FEW
    done = list[int]()

    def turns(works: dict[str, Work], *_: object) -> dict[str, float]:
        assert [*works] == ["layer", "eager", "lstm", "gru"]
        works["eager"]()
        return {"layer": 2.0, "eager": 3.0, "lstm": 4.0, "gru": 5.0}

    def looped(layer: object, x: torch.Tensor) -> Work:
        return lambda: done.append(len(x))

    monkeypatch.setattr("attractor.bench.cells.best_of", turns)
    monkeypatch.setattr("attractor.bench.cells.cost", lambda *_: Cost(1.0, 1.0))
    monkeypatch.setattr("attractor.bench.works.trained", looped)
    found = measure(CASE._replace(shape=SMALL._replace(steps=40)), 0)
    assert done == [10]
    assert (found.seconds, found.eager, found.lstm, found.gru) == (2.0, 12.0, 4.0, 5.0)


def test_a_layer_without_room_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attractor.bench.room.memory", lambda: 100)
    result = bench(cells=["gru"], shapes=[SMALL], seconds=0.0, quick=True, threads=[1])
    assert result.left_out == (
        "gru training 5,3,2,8, 1 thread: left out, for it would take more than half of the "
        "free memory.",
    )
    assert [str(one) for one in result.timed] == ["gru forward 5,3,2,8, 1 thread"]


def test_a_benchmark_that_is_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, told, most = list[str](), list[tuple[int, int]](), 3

    def taken(one: Case | Grow, *_: object) -> Timed | Growth:
        if len(measured) == most:
            raise Stopped
        measured.append(str(one))
        if isinstance(one, Case):
            return Timed(one, 1.0, 2.0, 3.0, 4.0)
        return Growth(one.what, one.axis, (1, 2), (1.0, 2.0))

    def again(seconds: float = 0.0) -> Result:
        told.clear()
        asked: Any = {"cells": ["gru"], "shapes": [SMALL], "threads": [1], "seconds": seconds}
        part = tmp_path / "bench.json.part"
        return bench(**asked, part=part, on_case=lambda done, total, _: told.append((done, total)))

    monkeypatch.setattr("attractor.bench.run._measured", taken)
    with pytest.raises(Stopped):
        again()
    assert told[0] == (0, 9)
    most = 9
    result = again()
    assert told[0] == (3, 9)
    assert told[-1] == (9, 9)
    assert len({*measured}) == len(measured) == 9  # each once
    assert [one.case.way for one in result.timed] == ["forward", "training"]
    assert [one.axis for one in result.growth[:3]] == ["steps", "batch", "units"]
    assert list(tmp_path.iterdir()) == []


def test_times_that_were_made_otherwise_are_not_taken_up(tmp_path: Path) -> None:
    path, rows = tmp_path / "some.part", (row, found_in)
    both: list[Timed | Growth] = [
        Timed(CASE, 2.0, 8.0, 3.0, 1.0),
        Growth("gru", "units", (2, 4), (1.0, 8.0)),
    ]
    for one in both:
        Kept[Timed | Growth](path, {"seconds": 1.0}, *rows).add(one)
    assert Kept(path, {"seconds": 1.0}, *rows).found == both
    assert Kept(path, {"seconds": 2.0}, *rows).found == []
    path.write_text("{")
    assert Kept(path, {"seconds": 1.0}, *rows).found == []


def test_a_cell_grows_with_its_steps() -> None:
    found = of_cell("gru", "steps", seconds=0, turns=1)
    assert found.sizes == (64, 128, 256)
    assert 0.3 < found.exponent < 2


def test_a_search_grows_with_its_starts() -> None:
    found = of_starts(seconds=0, turns=1)
    assert (found.axis, found.sizes) == ("starts", (50, 100, 200, 400))
    assert -0.5 < found.exponent < 1.5  # steps of Python take most of it


def test_what_is_in_doubt_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = Timed(CASE, 2.0, 8.0, 3.0, 1.0), Timed(CASE._replace(threads=2), 2.0, 8.0, 3.0, 1)
    fast = Timed(CASE, 1.0, 9.0, 4.0, 1.0)
    monkeypatch.setattr("attractor.bench.run.measure", lambda case, seconds: fast)
    found = again(Result({}, (slow, other), ()), {CASE})
    assert found.timed == (slow.best(fast), other)
    assert found.timed[0].to_lstm == 3.0


def test_shapes_are_checked() -> None:
    for text in ("1,2,3", "1,2,3,0", "a,b,c,d", "1,2,3,-4"):
        with pytest.raises(InputError, match="steps,batch,inputs,units, but got .* Try 120,10,10"):
            Shape.of(text)
    with pytest.raises(InputError, match="known cell"):
        bench(cells=["lstn"])


def test_command(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    asked = ("bench", "--quick", "--seconds", "0", "--cell", "gru", "--shape", "3,2,1,4")
    done = called(*asked, "-o", file)
    assert done.returncode == 0, done.stderr
    assert "allocator" in done.stdout
    assert "memory kept" in done.stdout
    assert "matmul peak, 1 thread" in done.stdout
    saved = load(file)
    assert {one.what for one in saved.growth} == {"gru", "naive"}
    fast = replace(saved, timed=tuple(replace(one, lstm=1e9) for one in saved.timed))
    save(fast, file)
    again = called(*asked, "--baseline", file)
    assert again.returncode == 1
    assert "slower than" in again.stderr
