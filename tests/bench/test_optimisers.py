"""The benchmark of optimisers: who runs on what, how rates are chosen, and what is kept."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from attractor.bench.optimisers import CONTENDERS, HORIZONS, TASKS, bench, pace, rules, run, trial
from attractor.bench.optimisers.contenders import contender, make, package, rung, without_weights
from attractor.bench.optimisers.run import all_cases
from attractor.bench.optimisers.tasks import problem
from attractor.bench.optimisers.trial import (
    TUNING_SEED,
    Case,
    Trial,
    kept_in,
    measure,
    outcome,
    tuned,
)
from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.optimisers import M2SGD, OPTIMISERS, save_rule, shipped
from attractor.report import build
from attractor.results.standing import Outcome, Standing, load, profile, save
from attractor.results.standing_tables import markdown
from attractor.training import Plan, Stopped
from experiments.helpers import called

CASE = Case("digits-mlp", 30, "adam", (0, 1), True)
SMALL = ["digits-mlp", "digits-zero", "logistic", "quadratic", "digits-lstm", "digits-nru"]


def never() -> bool:
    return False


def test_all_that_was_asked_for_is_there() -> None:
    hand = {"adam", "adamw", "nadamw", "sgd"}
    assert hand | {f"{name}-cosine" for name in hand} <= {*CONTENDERS}
    assert {"schedulefree", "prodigy"} <= {*CONTENDERS}
    assert {*rules()} == {name.partition("/")[0] for name in shipped()}
    wanted = {*SMALL, "mnist-convnet", "ptb-transformer", "cifar10-resnet20"}
    assert wanted == {*TASKS}
    whole = all_cases((), (), (), (), quick=False)
    assert len(whole) == len(TASKS) * len(HORIZONS) * (len(CONTENDERS) + len(rules()))
    assert {one.seeds for one in whole} == {(0, 1, 2, 3, 4)}


def test_optimisers_are_what_their_names_say() -> None:
    weights = [nn.Parameter(torch.ones(2))]
    made: Any = make("nadamw-cosine", 0.03, torch.zeros(1, 1))(weights)
    group = made.param_groups[0]
    assert isinstance(made, torch.optim.NAdam)
    assert (group["lr"], group["weight_decay"], group["decoupled_weight_decay"]) == (
        0.03,
        0.01,
        True,
    )
    momentum: Any = make("sgd", 0.3, torch.zeros(1, 1))(weights)
    assert momentum.param_groups[0]["momentum"] == 0.9
    assert make("adam", 0.03, torch.zeros(1, 1))(weights).param_groups[0]["lr"] == 0.03
    assert (contender("sgd-cosine").schedule, contender("sgd").schedule) == ("cosine", None)
    assert [rung(i) for i in contender("adam").rungs] == [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
    assert [rung(i) for i in contender("sgd").first(quick=True)] == [0.01, 0.03, 0.1]
    assert contender("prodigy-cosine").schedule == "cosine"


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(
        InputError, match=r'nonesuch.* not installed. Try pip install "attractor\[be'
    ):
        package("nonesuch", "Optimiser")
    with pytest.raises(InputError, match="weights of mtl2l for inputs of 3 numbers"):
        make("mtl2l", None, torch.zeros(1, 3))
    with pytest.raises(InputError, match="known optimiser of the benchmark"):
        contender("adan")


@pytest.mark.parametrize("best", [-9, -3, 0, 2, 5])
def test_the_search_does_not_end_at_its_edge(best: int) -> None:
    tried = list[int]()

    def loss(index: int) -> float:
        tried.append(index)
        return math.inf if index > 6 else abs(index - best)

    assert tuned(loss, range(-2, 1)) == best
    assert {best - 1, best + 1} <= {*tried}
    assert len(tried) == len({*tried})


def test_the_search_ends_where_nothing_helps() -> None:
    assert tuned(lambda index: -index, range(3)) == 10
    assert tuned(lambda index: index, range(3)) == -8


def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Trainings whose loss is least at 0.003, by another amount on each seed."""
    done = list[tuple[Any, ...]]()

    def train(case: Case, rate: float | None, seed: int, split: Any) -> Trial:
        done.append((rate, seed, split))
        assert rate is not None
        return Trial(rate, seed, split, 1 + seed + abs(math.log(rate / 0.003)), 0.5 - 0.1 * seed)

    monkeypatch.setattr(trial, "train", train)
    return done


