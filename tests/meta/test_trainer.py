"""Meta-training learns, stops and goes on with the same numbers, and survives divergence."""

from typing import Any

import pytest
import torch

from attractor.errors import InputError, RunError
from attractor.meta import MetaTrainer, PESTrainer, Problem, train
from attractor.models import MLP
from attractor.optimisers import DMSGD, MTL2L, LSTMOptimiser, MetaSGD, Rule
from attractor.tasks import Digits

DIGITS = Digits(order="flat")


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
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
