"""What a search keeps of its trials, which way is better, and what it puts back."""

from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError, RunError
from attractor.experiments import search as module
from attractor.experiments.search import Search, _Look, begun, search
from attractor.experiments.space import Space
from attractor.experiments.trials import Trials
from attractor.runs.engines import Places
from attractor.training.process import Stopped
from experiments.helpers import TINY

optuna = pytest.importorskip("optuna")

SPACE = Space.read(["optimiser.lr=1e-3..1e-1:log"])


def searched(out: Path, **more: Any) -> Search:
    own: dict[str, Any] = {"changes": (), "only": ("LSTM",), "measure": "loss", "goal": "min"}
    return Search("demo", SPACE, **{**own, **more}, out=out, data=None)


def asked(study: Any) -> Any:
    return study.ask(SPACE.distributions(optuna))


def test_a_point_counts_by_the_mean_over_its_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([1.0, 4.0])
    monkeypatch.setattr(module, "train", lambda *given, **more: None)
    monkeypatch.setattr(module, "_last", lambda *given, **more: (1, next(values)))
    what = Search.of(str(TINY), SPACE, changes=["seeds=[0, 1]"], only=["LSTM"], out=tmp_path)
    found = search(what, 1, places=Places(jobs=1))
    assert [one.value for one in found.trials] == [2.5]


@pytest.mark.parametrize(("goal", "best"), [("min", 1.0), ("max", 3.0)])
def test_the_best_is_on_the_side_of_the_goal(goal: str, best: float, tmp_path: Path) -> None:
    kept = searched(tmp_path, goal=goal).trials()
    for value in (2.0, 1.0, 3.0):
        kept.study.tell(asked(kept.study), value)
    assert kept.study.best_value == best
    assert kept.found()[0].value == best


@pytest.mark.parametrize(
    "other",
    [
        {"changes": ("train.steps=9",)},
        {"only": ("GRU",)},
        {"measure": "accuracy"},
        {"measure": "accuracy", "goal": "max"},
    ],
)
def test_another_search_has_another_journal(other: dict[str, Any], tmp_path: Path) -> None:
    assert searched(tmp_path).journal == searched(tmp_path).journal
    assert searched(tmp_path).journal != searched(tmp_path, **other).journal


def test_an_edited_file_is_another_search(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    text = TINY.read_text()
    mine.write_text(text)
    what = Search.of(str(mine), SPACE, only=["LSTM"], out=tmp_path)
    before = what.journal
    mine.write_text(text + "\n# nothing else\n")
    assert what.journal == before
    mine.write_text(text.replace("steps = ", "steps = 1"))
    assert what.journal != before


def test_what_was_killed_or_stopped_is_put_back_once_and_does_not_count(tmp_path: Path) -> None:
    kept = searched(tmp_path).trials()
    study, states = kept.study, kept.states
    study.tell(asked(study), 1.0)
    study.tell(asked(study), state=states.FAIL)
    killed, stopped = asked(study), asked(study)
    study.ask()  # killed before it had its point
    stopped.set_user_attr("stopped", True)
    study.tell(stopped, state=states.FAIL)
    for _ in range(2):  # the same when it is killed before it began
        assert kept.requeue() == 2
        waiting = study.get_trials(states=(states.WAITING,))
        points = [one.system_attrs["fixed_params"] for one in waiting]
        assert points == [killed.params, stopped.params]
    assert kept.ask("again/0").params == killed.params
    assert kept.ask("again/1").params == stopped.params


def test_a_trial_that_is_stopped_is_marked_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any, **more: Any) -> None:
        raise Stopped

    monkeypatch.setattr(module, "train", stopped)
    ends: list[tuple[int, str]] = []

    def again() -> Any:
        what = Search.of(str(TINY), SPACE, only=["LSTM"], out=tmp_path)
        told = lambda count, ended: ends.append((count, ended.how))  # noqa: E731
        return search(what, 1, places=Places(jobs=1), on_trial=told)

    found = again()
    assert [one.status for one in found.trials] == ["stopped"]
    monkeypatch.setattr(module, "train", lambda *given, **more: None)
    monkeypatch.setattr(module, "_last", lambda *given, **more: (1, 1.0))
    found, before = again(), found
    assert ends == [(0, "stopped"), (1, "done")]
    # it is one point, and told once
    assert [(one.values, one.status) for one in found.trials] == [
        (before.trials[0].values, "complete")
    ]


def test_what_a_killed_process_left_on_its_way_does_not_run(tmp_path: Path) -> None:
    kept = searched(tmp_path).trials()
    kept.ask("old/0")
    assert [one.status for one in kept.found()] == ["stopped"]
    kept.requeue()
    assert kept.found() == ()
    kept.ask("new/0")
    assert [one.number for one in kept.found()] == [1]


def few(tmp_path: Path) -> Trials:
    space = Space.read(["optimiser.lr=0.1,0.2,0.3", "train.steps=1..2"])
    return Trials(tmp_path / "few.journal", space, "min")


def test_each_point_of_a_small_space_is_tried_once(tmp_path: Path) -> None:
    kept = few(tmp_path)
    points = set()
    for number in range(kept.space.size):
        trial = kept.ask(f"call/{number}")
        points.add(tuple(trial.params.values()))
        if number % 2:  # as workers beside each other, which have not ended
            kept.study.tell(trial, 1.0)
    assert len(points) == len(kept.found()) == 6
    assert few(tmp_path).requeue() == 3
    assert len(few(tmp_path).found()) == 3


def test_what_is_left_is_tried_though_the_sampler_looks_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = few(tmp_path)

    def first(study: Any, trial: Any, name: str, choice: Any) -> Any:
        return choice.choices[0] if hasattr(choice, "choices") else choice.low

    monkeypatch.setattr(kept.study.sampler, "sample_independent", first)
    points = [kept.ask(f"call/{number}").params for number in range(6)]
    assert len({tuple(point.values()) for point in points}) == 6


