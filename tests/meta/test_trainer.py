"""Meta-training learns, stops and goes on with the same numbers, and survives divergence."""

import json
from functools import partial
from typing import Any

import pytest
import torch

from attractor.errors import InputError
from attractor.meta import MetaTrainer, Problem, Row, train
from attractor.meta.settings import normal
from attractor.models import MLP, Point
from attractor.optimisers import (
    DMSGD,
    MTL2L,
    Anytime,
    GlobalOptimiser,
    LSTMOptimiser,
    MetaSGD,
    Rule,
)
from attractor.tasks import Digits, Quadratic
from attractor.training import Diverged

DIGITS = Digits(order="flat")
pes = partial(MetaTrainer, estimator="pes")
QUADRATIC = Problem(lambda g: Point(10, generator=g), Quadratic(), 1)


def problem(hidden: int = 4) -> Problem:
    return Problem(lambda g: MLP([64, hidden, 10], generator=g), DIGITS, 16)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(rule: Rule) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in rule.parameters()])


def test_a_rule_gets_better_at_what_it_is_trained_for() -> None:
    rule = LSTMOptimiser(hidden_size=8, generator=generator())
    trainer = MetaTrainer(
        rule,
        [problem(16)],
        learners=32,
        together=4,
        steps=40,
        unroll=10,
        lr=1e-2,
        generator=generator(),
    )
    ends = []
    while not trainer.done:
        [row] = trainer.advance()
        ends += [row["last"]] if trainer.estimator.learners is None else []
    assert trainer.step == trainer.planned == 32
    assert len(ends) == 8
    assert min(ends[-3:]) < 1.5 < 2.0 < ends[0]


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_stopped_training_ends_with_the_same_weights(stop: int) -> None:
    def trainer(rule: Rule) -> MetaTrainer:
        return MetaTrainer(
            rule,
            [problem(), problem(5)],
            learners=4,
            together=2,
            steps=(5, 9),
            unroll=2,
            perturb=0.01,
            generator=generator(),
        )

    def rule() -> Rule:
        return MTL2L(context_size=64, hidden_size=4, generator=generator())

    whole = trainer(rule())
    for _ in range(stop):
        whole.advance()
    saved = whole.state_dict()
    ends = [whole.advance() for _ in iter(lambda: whole.done, True)]
    resumed = trainer(rule())
    resumed.generator.manual_seed(99)
    resumed.load_state_dict(saved)
    assert [resumed.advance() for _ in iter(lambda: resumed.done, True)] == ends
    assert torch.equal(weights(resumed.rule), weights(whole.rule))


def test_learners_that_diverge_are_given_up_and_the_rule_is_kept() -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=3e38)
    trainer = MetaTrainer(rule, [problem()], learners=9, steps=20, unroll=5, generator=generator())
    before = weights(rule)
    for _ in range(4):
        trainer.advance()
    with pytest.raises(Diverged, match="diverged in 5 rounds in a row.*last good weights are kept"):
        trainer.advance()
    assert torch.equal(weights(rule), before)


@pytest.mark.parametrize("learners", [1, 3])
def test_all_rounds_may_not_diverge_however_few(learners: int) -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=3e38)
    with pytest.raises(Diverged, match=rf"diverged in all rounds \({learners}\), the last at"):
        train(rule, [problem()], learners=learners, steps=20, unroll=5, generator=generator())


def test_rounds_that_diverge_late_count_too() -> None:
    """Each has unrolls that go well first, which change the rule."""
    rule = MetaSGD(size=10, rate=1e4)
    before = weights(rule)
    seen: list[Row] = []
    with pytest.raises(Diverged, match=r"in 5 rounds in a row, the last at step \d+ of round 5"):
        train(
            rule,
            [QUADRATIC],
            learners=12,
            steps=40,
            unroll=2,
            on_row=seen.append,
            generator=generator(),
        )
    assert len(seen) == 5  # one of each round
    assert torch.equal(weights(rule), before)


def failing(lost: tuple[int, ...]) -> MetaTrainer:
    """Training in which chosen rounds diverge."""
    rule = MetaSGD(size=10, rate=1e-3)
    made = MetaTrainer(rule, [QUADRATIC], learners=6, steps=4, unroll=2, generator=generator())
    made.estimator._finite = lambda done: made.estimator.round + 1 not in lost
    return made


