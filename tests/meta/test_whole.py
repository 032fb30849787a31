"""Evolution strategies over whole trainings, and fixed trainings that tell the best weights."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from attractor.cells.kernels.native import STATUS
from attractor.errors import InputError
from attractor.experiments.kinds.supervised import SupervisedRun, meta_training
from attractor.experiments.rules import read_card, train_rule
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.meta import Learners, MetaTrainer, Problem, train
from attractor.meta.opposed import Opposed
from attractor.meta.validation import Validation
from attractor.meta.whole import JUDGED, Whole, shares
from attractor.models import MLP, Point
from attractor.optimisers import DMSGD, Anytime, MetaSGD, Pacer, Rule
from attractor.optimisers.sweep import sweep_learners
from attractor.runs.drive import Context
from attractor.tasks import Digits, Quadratic
from attractor.training.process import Diverged
from meta.test_trainer import DIGITS, QUADRATIC, generator, problem, weights


def moved(rule: Rule, count: int, by: float = 0.3) -> dict[str, Tensor]:
    """Other weights for each of so many learners."""
    drawn = generator(9)
    return {
        f"rule.{name}": p.detach() + by * torch.randn(count, *p.shape, generator=drawn)
        for name, p in rule.named_parameters()
    }


def test_the_estimate_is_that_of_the_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings of three moves whose losses are given: by hand."""
    seen: list[dict[str, Tensor]] = []
    told: list[Tensor] = []

    def losses(self: Whole, started: int, moves: Any) -> Tensor:
        assert started == len(seen)
        seen.append(moves)
        told.append(torch.rand(6, 2, generator=generator(started)) + 0.1)
        return told[-1]

    monkeypatch.setattr(Whole, "_losses", losses)
    rule = MetaSGD(size=5, rate=0.1)
    found = Whole(
        rule, [QUADRATIC], trainings=2, moves=3, sigma=0.2, bound=0.5, generator=generator()
    )
    said = found.stretch()
    expected = torch.zeros(5)
    for moves, left in zip(seen, told, strict=True):
        for k in range(3):
            above, below = (sum(map(math.log, left[row].tolist())) / 2 for row in (k, k + 3))
            counted = 0.5 * math.tanh((above - below) / 0.5)
            expected += moves["rates"][k] * counted / (2 * 0.2**2 * 3 * 2)
    torch.testing.assert_close(rule.rates.grad, expected)
    every = torch.cat(told).log()
    assert said.loss == pytest.approx(every.mean().exp().item())
    assert said.last == pytest.approx(every[:, 1].mean().exp().item())
    assert (said.lost, said.moves, found.step) == (None, True, 1)
    assert {name: m.shape for name, m in seen[0].items()} == {"rates": (3, 5)}
    assert 0.1 < torch.cat([m["rates"] for m in seen]).std() < 0.3