def test_rates_are_chosen_on_validation_data_of_another_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = fake(monkeypatch)
    measure(CASE, folder=tmp_path, stop=never)
    tuning, counted = done[:3], done[3:]
    assert tuning == [(rate, TUNING_SEED, "valid") for rate in (1e-3, 3e-3, 1e-2)]
    assert counted == [(3e-3, 0, "test"), (3e-3, 1, "test")]
    assert TUNING_SEED not in CASE.seeds
    found = outcome(CASE, tmp_path)
    assert found is not None
    assert (found.rate, found.tried, found.losses) == (3e-3, (1e-3, 3e-3, 1e-2), (1.0, 2.0))
    assert found.seconds == pytest.approx(0.4)


def test_what_is_done_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = fake(monkeypatch)
    with pytest.raises(Stopped):
        measure(CASE, folder=tmp_path, stop=lambda: len(done) == 4)
    assert outcome(CASE, tmp_path) is None
    measure(CASE, folder=tmp_path, stop=never)
    assert len(done) == 5
    more = CASE._replace(seeds=(0, 1, 7))
    measure(more, folder=tmp_path, stop=never)
    assert done[5:] == [(3e-3, 7, "test")]
    (file,) = (tmp_path / "trials").iterdir()
    changed = json.loads(file.read_text())
    changed["key"]["weights"] = ["of another rule"]
    file.write_text(json.dumps(changed))
    assert kept_in(tmp_path, CASE).found == []
    file.write_text("{")
    assert kept_in(tmp_path, CASE).found == []