@pytest.mark.parametrize("lost", [(1, 2, 3, 4), (2, 4), (5,)])
def test_some_rounds_may_diverge(lost: tuple[int, ...]) -> None:
    trainer = failing(lost)
    while not trainer.done:
        trainer.advance()
    assert not torch.equal(weights(trainer.rule), torch.full((10,), 1e-3))


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(
    ("lost", "count"),
    [
        ((5, 6), "in 2 rounds in a row, the last at step 2 of round 6"),
        ((2, 4, 6), "in the last of 6 rounds, at step 2 of round 6"),
        ((6,), "in the last of 6 rounds, at step 2 of round 6"),
    ],
)
def test_the_last_round_may_not_and_the_last_good_weights_are_back(
    lost: tuple[int, ...], count: str, resumed: bool
) -> None:
    trainer, good = failing(lost), torch.empty(0)
    while trainer.estimator.round < 5:
        if trainer.estimator.round + 1 not in lost:
            good = weights(trainer.rule)  # with which the last unroll so far went well
        trainer.advance()
    if resumed:
        saved = trainer.state_dict()
        trainer = failing(lost)
        trainer.load_state_dict(saved)
    with pytest.raises(Diverged, match=f"{count}; .*weights are kept. Try"):
        trainer.advance()
    assert torch.equal(weights(trainer.rule), good)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_rule_of_another_type_than_its_learners(order: Any, dtype: torch.dtype) -> None:
    rule = LSTMOptimiser(hidden_size=3, generator=generator()).to(dtype)
    options: dict[str, Any] = {"learners": 1, "steps": 4, "unroll": 2, "order": order}
    history = train(rule, [problem()], perturb=0.01, generator=generator(), **options)
    assert weights(rule).dtype == dtype
    assert weights(rule).any()
    pes(rule, [problem()], pairs=1, steps=4, unroll=2, generator=generator()).advance()
    if dtype == torch.float64:
        same = LSTMOptimiser(hidden_size=3, generator=generator())
        plain = train(same, [problem()], perturb=0.0, generator=generator(), **options)
        assert history[0]["loss"] == pytest.approx(plain[0]["loss"], rel=0.1)


def frozen(g: torch.Generator) -> torch.nn.Module:
    made = MLP([64, 4, 10], generator=g)
    made.layers[0].requires_grad_(False)
    return made


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "rule", [DMSGD, lambda: MetaSGD(size=310), lambda: GlobalOptimiser(size=310)]
)
def test_frozen_parameters_are_left_alone(order: Any, rule: Any) -> None:
    """As by the optimiser in use, also under noise."""
    made = MetaTrainer(
        rule(),
        [Problem(frozen, DIGITS, 8)],
        learners=1,
        steps=6,
        unroll=2,
        order=order,
        perturb=0.1,
        generator=generator(),
    )
    made.advance()
    assert made.estimator.learners is not None
    assert made.estimator.position is not None
    start, now, first = made.estimator.learners.start, made.estimator.position.params, 64 * 4 + 4
    assert torch.equal(now[:, :first], start[:, :first])
    assert not torch.equal(now[:, first:], start[:, first:])
    _, gradient = made.estimator.learners.gradients(now, made.estimator.learners.draw())
    assert not gradient[:, :first].any()
    assert gradient[:, first:].any()


def test_a_network_with_nothing_to_train_is_refused() -> None:
    made = Problem(lambda g: MLP([64, 2, 10], generator=g).requires_grad_(False), DIGITS, 8)
    with pytest.raises(InputError, match="a parameter to train, but all of theirs are frozen"):
        train(DMSGD(), [made], learners=1, steps=2, unroll=1, generator=generator())


def test_there_are_as_many_learners_as_asked_for() -> None:
    trainer = MetaTrainer(
        DMSGD(hidden_size=2), [problem()], learners=5, together=4, steps=2, unroll=1,
        generator=generator(),
    )  # fmt: skip
    counts = []
    while not trainer.done:
        trainer.advance()
        counts += (
            [] if trainer.estimator.learners is None else [len(trainer.estimator.learners.start)]
        )
    assert counts == [4, 1]


def test_noise_is_where_the_learners_are() -> None:
    trainer = MetaTrainer(
        MetaSGD(size=10), [QUADRATIC], learners=1, steps=2, unroll=1, perturb=0.1,
        generator=generator(),
    )  # fmt: skip
    trainer.advance()
    assert trainer.estimator.position is not None
    params = trainer.estimator.position.params.to("meta")
    trainer.estimator.position = trainer.estimator.position._replace(params=params)
    assert trainer.estimator._noise(2).device == params.device
    drawn = normal((2,), like=torch.empty(1, dtype=torch.float64), generator=generator())
    assert torch.equal(drawn, torch.randn(2, generator=generator(), dtype=torch.float64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": (5,)}, r"steps to be a whole number .* two such numbers, but got \(5,\)"),
        (
            {"steps": (0, 5)},
            r"steps to be .* but got \(0, 5\). Try steps=100, or steps=\(50, 200\)",
        ),
        ({"steps": -4}, "steps to be .* but got -4"),
        ({"lr": -1.0}, "lr to be a finite number of at least 0, but got -1.0"),
        ({"lr": float("nan")}, "lr to be a finite number"),
        ({"lr": "x"}, "lr to be a finite number of at least 0, but got 'x'. Leave it out"),
        ({"schedule": "foo"}, "schedule to be 'cosine' or 'linear' or None, but got 'foo'. Try"),
        ({"generator": None}, r"a generator, but got None. Try generator=torch.Generator\(\)"),
        ({"unroll": 0}, "unroll to be at least 1"),
        ({"unroll": 30, "steps": 20}, "unroll to be at least 1 and at most 20, but got 30"),
        (
            {"objective": "sme"},
            "objective to be 'next' or 'same', but got 'sme'. Try obj",
        ),
    ],
)
def test_bad_settings_of_both_trainers_are_refused(options: dict[str, Any], message: str) -> None:
    for trainer in (MetaTrainer, pes):
        with pytest.raises(InputError, match=message):
            trainer(DMSGD(), [problem()], **{"generator": generator(), **options})


