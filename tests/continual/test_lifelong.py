"""Levels one after the other, networks that grow, and what is measured of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from attractor import InputError
from attractor.continual import AGEM, ER, EWC, GEM, STRATEGIES, Naive, Strategy
from attractor.continual.lifelong import Curriculum, LifelongResult, Rules, levels
from attractor.continual.lifelong.levels import trimmed
from attractor.continual.lifelong.triggers import Conflict, Plateau, Rank
from attractor.experiments.table import load as experiment
from attractor.experiments.train import build, runs_of
from attractor.models import SequenceTagger
from attractor.runs.drive import Context
from attractor.state import pack, unpack
from attractor.tasks import IGNORE, Batch

QUICK = Rules(steps=12, window=4, threshold=0.55, after=15, grow_to=10, held_out=20)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def learner(strategy: Strategy | None = None, rules: Rules = QUICK, **options: Any) -> Curriculum:
    model = SequenceTagger("lstm", 8, 6, 7, generator=seeded())
    adam = {"name": "adam", "lr": 0.01}
    three = levels("copy", first=2, step=2, count=4)
    return Curriculum(model, three, strategy, rules=rules, optimiser=adam, **options)


def finished(one: Curriculum) -> list[dict[str, Any]]:
    rows = []
    while not one.done:
        rows += one.advance()
    return rows


def weights(one: Curriculum) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in one.model.parameters()])


def test_the_levels_are_those_of_the_thesis() -> None:
    copy = levels("copy")
    assert [level.name for level in copy] == [f"copy {n}" for n in range(5, 63, 3)]
    batch = copy[0].samples(torch.arange(10), seeded())
    assert batch.x.shape == (10, 11, 8)  # seven bits and a delimiter
    assert torch.equal(batch.y[:, 6:].float(), batch.x[:, :5, :7])
    assert (batch.y[:, :6] == IGNORE).all()
    assert (batch.x[:, 5, 7] == 1).all()
    recall = levels("recall")
    assert [level.name for level in recall][:2] == ["recall 5", "recall 8"]
    assert int((recall[0].samples(torch.arange(2), seeded()).y != IGNORE).sum()) == 2 * 3 * 8


def test_batches_are_never_the_same() -> None:
    level = levels("copy", count=1)[0]
    g = seeded()
    one, other = (level.samples(torch.arange(5), g) for _ in range(2))
    assert not torch.equal(one.x, other.x)


@pytest.mark.parametrize(
    ("threshold", "grow_to", "completed", "steps", "grew"),
    [(0.0, None, 4, 48, []), (1.0, None, 0, 12, []), (1.0, 10, 0, 27, [0])],
)
def test_levels_are_passed_grown_at_or_the_end(
    threshold: float, grow_to: int | None, completed: int, steps: int, grew: list[int]
) -> None:
    rules = Rules(steps=12, window=4, threshold=threshold, after=15, grow_to=grow_to, held_out=20)
    one = learner(rules=rules)
    judged = [row["level"] for row in finished(one) if row["split"] == "test"]
    result = one.result()
    assert (result.completed, one.step, result.expansions) == (completed, steps, grew)
    reached = max(1, completed)
    assert judged == [level + 1 for level in grew] + list(range(1, reached + 1))
    assert result.matrix[:reached].isfinite().all()
    assert result.matrix[reached:].isnan().all()


def test_it_grows_twice_if_it_may_and_says_the_same_at_once() -> None:
    rules = Rules(steps=6, window=2, threshold=1.0, after=6, grow_to=9, growths=2, held_out=20)
    one = learner(GEM(40, memory="ring"), rules)
    x = torch.randn(3, 9, 8)
    sizes = []
    for growth in range(2):
        while len(one.growths) == growth:
            before = one.model
            one.advance()
        sizes.append(one.model.get_submodule("recurrent").hidden_size)
        assert torch.allclose(one.model(x), before(x), atol=1.0)  # one update apart
        state: Any = next(iter(one.optimiser.state.values()))
        assert float(state["step"]) == 6 * (growth + 1)
    assert sizes == [9, 18]
    finished(one)
    assert one.result().expansions == [0, 0]


def test_a_rate_after_growth_is_heeded() -> None:
    rules = Rules(steps=6, window=2, threshold=1.0, after=6, grow_to=9, rate_after=0.1, held_out=20)
    one = learner(rules=rules)
    finished(one)
    assert one.optimiser.param_groups[0]["lr"] == pytest.approx(0.001)


def test_gem_remembers_the_last_batch_of_each_level() -> None:
    strategy = GEM(40, memory="ring")
    one = learner(strategy, Rules(steps=5, window=2, threshold=0.0, held_out=20))
    last = []
    while one.level < 2:
        before = one._batches.get_state()
        level = one.levels[one.level]
        one.advance()
        if one.update == 0:
            g = torch.Generator()
            g.set_state(before)
            last.append(level.samples(torch.arange(10), g))
    kept = strategy.episodes.all_of([0, 1])
    assert torch.equal(kept.x[:10, :5], last[0].x)
    assert torch.equal(kept.y[:10, :5], last[0].y)
    assert (kept.y[:10, 5:] == IGNORE).all()  # filled up, and not asked
    assert torch.equal(kept.x[10:], last[1].x)


@pytest.mark.parametrize("strategy", [None, GEM(40, memory="ring"), AGEM(10), ER("ring", 40)])
@pytest.mark.parametrize("after", [5, 14, 20, 30])
def test_a_learner_goes_on_bit_by_bit_in_the_middle_of_a_level(
    strategy: Strategy | None, after: int
) -> None:
    rules = Rules(steps=12, window=4, threshold=0.53, after=15, grow_to=10, held_out=20)
    one = learner(strategy or Naive(), rules, seed=3, log_every=1)
    for _ in range(after):
        if not one.done:
            one.advance()
    tensors, rest = pack(one.state_dict())
    stored = save({name: t.contiguous() for name, t in tensors.items()})
    other = learner(strategy and type(strategy)(**strategy.settings()), rules, seed=3, log_every=1)
    other.load_state_dict(unpack(load(stored), json.loads(json.dumps(rest))))
    assert torch.equal(weights(one), weights(other))
    rows, again = finished(one), finished(other)
    assert rows == again
    assert torch.equal(one.matrix.nan_to_num(), other.matrix.nan_to_num())


def test_a_state_of_other_rules_is_refused() -> None:
    with pytest.raises(InputError, match="a learner with the rules"):
        learner().load_state_dict(learner(rules=Rules(steps=200, held_out=20)).state_dict())
    with pytest.raises(InputError, match="window that fits into a level's 50 batches"):
        Rules(steps=50)


def test_a_strategy_that_keeps_numbers_of_weights_cannot_grow() -> None:
    rules = Rules(steps=4, window=2, threshold=1.0, after=4, grow_to=10, held_out=10)
    assert finished(learner(ER("ring", 40), rules))
    with pytest.raises(InputError, match=r"EWC.* gets 'wider': it keeps numbers for each of its w"):
        learner(EWC(1.0), rules)


OPTIONS: dict[str, dict[str, Any]] = {
    "ewc": {"samples": 5},
    "online_ewc": {"samples": 5},
    "mas": {"samples": 5},
    "gdumb": {"epochs": 1},
}


@pytest.mark.parametrize("grow_to", [None, 10])
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_strategy_learns_levels_of_bits_or_is_refused_before_they_begin(
    name: str, grow_to: int | None
) -> None:
    made: Any = STRATEGIES[name]
    bar = 0.0 if grow_to is None else 1.0
    rules = Rules(steps=3, window=2, threshold=bar, after=3, grow_to=grow_to, held_out=4)
    given = {"er", "joint", "gem", "agem", "der", "derpp", "freeze", "naive", "stable"}
    given |= set() if grow_to else {"ewc", "online_ewc", "si", "mas", "gdumb", "metasgd_cl"}
    if name not in given:
        with pytest.raises(InputError):
            learner(made(**OPTIONS.get(name, {})), rules)
        return
    one = learner(made(**OPTIONS.get(name, {})), rules)
    finished(one)
    assert one.result().completed == (4 if grow_to is None else 0)
    assert len(one.growths) == (grow_to is not None)


def test_measures_by_hand() -> None:
    R = torch.full((4, 4), torch.nan, dtype=torch.float64)
    R[0] = torch.tensor([0.9, 0.8, 0.6, 0.4])
    R[1] = torch.tensor([0.7, 0.8, 0.5, 0.3])
    R[2] = torch.tensor([0.5, 0.3, 0.6, 0.2])
    found = LifelongResult(R, [0.9, 0.8, 0.6], 2, [1], [1, 2, 3])
    assert found.per_task_previous == pytest.approx([0.7, 0.4])
    assert found.per_task_future == pytest.approx([0.6, 0.4, 0.2])
    expected = {"levels": 2, "current_accuracy": 2.3 / 3, "previous_accuracy": 0.55}
    expected |= {"future_accuracy": 0.4, "expansions": 1}
    assert found.metrics == pytest.approx(expected)


@pytest.mark.parametrize("name", ["copy", "copy-quick", "recall", "recall-quick"])
def test_the_configurations_can_be_built(name: str, tmp_path: Path) -> None:
    small = ["train.steps=4", "train.window=2", "train.after=4", "train.held_out=4"]
    loaded, config = experiment(f"lifelong-{name}", [*small, "stream.count=2"])
    runs = runs_of(loaded, config)
    labels = ["Small LSTM", "Small LSTM, GEM", "Small LSTM, GEM, Net2Net", "Large LSTM"]
    assert [run.label for run in runs][:5] == [*labels, "Large LSTM, GEM"]
    proposed = build(runs[2], Context(out=tmp_path))
    while not proposed.done:
        proposed.advance()
    outcome = proposed.outcome()
    assert outcome["grew_at"] == [1]
    assert np.shape(outcome["matrix"]) == (1, 2)
    assert json.dumps(outcome)


def test_steps_after_the_last_answer_are_left_out() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    y = torch.tensor([[1, IGNORE, IGNORE], [IGNORE, 1, IGNORE]])
    bits = torch.stack([y, torch.full_like(y, IGNORE)], -1)
    for asked in (y, bits):
        found = trimmed(Batch(x, asked))
        assert torch.equal(found.x, x[:, :2])
        assert torch.equal(found.y, asked[:, :2])
    once = Batch(x, torch.tensor([1, 0]))
    assert trimmed(once) is once


@pytest.mark.parametrize(
    "name",
    [
        "lifelong-copy-quick",
        "lifelong-recall-quick",
        "lifelong-triggers-quick",
        "lifelong-gem-quick",
        "lifelong-growth-quick",
        "lifelong-cells-quick",
    ],
)
def test_every_quick_experiment_begins(name: str) -> None:
    _, found = experiment(name)
    for config in runs_of(name, found)[:: len(found.seeds)]:
        process = build(config, Context()).process
        process.advance()
        assert process.step == 1


def test_a_learner_grows_by_the_signal_of_its_configuration() -> None:
    _, found = experiment("lifelong-triggers-quick", ["seeds=[0]"])
    learners = {run.label: build(run, Context()).process for run in runs_of("signals", found)}
    signals = {label: getattr(one, "trigger", "none at all") for label, one in learners.items()}
    assert signals.pop("Failure") is None
    kinds = {"Conflict": Conflict, "Plateau": Plateau, "Rank": Rank}
    assert {label: type(signal) for label, signal in signals.items()} == kinds