def test_a_rule_of_the_same_weights_and_other_options_is_measured_anew(tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    case = Case("quadratic", 4, str(file), (0,), True)
    rule = M2SGD(hidden_size=3, threshold=0.0, generator=torch.Generator().manual_seed(0))
    save_rule(rule, file)
    kept = kept_in(tmp_path, case)
    kept.add(trial.train(case, None, 0, "test"))
    assert len(kept_in(tmp_path, case).found) == 1
    other = M2SGD(hidden_size=3, threshold=0.5)
    other.load_state_dict(rule.state_dict())
    save_rule(other, file)
    assert kept_in(tmp_path, case).found == []


def test_a_training_that_diverges_is_infinitely_bad(tmp_path: Path) -> None:
    case = Case("quadratic", 40, "sgd", (0,), True)
    found = trial.train(case, 1e30, 0, "test")
    assert found.loss == math.inf
    kept = kept_in(tmp_path, case)
    kept.add(found)
    assert kept_in(tmp_path, case).found == [found]


def test_what_takes_too_long_is_left_out_of_the_quick_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LIMIT", 0.0)
    case = Case("quadratic", 40, "sgd", (0,), True)
    with pytest.raises(InputError, match="sgd, quadratic, 40 updates: left out of the quick"):
        trial.train(case, 0.1, 0, "test")
    trial.train(case._replace(quick=False), 0.1, 0, "test")


@pytest.mark.parametrize("task", SMALL)
def test_every_task_trains(task: str) -> None:
    start = trial.train(Case(task, 1, "sgd", (0,), True), 1e-9, 0, "test")
    ended = trial.train(Case(task, 60, "anytime", (0,), True), None, 0, "test")
    assert math.isfinite(ended.loss)
    assert ended.loss < start.loss


def test_the_last_layer_starts_at_zero() -> None:
    made = problem("digits-zero", True).model(torch.Generator().manual_seed(0))
    *first, weight, bias = made.parameters()
    assert not weight.any()
    assert not bias.any()
    assert first[0].all()


def test_without_data_a_task_is_skipped_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTRACTOR_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(trial, "problem", lambda task, quick: TASKS[task].make(quick))
    asked: Any = {"tasks": ["logistic", "mnist-convnet"], "only": ["schedulefree", "anytime"]}
    found = bench(tmp_path, **asked, horizons=[4], seeds=[5, 3], quick=True, jobs=1)
    assert found.places == [("logistic", 4)]
    assert found.contenders == ["schedulefree", "anytime"]
    (said,) = found.left_out
    assert "mnist" in said.lower()
    assert found.seeds == (5, 3)


def test_rules_without_weights_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    learned = {name for name, entry in OPTIMISERS.items() if entry.learned}
    for measured in ((), ("celo", "velo")):
        (said,) = without_weights(measured)
        named = {*said.partition(":")[0].split(", ")}
        assert named | {*rules(), *measured} == learned
        assert not named & {*rules(), *measured}
    monkeypatch.setattr(run, "rules", list)
    monkeypatch.setattr(run, "CONTENDERS", {"prodigy": CONTENDERS["prodigy"]})
    asked: Any = {"tasks": ["quadratic"], "horizons": [2], "seeds": [3], "quick": True, "jobs": 1}
    assert bench(tmp_path, **asked).left_out == tuple(without_weights())
    assert bench(tmp_path, **asked, only=["prodigy"]).left_out == ()


def test_command(tmp_path: Path) -> None:
    before = Outcome("quadratic", 3, "sgd", 0.1, (0.1,), (1e-9,), 1.0)
    save(Standing({}, True, {}, (4,), (before,)), tmp_path / "before.json")
    asked = ["bench", "optimisers", "--quick", "--task", "quadratic", "--only", "sgd"]
    asked += ["--horizon", "3", "--seeds", "4", "-j", "1", "-o", str(tmp_path)]
    done = called(*asked, "--baseline", tmp_path / "before.json")
    assert done.returncode == 1
    assert re.search("worse than .*before.json: sgd, quadratic, 3 updates", done.stderr)
    assert "quadratic of condition number" in done.stdout
    assert "`sgd`" in (tmp_path / "optimisers.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "Performance profiles" in page
    assert build([], benchmarks=[load(tmp_path / "optimisers.json")]) == page
    assert '<a href="#benchmark-1">' in page


def test_what_is_stored_is_shown_beside_what_is_measured(tmp_path: Path) -> None:
    stored = Outcome("quadratic", 3, "mine", None, (), (1e-9,), 1.0)
    old = Outcome("quadratic", 3, "sgd", 0.1, (0.1,), (1e-9,), 1.0)
    save(Standing({}, True, {}, (4,), (stored, old)), tmp_path / "stored.json")
    asked = ["bench", "optimisers", "--quick", "--task", "quadratic", "--only", "sgd"]
    asked += ["--horizon", "3", "-j", "1", "-o", str(tmp_path)]
    beside = ["--beside", str(tmp_path / "stored.json")]
    assert called(*asked, "--seeds", "4", *beside).returncode == 0
    found = load(tmp_path / "optimisers.json")
    assert found.contenders == ["mine", "sgd"]
    assert found.outcomes[0] == stored
    assert found.outcomes[1].losses > (1e-9,)
    done = called(*asked, "--seeds", "5", *beside)
    assert "expected a quick benchmark of the seeds 5 to join this one with, but" in done.stderr


def test_in_equal_time_a_slow_optimiser_has_fewer_updates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    took = {"adam-cosine": 0.002, "sgd": 0.001, "pacer": 0.003}
    asked: list[Any] = []

    def paces(task: str, names: Any, *, quick: bool, folder: Path) -> dict[str, float]:
        asked.append((task, names, quick, folder))
        return took

    monkeypatch.setattr(run, "paces", paces)
    only = ["sgd", "pacer", "prodigy"]
    cases = all_cases(["quadratic"], only, [10, 30], [1], quick=True)
    found = run.in_equal_time(cases, tmp_path)
    assert asked == [("quadratic", ["adam-cosine", *only], True, tmp_path)]
    assert [(c.contender, c.horizon, c.length) for c in found] == [
        ("sgd", 10, 20), ("pacer", 10, 7), ("prodigy", 10, 10),
        ("sgd", 30, 60), ("pacer", 30, 20), ("prodigy", 30, 30),
    ]  # fmt: skip
    place = trial.kept_in(tmp_path, found[1]).path
    assert place == tmp_path / "trials" / "quadratic-7-pacer.json"
    seen: list[int] = []

    class Noted(Plan):
        def __post_init__(self) -> None:
            seen.extend([self.steps, self.log_every])

    monkeypatch.setattr(trial, "Plan", Noted)
    trial.train(found[1], None, 0, "test")
    assert seen == [7, 7]
    whole = bench(tmp_path, tasks=["quadratic"], only=["pacer"], horizons=[10], seeds=[1],
                  quick=True, by_time=True, jobs=1)  # fmt: skip
    assert whole.by_time
    assert (whole.outcomes[0].horizon, whole.outcomes[0].updates) == (10, 7)
    assert "task and the time of so many updates of adam-cosine" in markdown(whole)


def test_times_are_taken_in_turns_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fastest turn of each counts, but for the first; one that cannot be made is left out."""
    now, order = 0.0, []

    class Training:
        def __init__(self, name: str, took: list[float]) -> None:
            self.name, self.took = name, [one for one in took for _ in range(pace.TURN)]

        def advance(self) -> None:
            nonlocal now
            now += self.took.pop(0)
            order.append(self.name)

    def training(task: str, name: str, quick: bool) -> Training:
        if name == "absent":
            raise InputError("no weights")
        return Training(name, {"sgd": [0.1, 5.0, 3.0, 4.0], "adam": [1.0, 8.0, 9.0, 7.0]}[name])

    monkeypatch.setattr("time.process_time", lambda: now)
    monkeypatch.setattr(pace, "ROUNDS", 4)
    monkeypatch.setattr(pace, "_training", training)
    found = pace.paces("hill", ["sgd", "absent", "adam"], quick=True, folder=tmp_path)
    assert found == pytest.approx({"sgd": 3.0, "adam": 7.0})
    assert order[:: pace.TURN] == ["sgd", "adam"] * 4
    assert pace.paces("hill", ["sgd"], quick=True, folder=tmp_path) == found
    assert len(order) == 8 * pace.TURN


def test_a_pace_is_that_of_the_training_of_the_benchmark(tmp_path: Path) -> None:
    found = pace.paces("quadratic", ["adam-cosine", "pacer"], quick=True, folder=tmp_path)
    assert found.keys() == {"adam-cosine", "pacer"}
    assert all(0 < one < 0.1 for one in found.values())


def test_options_come_after_what_is_measured() -> None:
    found = CliRunner().invoke(app, ["bench", "--quick", "optimisers"])
    assert "Try attractor bench optimisers --quick" in str(found.exception)


def below(found: Standing, one: str, *rivals: str, within: float = 1.0) -> int:
    """Places at which one has a lower mean loss than each of them, or is within a factor of it."""
    by = found.by()
    means = [[by[name, at].estimate.mean for name in (one, *rivals)] for at in found.places]
    return sum(own < within * min(others) for own, *others in means)


def close(found: Standing, one: str, factor: float) -> int:
    """Places at which one is within a factor of the lowest."""
    (share,) = profile(found, [factor])[one]
    return round(share * len(found.places))


def test_the_docs_show_what_was_measured() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "bench-optimisers.md").read_text(encoding="utf-8")
    names = ("quick", "400", "1000", "long", "time", "large")
    found = [load(docs / "assets" / f"bench-optimisers-{name}.json") for name in names]
    for one in found:
        assert markdown(one) in page
    quick, longer, thousand, last, timed, large = found
    rivals = ("adam-cosine", "schedulefree", "prodigy")
    assert [below(large, "pacer", one) for one in rivals] == [2, 2, 2]
    assert below(large, "pacer", "adam-cosine", within=1.1) == len(large.places) == 3
    assert timed.by_time
    by_time = [below(timed, "pacer", n) for n in ("adam-cosine", "schedulefree", "prodigy")]
    assert by_time == [6, 6, 5]
    updates = {one.task: one.updates for one in timed.outcomes if one.contender == "pacer"}
    assert sorted(updates.values()) == [388, 418, 431, 440, 444, 445, 463]  # type: ignore[type-var]
    found = [quick, longer, thousand, last]
    assert {*without_weights(quick.contenders)} <= {*quick.left_out}
    by = quick.by()
    took = [by["pacer", at].seconds / by["adam", at].seconds for at in quick.places]
    assert (round(min(took), 2), round(max(took), 2)) == (0.81, 1.54)
    assert "0.81 to 1.54 times Adam's time" in page
    assert len({task for task, _ in quick.places}) >= 8
    # what the pages say in words
    cosine = [below(one, "pacer", "adam-cosine") for one in found]
    assert cosine == [8, 6, 5, 10]
    within = [below(one, "pacer", "adam-cosine", within=1.05) for one in found]
    assert within == [11, 6, 6, 10]
    assert below(thousand, "pacer", "adam-cosine", within=1.241) == 7
    assert [below(one, "pacer", "schedulefree") for one in found] == [9, 6, 7, 12]
    assert [below(one, "pacer", "prodigy-cosine") for one in (longer, thousand)] == [6, 7]
    assert [below(one, "pacer", "prodigy") for one in found] == [9, 5, 6, 11]
    lowest = [close(one, "pacer", 1.0) for one in (quick, longer, thousand, last, timed)]
    assert lowest == [3, 4, 2, 7, 5]
    assert [below(one, "anytime", "adam-cosine") for one in found] == [6, 3, 4, 6]
    tuned = [below(thousand, "pacer", name) for name in ("sgd-cosine", "nadamw-cosine")]
    assert tuned == [5, 4]
    assert below(longer, "pacer", "celo") == 6
    assert below(quick, "pacer", "celo") == 8