@pytest.mark.parametrize("kind", [Pacer, Anytime])
def test_learners_are_trained_and_judged_as_in_use(kind: type[Rule]) -> None:
    """Each under weights of its own, at the average, on validation data, after 2, 5 and 10."""
    rule = kind()
    both = moved(rule, 2)
    whole = problem()
    left = shares(Opposed(rule, both), _alike(whole), 10, 3, 10.0)
    batch = next(iter(DIGITS.held_out("valid", JUDGED)))
    for row in range(2):
        network = whole.model(generator(4))
        sampler = whole.batches(_after(whole))
        own = kind()
        names = {name.removeprefix("rule."): value[row] for name, value in both.items()}
        own.load_state_dict(names)
        optimiser = own(network.parameters())
        first = DIGITS.loss(network, batch).item()
        found = []
        for update in range(1, 11):
            optimiser.zero_grad()
            DIGITS.loss(network, sampler.draw()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if update in (2, 5, 10):
                optimiser.eval()
                found.append(DIGITS.loss(network, batch).item() / first)
                optimiser.train()
        torch.testing.assert_close(left[row], torch.tensor(found), rtol=1e-4, atol=1e-5)


def _alike(whole: Problem) -> Learners:
    return Learners(whole, 1, copies=2, generator=generator(4))


def _after(whole: Problem) -> torch.Generator:
    """A generator that has drawn a network, as that of learners has."""
    drawn = generator(4)
    whole.model(drawn)
    return drawn


def test_an_objective_without_data_is_judged_by_its_value() -> None:
    """Two that differ, each as a share of its own first loss."""
    rule = MetaSGD(size=10, rate=0.0)
    same = Opposed.alike(rule, 2)
    left = shares(same, Learners(QUADRATIC, 2, generator=generator()), 4, 2, 10.0)
    assert left.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_what_diverges_counts_as_the_bound_and_moves_nothing() -> None:
    rule = MetaSGD(size=10, rate=1e3)
    left = shares(Opposed.alike(rule, 2), Learners(QUADRATIC, 2, generator=generator()), 40, 1, 7.0)
    assert left.tolist() == [[7.0], [7.0]]
    high = Opposed.alike(MetaSGD(size=10, rate=1.0), 2)
    for clip in (7.0, 20.0):  # of finite losses
        left = shares(high, Learners(QUADRATIC, 2, generator=generator()), 2, 1, clip)
        assert left.tolist() == [[clip], [clip]]
    found = Whole(rule, [QUADRATIC], steps=40, marks=1, clip=7.0, generator=generator()).stretch()
    assert (found.lost, found.moves, found.well) == ("at update 1", False, False)
    assert rule.rates.grad is None


@pytest.mark.skipif(STATUS.path is None, reason="no kernel")
@pytest.mark.parametrize("kind", [Pacer, Anytime])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernel_does_what_torch_does_for_every_learner(
    kind: type[Rule], dtype: torch.dtype
) -> None:
    rule = kind().to(dtype)
    both = {name: value.to(dtype) for name, value in moved(rule, 4).items()}
    learners = Learners(problem(), 2, copies=2, generator=generator())
    swift, plain = Opposed(rule, both), Opposed(rule, both)
    plain.rules = []
    params = learners.first_params(rule)
    at = {one: (params, learners.first_state(rule, params)) for one in (swift, plain)}
    for update in range(5):
        grads = (0.1 + update) * torch.randn(params.shape, generator=generator(update)).to(dtype)
        for one, (where, state) in at.items():
            view = learners.view._replace(rate=0.7, decay=None if update % 2 else 0.4)
            steps, state = one(grads, state, where, view)
            at[one] = where + steps, state
    for one, other in zip(*([w, *s.named().values()] for w, s in at.values()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert (at[swift][0] - params).abs().mean() > 0.003


@pytest.mark.skipif(STATUS.path is None, reason="no kernel")
def test_a_learner_with_an_infinite_gradient_is_lost_alone() -> None:
    rule = Pacer()
    learners = Learners(problem(), 2, generator=generator())
    params = learners.first_params(rule)
    grads = torch.ones_like(params)
    grads[1, 3] = math.inf
    state = learners.first_state(rule, params)
    found = sweep_learners([rule, rule], grads, state, params, learners.view)
    assert found is not None
    steps, after = found
    assert steps[1].isnan().all()
    assert steps[0].isfinite().all()
    assert after.shared.t.tolist() == [[1.0] * 4, [0.0] * 4]


def test_where_there_is_no_kernel_torch_does_it() -> None:
    learners = Learners(problem(), 1, generator=generator())
    slow = DMSGD()
    params = learners.first_params(slow)
    state = learners.first_state(slow, params)
    assert sweep_learners([slow], params, state, params, learners.view) is None
    assert Opposed.alike(slow, 1).rules == []


def test_a_rate_that_is_too_small_is_raised() -> None:
    rule = Anytime()
    with torch.no_grad():
        rule.log_gamma.sub_(3.0)
    for name, weight in rule.named_parameters():
        weight.requires_grad_(name == "log_gamma")
    before = rule.log_gamma.item()
    trainer = MetaTrainer(
        rule,
        [problem()],
        estimator="whole",
        updates=6,
        trainings=2,
        moves=2,
        steps=(10, 20),
        lr=0.2,
        generator=generator(),
    )
    while not trainer.done:
        trainer.advance()
    assert rule.log_gamma.item() > before + 0.8
    assert torch.equal(weights(rule)[:1], weights(Anytime())[:1])


def trained(rule: Rule, **options: Any) -> MetaTrainer:
    return MetaTrainer(
        rule,
        [problem(), QUADRATIC],
        estimator="whole",
        updates=5,
        trainings=3,
        moves=2,
        steps=(4, 9),
        generator=generator(),
        validate_every=2,
        validate_on=3,
        **options,
    )


def test_the_best_on_fixed_trainings_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured before the first update, after every second, and at the end."""
    left = iter([0.5, 0.5, 0.5, 0.2, 0.3, 0.4, 0.6, 0.6, 0.6, 0.4, 0.4, 0.4])
    monkeypatch.setattr(Validation, "_logarithm", lambda self, k: torch.tensor(next(left)).log())
    rule = Anytime()
    trainer = trained(rule, lr=0.1)
    told, after = [], [weights(rule)]
    while not trainer.done:
        told += [row for row in trainer.advance() if row["split"] == "meta-valid"]
        after.append(weights(rule))
    second = (0.2 * 0.3 * 0.4) ** (1 / 3)
    assert [row["loss"] for row in told] == pytest.approx([0.5, second, 0.6, 0.4])
    assert [row["best"] for row in told] == pytest.approx([0.5, second, second, second])
    assert torch.equal(weights(rule), after[2])
    assert not torch.equal(after[2], after[1])
    assert not torch.equal(after[2], after[4])


def test_fixed_trainings_are_the_same_again_and_others_than_those_of_training() -> None:
    rule = Pacer()
    some = Validation(rule, [problem(), QUADRATIC], steps=(5, 9), trainings=4, learners=2)
    first = some.measure()
    torch.manual_seed(1)
    assert some.measure() == first == some.best
    with torch.no_grad():
        rule.log_gamma.sub_(2.0)
    assert some.measure() > first == some.best
    assert some.weights["log_gamma"] > rule.log_gamma
    fewer = Validation(Pacer(), [problem(), QUADRATIC], steps=(5, 9), trainings=2, learners=2)
    assert fewer.measure() != first


@pytest.mark.parametrize("stop", range(1, 5))
def test_it_stops_and_goes_on_with_the_same_numbers(stop: int) -> None:
    whole = trained(Pacer())
    for _ in range(stop):
        whole.advance()
    saved = whole.state_dict()
    ends = [whole.advance() for _ in iter(lambda: whole.done, True)]
    resumed = trained(Pacer())
    resumed.load_state_dict(saved)
    assert [resumed.advance() for _ in iter(lambda: resumed.done, True)] == ends
    assert torch.equal(weights(resumed.rule), weights(whole.rule))


@pytest.mark.parametrize(
    "options", [{"marks": 0}, {"trainings": 0}, {"sigma": 0.0}, {"bound": -1.0}, {"steps": 0}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=name):
        MetaTrainer(Pacer(), [QUADRATIC], estimator="whole", generator=generator(), **options)
    with pytest.raises(InputError, match="validate_every"):
        MetaTrainer(Pacer(), [QUADRATIC], validate_every=0, generator=generator())


FILE = """
version = 2
kind = "supervised"
title = "Whole trainings"
budget = "quick"
seeds = [0]
task.name = "digits"
model = { name = "mlp", hidden = [4] }
optimiser.name = "pacer"
variant = [{ label = "Pacer" }]
train = { steps = 9, batch_size = 8 }

[meta]
method = "whole"
tasks = [
    { name = "digits" },
    { name = "attractor.tasks:Quadratic", dimension = 6, model = { name = "attractor.models:Point", dimension = 6 } },
]
updates = 2
together = 2
moves = 3
marks = 2
bound = 0.3
steps = [4, 8]
validate_every = 1
validate_on = 2
"""  # noqa: E501


def test_a_configuration_has_it_and_its_card_tells(tmp_path: Path) -> None:
    path = tmp_path / "whole.toml"
    path.write_text(FILE, encoding="utf-8")
    (config,) = runs_of(*load(str(path), []), [])
    assert isinstance(config, SupervisedRun)
    trainer = meta_training(config, Context(None, tmp_path, bool))
    estimator = trainer.estimator
    assert isinstance(estimator, Whole)
    assert (estimator.trainings, estimator.moves, estimator.marks) == (2, 3, 2)
    assert (estimator.bound, estimator.steps) == (0.3, (4, 8))
    assert trainer.validation is not None
    assert (trainer.validate_every, trainer.validation.trainings) == (1, 2)
    quadratic = estimator.problems[1]
    assert isinstance(quadratic, Problem)
    assert isinstance(quadratic.model(generator()), Point)
    assert isinstance(quadratic.task, Quadratic)
    out = tmp_path / "rule.safetensors"
    train_rule(config, out)
    told = read_card(str(out))
    assert (len(told["curve"]), len(told["validation"])) == (2, 3)


def dropping() -> Problem:
    """Networks of which training drops half of the units."""

    def model(g: torch.Generator) -> torch.nn.Module:
        made = MLP([64, 8, 10], generator=g)
        return torch.nn.Sequential(torch.nn.Dropout(0.5), made)

    return Problem(model, Digits(order="flat"), 8)


def test_learners_are_judged_without_dropout() -> None:
    learners = Learners(dropping(), 1, copies=4, generator=generator())
    batch = learners.draw()
    judged = learners.judge(learners.start, batch)
    assert torch.equal(judged, judged[:1].expand(4))  # copies that start alike
    trained = learners.losses(learners.start, batch)
    assert len({*trained.tolist()}) == 4


def test_fixed_trainings_are_the_same_with_dropout_too() -> None:
    validation = Validation(Anytime(), [dropping()], steps=6, trainings=2, learners=2)
    state = torch.get_rng_state()
    first = validation.measure()
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert validation.measure() == first


@pytest.mark.parametrize(("rate", "worse"), [(-0.9, True), (-0.05, False), (0.1, False)])
@pytest.mark.parametrize("estimator", ["whole", "pes"])
def test_a_training_must_not_end_with_learners_that_got_worse(
    estimator: Any, rate: float, worse: bool
) -> None:
    """A rule that goes up the gradient a little, and one that goes up by far."""
    task = Problem(lambda g: Point(4, generator=g), Quadratic(4, condition=1.0), 1)
    rule = MetaSGD(size=4, rate=rate)
    more: dict[str, Any] = {"unroll": 3} if estimator == "pes" else {}
    trainer = MetaTrainer(
        rule,
        [task],
        estimator=estimator,
        updates=3,
        steps=3,
        sigma=1e-4,
        lr=1e-4,
        clip=1e4,
        generator=generator(),
        **more,
    )
    trainer.advance()
    trainer.advance()
    if worse:
        with pytest.raises(Diverged, match="in the last of 3 updates, to more than 2 times their"):
            trainer.advance()
        assert torch.equal(rule.rates, torch.full((4,), rate))  # no round went well
    else:
        trainer.advance()
        assert trainer.done


@pytest.mark.parametrize("estimator", ["bptt", "pes", "whole"])
def test_networks_and_tensors_of_double_precision(estimator: Any) -> None:
    g = generator()
    x = torch.randn(60, 4, dtype=torch.float64, generator=g)
    y = x @ torch.randn(4, 1, dtype=torch.float64, generator=g)
    more: dict[str, Any] = {
        "bptt": {"learners": 1, "unroll": 2},
        "pes": {"updates": 1, "unroll": 2},
        "whole": {"updates": 1, "trainings": 1, "moves": 1},
    }[estimator]
    task = (lambda: torch.nn.Linear(4, 1, dtype=torch.float64), x, y, mse_loss)
    (row, *_) = train(Anytime(), tasks=[task], estimator=estimator, steps=2, **more)
    assert math.isfinite(row["loss"])
