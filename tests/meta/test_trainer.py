"""Meta-training learns, stops and goes on with the same numbers, and survives divergence."""

from typing import Any

import pytest
import torch

from attractor.errors import InputError, RunError
from attractor.meta import MetaTrainer, PESTrainer, Problem, Progress, train
from attractor.meta.settings import normal
from attractor.models import MLP, Point
from attractor.optimisers import DMSGD, MTL2L, GlobalOptimiser, LSTMOptimiser, MetaSGD, Rule
from attractor.tasks import Digits, Quadratic

DIGITS = Digits(order="flat")
QUADRATIC = Problem(lambda g: Point(10, generator=g), Quadratic(), 1)


def problem(hidden: int = 4) -> Problem:
    return Problem(lambda g: MLP([64, hidden, 10], generator=g), DIGITS, 16)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(rule: Rule) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in rule.parameters()])


def test_a_rule_gets_better_at_what_it_is_trained_for() -> None:
    rule = LSTMOptimiser(hidden_size=8, generator=generator())
    history = train(
        rule,
        [problem(16)],
        learners=32,
        together=4,
        steps=40,
        unroll=10,
        lr=1e-2,
        generator=generator(),
    )
    ends = [p.last for p in history if p.step == 40]
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


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_stopped_evolution_ends_with_the_same_weights(stop: int) -> None:
    def trainer(seed: int) -> PESTrainer:
        return PESTrainer(
            MTL2L(context_size=64, hidden_size=4, generator=generator(seed)),
            [problem(), problem(5)],
            updates=6,
            pairs=3,
            steps=(4, 9),
            unroll=2,
            generator=generator(seed),
        )

    whole = trainer(0)
    for _ in range(stop):
        whole.advance()
    saved = whole.state_dict()
    ends = [whole.advance() for _ in iter(lambda: whole.done, True)]
    resumed = trainer(99)
    resumed.load_state_dict(saved)
    assert [resumed.advance() for _ in iter(lambda: resumed.done, True)] == ends
    assert torch.equal(weights(resumed.rule), weights(whole.rule))


def test_learners_that_diverge_are_given_up_and_the_rule_is_kept() -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=3e38)
    trainer = MetaTrainer(rule, [problem()], learners=9, steps=20, unroll=5, generator=generator())
    before = weights(rule)
    for _ in range(4):
        trainer.advance()
    with pytest.raises(RunError, match="diverged in 5 rounds in a row.*last good weights are kept"):
        trainer.advance()
    assert torch.equal(weights(rule), before)


@pytest.mark.parametrize("learners", [1, 3])
def test_all_rounds_may_not_diverge_however_few(learners: int) -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=3e38)
    with pytest.raises(RunError, match=rf"diverged in all rounds \({learners}\), the last at"):
        train(rule, [problem()], learners=learners, steps=20, unroll=5, generator=generator())


def test_rounds_that_diverge_late_count_too() -> None:
    """Each has unrolls that go well first, which change the rule."""
    rule = MetaSGD(size=10, rate=1e4)
    before = weights(rule)
    seen: list[Progress] = []
    with pytest.raises(RunError, match=r"in 5 rounds in a row, the last at step \d+ of round 5"):
        train(
            rule,
            [QUADRATIC],
            learners=12,
            steps=40,
            unroll=2,
            on_progress=seen.append,
            generator=generator(),
        )
    assert [p.round for p in seen if p.step > 2]
    assert torch.equal(weights(rule), before)


class Fails(MetaTrainer):
    """Training in which chosen rounds diverge."""

    rounds_lost: tuple[int, ...] = ()

    def _finite(self, done: Any) -> bool:
        return self.round + 1 not in self.rounds_lost


def failing(lost: tuple[int, ...]) -> Fails:
    rule = MetaSGD(size=10, rate=1e-3)
    made = Fails(rule, [QUADRATIC], learners=6, steps=4, unroll=2, generator=generator())
    made.rounds_lost = lost
    return made


@pytest.mark.parametrize("lost", [(1, 2, 3, 4), (2, 4, 6), (6,)])
def test_some_rounds_may_diverge(lost: tuple[int, ...]) -> None:
    trainer = failing(lost)
    while not trainer.done:
        trainer.advance()
    assert not torch.equal(weights(trainer.rule), torch.full((10,), 1e-3))


@pytest.mark.parametrize("resumed", [False, True])
def test_the_last_two_rounds_may_not_and_the_last_good_weights_are_back(resumed: bool) -> None:
    trainer, good = failing((5, 6)), torch.empty(0)
    while trainer.round < 4:
        good = weights(trainer.rule)  # with which the last unroll so far went well
        trainer.advance()
    trainer.advance()
    if resumed:
        saved = trainer.state_dict()
        trainer = failing((5, 6))
        trainer.load_state_dict(saved)
    with pytest.raises(RunError, match="in 2 rounds in a row, .* round 6; .*weights are kept. Try"):
        trainer.advance()
    assert torch.equal(weights(trainer.rule), good)


def test_evolution_that_wrecks_the_rule_is_noticed_and_undone() -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=1e-3)
    before = weights(rule)
    trainer = PESTrainer(
        rule, [problem()], updates=9, pairs=2, steps=6, unroll=3, lr=1e6, generator=generator()
    )
    for _ in range(5):
        trainer.advance()
    assert not torch.equal(weights(rule), before)
    with pytest.raises(RunError, match="diverged in 5 updates in a row, the last at update 6"):
        trainer.advance()
    assert torch.equal(weights(rule), before)