def test_a_point_of_many_is_not_tried_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = searched(tmp_path).trials()
    rates = iter([0.01, 0.01000001, 0.02])
    monkeypatch.setattr(
        kept.study.sampler, "sample_independent", lambda *given, **more: next(rates)
    )
    assert [kept.ask("call/0").params["optimiser.lr"], kept.ask("call/1").params] == [
        0.01,
        {"optimiser.lr": 0.02},
    ]
    assert [one.values for one in kept.found()] == [("0.01",), ("0.02",)]


def test_the_point_of_a_lost_worker_is_taken_up_by_the_one_in_its_place(tmp_path: Path) -> None:
    kept = few(tmp_path)
    lost, other = kept.ask("call/0"), kept.ask("call/1")
    again = kept.ask("call/0")
    assert again.params == lost.params != other.params
    assert kept.asked("call")["call/0"].number == again.number
    assert [one.number for one in kept.found()] == [other.number, again.number]


def test_a_search_ends_when_all_points_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "train", lambda *given, **more: None)
    monkeypatch.setattr(module, "_last", lambda *given, **more: (1, 1.0))
    space = Space.read(["optimiser.lr=0.1,0.2,0.3"])
    what = Search.of(str(TINY), space, only=["LSTM"], out=tmp_path)
    for trials in (2, 9, 9):
        found = search(what, trials, places=Places(jobs=1))
    assert sorted(one.values for one in found.trials) == [("0.1",), ("0.2",), ("0.3",)]


def test_a_place_that_takes_no_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    what = Search.of(str(TINY), SPACE, only=["LSTM"], out=tmp_path / "file/runs")
    with pytest.raises(InputError, match="expected to be able to write .*/file/runs/tiny/search"):
        begun(what)
    with pytest.raises(InputError, match="Check its permissions, or choose another folder"):
        search(what, 1)


def test_a_hopeless_trial_is_left_and_folders_are_read_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = searched(tmp_path)
    study = what.trials().study
    for _ in range(4):
        trial = asked(study)
        trial.report(1.0, 10)
        study.tell(trial, 1.0)
    now, reads = [100.0], []

    def last(*given: Any, **more: Any) -> tuple[int, float]:
        reads.append(now[0])
        return (10, 5.0) if now[0] > 101 else (-1, 0.0)

    monkeypatch.setattr(module, "_last", last)
    monkeypatch.setattr("attractor.experiments.search.time.monotonic", lambda: now[0])
    look = _Look(asked(study), what, lambda: False)
    assert [look(), look(), look()] == [False] * 3
    assert len(reads) == 1
    now[0] += 2
    assert look()
    assert look.hopeless


def test_a_trial_is_told_of_with_its_point_on_its_way_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complete, pruned or failed; trials that another call has left are not of this one."""
    old = Search.of(str(TINY), SPACE, only=["LSTM"], out=tmp_path)
    old.trials().ask(f"{old.call}/0")  # killed on its way
    what = Search.of(str(TINY), SPACE, only=["LSTM"], out=tmp_path)
    look, seen, names = begun(what), [], []
    ends = iter(["complete", "complete", "pruned", "failed"])  # the first has two seeds

    def trained(config: Any, *given: Any, stop: Any, name: str, **more: Any) -> None:
        [one] = look()
        assert config in one.runs
        seen.append(what.named(one.trial))
        names.append(name)
        how = next(ends)
        if how == "failed":
            raise RunError("fell")
        if how == "pruned":
            stop.hopeless = True
            raise Stopped

    monkeypatch.setattr(module, "train", trained)
    monkeypatch.setattr(module, "_last", lambda *given, **more: (1, 2.5))
    told: list[Any] = []
    assert look() == []
    search(
        what, 3, places=Places(jobs=1), on_trial=lambda count, ended: told.append((count, ended))
    )
    assert look() == []
    assert [count for count, _ in told] == [1, 2, 3]
    assert [ended.how for _, ended in told] == ["done", "pruned", "failed"]
    trials = [ended.config for _, ended in told]
    assert [one.value for one in trials] == [2.5, None, None]
    assert [what.named(one) for one in trials] == list(dict.fromkeys(seen))
    assert seen[0].startswith("trial 1 (optimiser.lr=0.0")
    assert names[:2] == [f"{seen[0]}, seed 0", f"{seen[0]}, seed 1"]


@pytest.mark.parametrize(("goal", "order"), [("min", [1.0, 2.0, 3.0]), ("max", [3.0, 2.0, 1.0])])
def test_trials_are_told_the_best_first(
    goal: Any, order: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([2.0, 1.0, 3.0])
    monkeypatch.setattr(module, "train", lambda *given, **more: None)
    monkeypatch.setattr(module, "_last", lambda *given, **more: (1, next(values)))
    what = Search.of(str(TINY), SPACE, changes=["seeds=[0]"], only=["LSTM"], out=tmp_path)
    found = search(what._replace(goal=goal), 3, places=Places(jobs=1))
    assert [one.value for one in found.trials] == order


def test_a_search_of_runs_that_end_before_they_are_measured_is_refused(tmp_path: Path) -> None:
    def of(*changes: str) -> Search:
        return Search.of(str(TINY), SPACE, changes=changes, only=["LSTM"], out=tmp_path)

    short = ("train.steps=7", "train.eval_every=8")
    with pytest.raises(InputError, match=r"7 steps .* is 8. Try --set train.eval_every=7"):
        of(*short)
    assert of("train.steps=8", "train.eval_every=8")
    assert of(*short, "train.keep_best=true")  # which is measured at its end