def test_options_of_train_are_checked() -> None:
    with pytest.raises(InputError, match="a generator, but got None"):
        train(DMSGD(), [problem()])
    with pytest.raises(InputError, match="known option of MetaTrainer .* Did you mean 'learners'"):
        train(DMSGD(), [problem()], learner=3, generator=generator())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order to be 1 or 2, but got 3. Try order=1"),
        ({"clamp": -1.0}, "clamp to be a finite number"),
        ({"perturb": -1.0}, "perturb to be a finite number"),
        ({"absurd": -1}, "absurd to be a number above 0, but got -1. Leave it out"),
        ({"absurd": float("nan")}, "absurd to be a number above 0, but got nan"),
        ({"absurd": "x"}, "absurd to be a number above 0, but got 'x'"),
        ({"together": 8, "learners": 4}, "together to be at least 1 and at most 4, but got 8"),
        ({"learners": 0}, "learners to be at least 1"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MetaTrainer(LSTMOptimiser(), [problem()], generator=generator(), **options)


def test_networks_with_running_statistics_are_refused() -> None:
    made = Problem(lambda g: torch.nn.Sequential(torch.nn.BatchNorm1d(64)), DIGITS, 4)
    with pytest.raises(InputError, match="BatchNorm1d keeps some"):
        train(LSTMOptimiser(), [made], generator=generator())


def test_frozen_weights_of_the_rule_are_left_alone() -> None:
    rule = DMSGD(hidden_size=3, generator=generator())
    rule.static.requires_grad_(False)
    before = rule.static.clone()
    train(rule, [problem(2)], learners=1, steps=4, unroll=2, generator=generator())
    assert torch.equal(rule.static, before)


@pytest.mark.parametrize("trainer", [MetaTrainer, pes])
def test_a_rule_with_nothing_to_train_is_refused(trainer: Any) -> None:
    with pytest.raises(InputError, match="DMSGD to have weights to train, but all of its are froz"):
        trainer(DMSGD().requires_grad_(False), [problem()], generator=generator())


def test_the_noise_falls_as_one_over_the_number_of_updates() -> None:
    trainer = MetaTrainer(
        MetaSGD(size=10), [QUADRATIC], learners=1, steps=9, unroll=3, perturb=0.5,
        generator=generator(),
    )  # fmt: skip
    trainer.advance()
    same = generator()
    same.set_state(trainer.generator.get_state())
    drawn = torch.randn(3, 1, 10, generator=same)
    expected = drawn * torch.tensor([0.5 / 4, 0.5 / 5, 0.5 / 6])[:, None, None]
    torch.testing.assert_close(trainer.estimator._noise(3), expected)


def plain(nested: Any) -> bool:
    """Whether a state is made of tensors, plain values, dictionaries with words, and lists."""
    match nested:
        case dict():
            return all(isinstance(key, str) and plain(value) for key, value in nested.items())
        case list():
            return all(map(plain, nested))
        case _:
            return nested is None or isinstance(nested, (torch.Tensor, bool, int, float, str))


@pytest.mark.parametrize("method", [MetaTrainer, pes])
def test_both_trainers_are_processes(method: Any) -> None:
    """Steps that are counted, rows that JSON can hold, and a state of plain parts."""
    given = {"learners": 2} if method is MetaTrainer else {"updates": 6}

    def made(seed: int) -> Any:
        rule = MTL2L(context_size=64, hidden_size=2)
        return method(rule, [problem()], steps=5, unroll=2, generator=generator(seed), **given)

    trainer, counted = made(0), []
    while not trainer.done:
        rows = trainer.advance()
        json.dumps(rows, allow_nan=False)
        assert [row["split"] for row in rows] == ["meta"]
        counted.append(trainer.step)
        state = trainer.state_dict()
        assert plain(state)
        fresh = made(9)
        fresh.load_state_dict(state)
        assert (fresh.step, fresh.done) == (trainer.step, trainer.done)
    assert counted == [1, 2, 3, 4, 5, 6]
    assert trainer.planned == 6


def test_states_are_saved_by_name() -> None:
    trainer = pes(Anytime(), [problem()], pairs=1, generator=generator())
    (pair,) = trainer.state_dict()["estimator"]["pairs"]
    assert list(pair["learners"]["state"]) == ["m", "n", "v", "apart", "t"]