def test_one_pair_that_diverges_does_not_stop_evolution() -> None:
    wild = Problem(lambda g: Point(310, generator=g), Quadratic(310), 1)
    trainer = PESTrainer(
        MetaSGD(size=310, rate=0.01),
        [wild, problem()],
        updates=8,
        pairs=2,
        steps=100,
        unroll=2,
        generator=generator(),
    )
    while not trainer.done:
        assert trainer.advance().loss > 6  # 10, the clip, for the one


@pytest.mark.parametrize("cell", ["tardis", "ntm"])
def test_evolution_trains_a_rule_that_draws_random_numbers(cell: str) -> None:
    rule = LSTMOptimiser(cell=cell, hidden_size=3, generator=generator())
    trainer = PESTrainer(
        rule, [problem(2)], updates=2, pairs=1, steps=4, unroll=2, generator=generator()
    )
    before = weights(rule)
    while not trainer.done:
        trainer.advance()
    assert not torch.equal(weights(rule), before)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_rule_of_another_type_than_its_learners(order: Any, dtype: torch.dtype) -> None:
    rule = LSTMOptimiser(hidden_size=3, generator=generator()).to(dtype)
    options: dict[str, Any] = {"learners": 1, "steps": 4, "unroll": 2, "order": order}
    history = train(rule, [problem()], perturb=0.01, generator=generator(), **options)
    assert weights(rule).dtype == dtype
    assert weights(rule).any()
    PESTrainer(rule, [problem()], pairs=1, steps=4, unroll=2, generator=generator()).advance()
    if dtype == torch.float64:
        same = LSTMOptimiser(hidden_size=3, generator=generator())
        plain = train(same, [problem()], perturb=0.0, generator=generator(), **options)
        assert history[0].loss == pytest.approx(plain[0].loss, rel=0.1)


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
    assert made.learners is not None
    assert made.moment is not None
    start, now, first = made.learners.start, made.moment.params, 64 * 4 + 4
    assert torch.equal(now[:, :first], start[:, :first])
    assert not torch.equal(now[:, first:], start[:, first:])
    _, gradient = made.learners.gradients(now, made.learners.draw())
    assert not gradient[:, :first].any()
    assert gradient[:, first:].any()


def test_evolution_leaves_frozen_parameters_alone_too() -> None:
    trainer = PESTrainer(
        DMSGD(), [Problem(frozen, DIGITS, 8)], pairs=1, steps=9, unroll=2, generator=generator()
    )
    trainer.advance()
    (pair,) = trainer.particles
    assert torch.equal(pair.params[:, :260], pair.learners.start[:, :260].repeat(2, 1))
    assert not torch.equal(pair.params[:, 260:], pair.learners.start[:, 260:].repeat(2, 1))


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
        counts += [] if trainer.learners is None else [len(trainer.learners.start)]
    assert counts == [4, 1]


def test_noise_is_where_the_learners_are() -> None:
    trainer = MetaTrainer(
        MetaSGD(size=10), [QUADRATIC], learners=1, steps=2, unroll=1, perturb=0.1,
        generator=generator(),
    )  # fmt: skip
    trainer.advance()
    assert trainer.moment is not None
    params = trainer.moment.params.to("meta")
    trainer.moment = trainer.moment._replace(params=params)
    assert trainer._noise(2).device == params.device
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
        ({"generator": None}, r"a generator, but got None. Try generator=torch.Generator\(\)"),
        ({"unroll": 0}, "unroll to be at least 1"),
    ],
)
def test_bad_settings_of_both_trainers_are_refused(options: dict[str, Any], message: str) -> None:
    for trainer in (MetaTrainer, PESTrainer):
        with pytest.raises(InputError, match=message):
            trainer(DMSGD(), [problem()], **{"generator": generator(), **options})


def test_options_of_train_are_checked() -> None:
    with pytest.raises(InputError, match="a generator, but got None"):
        train(DMSGD(), [problem()])
    with pytest.raises(InputError, match="known option of MetaTrainer .* Did you mean 'learners'"):
        train(DMSGD(), [problem()], learner=3, generator=generator())


def test_bad_settings_of_evolution_are_refused() -> None:
    for options in ({"sigma": 0.0}, {"clip": -1.0}, {"sigma": float("nan")}):
        with pytest.raises(InputError, match="sigma|clip"):
            PESTrainer(DMSGD(), [problem()], generator=generator(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order to be 1 or 2 .* but got 3"),
        ({"objective": "sme"}, "objective to be 'next' or 'same', but got 1 and 'sme'"),
        ({"clamp": -1.0}, "clamp to be a finite number"),
        ({"perturb": -1.0}, "perturb to be a finite number"),
        ({"unroll": 30, "steps": 20}, "unroll to be at least 1 and at most 20, but got 30"),
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


def test_evolution_finds_the_direction_of_the_true_gradient() -> None:
    """Over a whole training, the mean estimate points where the loss falls: rates go up."""
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=0.001)
    trainer = PESTrainer(
        rule,
        [problem()],
        updates=30,
        pairs=8,
        steps=20,
        unroll=5,
        sigma=0.01,
        lr=1e-2,
        generator=generator(),
    )
    while not trainer.done:
        trainer.advance()
    assert rule.rates.mean() > 0.01


def test_evolution_trains_a_recurrent_rule() -> None:
    rule = DMSGD(hidden_size=4, generator=generator())
    trainer = PESTrainer(
        rule,
        [problem(), problem(6)],
        updates=3,
        pairs=2,
        steps=(4, 8),
        unroll=4,
        generator=generator(),
    )
    before = weights(rule)
    while not trainer.done:
        assert trainer.advance().loss > 0
    assert not torch.equal(weights(rule), before)
