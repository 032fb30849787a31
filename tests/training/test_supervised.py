"""The one loop, update by update, against the same by hand; and going on bit by bit."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, ReduceLROnPlateau

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import Train
from attractor.models import MLP, SequenceTagger
from attractor.optimisers import Anytime
from attractor.state import cloned
from attractor.tasks import ArrayTask, CopyMemory, Data, Judged
from attractor.tasks.batch import IGNORE
from attractor.training import Diverged, Plan, Supervised, evaluate


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def task(scale: float = 3.0) -> ArrayTask:
    """Twenty samples in training, seven held out, far from the scale of one."""
    x = scale * torch.randn(27, 4, generator=seeded(5))
    y = (x.sum(1) > 0).long()
    train, held = Data(x[:20], y[:20]), Data(x[20:], y[20:])
    return ArrayTask("signs", 0, train, held, (0, 1), valid=held)


def model(seed: int = 1) -> MLP:
    return MLP([4, 6, 2], activation="tanh", generator=seeded(seed))


def parameters(network: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach().clone()


def run(plan: Plan, network: nn.Module, lr: float = 0.3, **options: Any) -> Supervised:
    training = Supervised(
        network, task(), SGD(network.parameters(), lr), plan, generator=seeded(2), **options
    )
    while not training.done:
        training.advance()
    return training


def by_hand(
    network: nn.Module, steps: int, *, accumulate: int = 1, lr: float = 0.3, **clip: float
) -> Iterator[Tensor]:
    """The same updates in plain torch; after each, the gradient that was followed."""
    batches = task().batches(5, generator=seeded(2))
    for _ in range(steps):
        drawn = [batches.draw() for _ in range(accumulate)]
        losses = [F.cross_entropy(network(batch.x), batch.y) for batch in drawn]
        total = torch.stack(losses).mean()
        gradients = torch.autograd.grad(total, list(network.parameters()))
        flat = torch.cat([g.flatten() for g in gradients])
        if "norm" in clip:
            flat = flat * min(1.0, clip["norm"] / float(flat.norm() + 1e-6))
        if "value" in clip:
            flat = flat.clamp(-clip["value"], clip["value"])
        with torch.no_grad():
            moved = parameters(network) - lr * flat
            nn.utils.vector_to_parameters(moved, network.parameters())
        yield flat


@pytest.mark.parametrize(
    ("plan", "clip"),
    [
        ({}, {}),
        ({"clip": 0.2}, {"norm": 0.2}),
        ({"clip_value": 0.05}, {"value": 0.05}),
        ({"clip": 0.4, "clip_value": 0.05}, {"norm": 0.4, "value": 0.05}),
        ({"accumulate": 3}, {}),
    ],
)
def test_updates_are_those_of_plain_torch(plan: dict[str, Any], clip: dict[str, float]) -> None:
    ours, theirs = model(), model()
    run(Plan(7, 5, **plan), ours)
    followed = list(by_hand(theirs, 7, accumulate=plan.get("accumulate", 1), **clip))
    torch.testing.assert_close(parameters(ours), parameters(theirs))
    if clip:
        unclipped = next(by_hand(model(), 1))
        assert not torch.allclose(followed[0], unclipped)  # else nothing was tested


def test_a_batch_has_no_sample_twice() -> None:
    network = model()
    sgd = SGD(network.parameters(), 0.3)
    for judged in (task(), Judged(task(), F.cross_entropy)):
        message = r"at least batch_size=21 samples to train on, but got 20\. Try batch_size=20"
        with pytest.raises(InputError, match=message):
            Supervised(network, judged, sgd, Plan(1, 21), generator=seeded(2))
        Supervised(network, judged, sgd, Plan(1, 20), generator=seeded(2))
    Supervised(network, CopyMemory(lag=2), sgd, Plan(1, 2000), generator=seeded(2))


def test_a_row_has_the_loss_before_the_update_and_the_norm_before_it_is_clipped() -> None:
    network = model()
    training = Supervised(
        network,
        task(),
        SGD(network.parameters(), 0.3),
        Plan(2, 5, clip=0.1, log_every=1, eval_every=2),
        generator=seeded(2),
    )
    batch = task().batches(5, generator=seeded(2)).draw()
    expected = F.cross_entropy(network(batch.x), batch.y)
    gradient = torch.autograd.grad(expected, list(network.parameters()))
    [row] = training.advance()
    assert row == {
        "split": "train",
        "loss": pytest.approx(expected.item()),
        "gradient_norm": pytest.approx(float(torch.cat([g.flatten() for g in gradient]).norm())),
    }
    assert row["gradient_norm"] > 0.1
    _, valid = training.advance()
    held = task().test
    assert valid["accuracy"] == float((network(held.x).argmax(1) == held.y).double().mean())


def test_schedulers_go_update_by_update() -> None:
    ours, theirs = model(), model()
    optimiser = SGD(ours.parameters(), 0.3)
    falls = LambdaLR(optimiser, lambda step: 1 - step / 4)
    training = Supervised(ours, task(), optimiser, Plan(4, 5), generator=seeded(2), scheduler=falls)
    for step in range(4):
        training.advance()
        torch.testing.assert_close(optimiser.param_groups[0]["lr"], 0.3 * (1 - (step + 1) / 4))
    batches = task().batches(5, generator=seeded(2))
    for step in range(4):
        batch = batches.draw()
        loss = F.cross_entropy(theirs(batch.x), batch.y)
        gradients = torch.autograd.grad(loss, list(theirs.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(theirs.parameters(), gradients, strict=True):
                parameter.sub_(gradient, alpha=0.3 * (1 - step / 4))
    torch.testing.assert_close(parameters(ours), parameters(theirs))


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_a_plan_may_let_the_rate_fall(name: Any) -> None:
    shapes: dict[str, Callable[[int], float]] = {
        "cosine": lambda t: (1 + math.cos(math.pi * t / 4)) / 2,
        "linear": lambda t: 1 - t / 4,
    }
    network = model()
    sgd = SGD(network.parameters(), 0.3)
    training = Supervised(network, task(), sgd, Plan(4, 5, schedule=name), generator=seeded(2))
    for step in range(4):
        assert sgd.param_groups[0]["lr"] == pytest.approx(0.3 * shapes[name](step))
        training.advance()
    assert sgd.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)


def test_a_scheduler_that_is_given_wins_over_the_plan() -> None:
    network = model()
    sgd = SGD(network.parameters(), 0.3)
    half = LambdaLR(sgd, lambda step: 0.5**step)
    plan = Plan(2, 5, schedule="linear")
    training = Supervised(network, task(), sgd, plan, generator=seeded(2), scheduler=half)
    training.advance()
    training.advance()
    assert sgd.param_groups[0]["lr"] == pytest.approx(0.3 * 0.25)


def test_early_stopping_waits_for_its_patience_and_keeps_the_best() -> None:
    network = model()
    training = Supervised(
        network,
        task(),
        SGD(network.parameters(), 30.0),  # far too large: it soon gets worse
        Plan(200, 5, eval_every=1, patience=4, keep_best=True, log_every=1000),
        generator=seeded(2),
    )
    losses = []
    while not training.done:
        losses += [row["loss"] for row in training.advance()]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 4 < 200
    assert losses[-1] > losses[best]
    assert training.measure("valid")["loss"] == pytest.approx(losses[best])


def test_it_ends_once_the_task_is_solved() -> None:
    training = run(Plan(500, 5, eval_every=10, stop_below=0.3), model())
    assert training.solved
    assert training.step < 500
    assert training.step % 10 == 0


@pytest.mark.parametrize("after", [1, 4, 6])
def test_it_goes_on_bit_by_bit(after: int) -> None:
    def made() -> Supervised:
        network = MLP([4, 6, 2], dropout=0.3, generator=seeded(1))
        adam = Adam(network.parameters(), 0.05)
        return Supervised(
            network,
            task(),
            adam,
            Plan(9, 5, log_every=1, eval_every=3, patience=9, keep_best=True, accumulate=2),
            generator=seeded(2),
            scheduler=CosineAnnealingLR(adam, 9),
        )

    torch.manual_seed(0)
    whole = made()
    rows, state = [], None
    while not whole.done:
        rows.append(whole.advance())
        if whole.step == after:
            state = cloned(whole.state_dict())
            kept = parameters(whole.model)
    torch.manual_seed(123)
    again = made()
    again.load_state_dict(state)
    torch.testing.assert_close(parameters(again.model), kept, rtol=0, atol=0)
    assert [again.advance() for _ in range(9 - after)] == rows[after:]
    assert torch.equal(parameters(again.model), parameters(whole.model))


SCRIPTED = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.5, 5: 4.0, 6: 0.5}
"""After each update a loss on validation data that has nothing to do with the network."""


def scripted(plan: Plan, patch: pytest.MonkeyPatch) -> Supervised:
    network = model()
    sgd = SGD(network.parameters(), 0.3)
    training = Supervised(network, task(), sgd, plan, generator=seeded(2))
    patch.setattr(training, "measure", lambda split: {"loss": SCRIPTED[training.step]})
    return training


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5])
def test_patience_and_the_best_weights_go_on_with_it(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(6, 5, eval_every=1, patience=3, keep_best=True)
    whole, again = scripted(plan, monkeypatch), scripted(plan, monkeypatch)
    after_step, state = [], None
    while not whole.done:
        whole.advance()
        after_step.append(parameters(whole.model))
        if whole.step == after:
            state = cloned(whole.state_dict())
    again.load_state_dict(state)
    while not again.done:
        again.advance()
    for training in (whole, again):  # the best is of the second update; three more are no better
        assert (training.step, training.best, training.since_best) == (5, 1.0, 3)
        beside = scripted(plan, monkeypatch)
        beside.advance()
        beside.advance()
        assert torch.equal(parameters(training.model), parameters(beside.model))
    assert not torch.equal(after_step[3], parameters(whole.model))


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5])
def test_what_was_judged_goes_on_with_it(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of the fifth update is above that of the first, three measurements ago."""
    plan = Plan(6, 5, eval_every=1, average_when_stale=3)
    whole, again = scripted(plan, monkeypatch), scripted(plan, monkeypatch)
    begun = []
    while not whole.done:
        whole.advance()
        begun.append(whole.average.on)
        if whole.step == after:
            again.load_state_dict(cloned(whole.state_dict()))
    assert begun == [False] * 4 + [True, False]  # at the end the mean is the weights
    assert again.judged == [SCRIPTED[step] for step in range(1, after + 1)]
    seen = []
    while not again.done:
        again.advance()
        seen.append(again.average.on)
    assert seen == begun[after:]
    assert torch.equal(parameters(again.model), parameters(whole.model))


def test_autocast_computes_in_the_other_type() -> None:
    class Seeing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.seen = nn.Linear(4, 2), []  # type: ignore[var-annotated]

        def forward(self, x: Tensor) -> Tensor:
            answer: Tensor = self.layer(x)
            self.seen.append(answer.dtype)
            return answer

    network = Seeing()
    run(Plan(2, 5, autocast="bfloat16", eval_every=2), network)
    assert set(network.seen) == {torch.bfloat16}
    assert network.layer.weight.dtype == torch.float32


def test_divergence_is_said_with_what_to_try() -> None:
    network = model()
    nn.init.constant_(network.layers[0].weight, torch.nan)  # type: ignore[arg-type]
    with pytest.raises(Diverged, match=r"the loss became nan .* of 50 .*Try clip=1, a smaller"):
        run(Plan(50, 5), network)


def test_impossible_plans_are_refused() -> None:
    for name in ("steps", "batch_size", "accumulate", "log_every", "eval_batch_size"):
        given: dict[str, Any] = {"steps": 5, name: 0}
        with pytest.raises(InputError, match=f"{name} to be at least 1, but got 0"):
            Plan(**given)
    with pytest.raises(InputError, match="known autocast .* got 'float8'"):
        Plan(5, autocast="float8")
    with pytest.raises(InputError, match=r"'bfloat16', but got 'float16', in which small grad"):
        Plan(5, autocast="float16")
    with pytest.raises(InputError, match="known schedule .* got 'cosin'. Did you mean 'cosine'"):
        Plan(5, schedule="cosin")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clip to be a finite number above zero, but got -1"):
        Plan(5, clip=-1)


def test_evaluate_counts_every_answer_once_whatever_the_batch_size() -> None:
    network = model().eval()
    found = [evaluate(network, task(), "valid", size) for size in (1, 3, 7)]
    for one in found[1:]:
        assert one == pytest.approx(found[0])
    assert not math.isclose(found[0]["accuracy"], 1.0)
    network.train()
    evaluate(network, task(), "valid", 3)
    assert network.training


def test_a_batch_in_which_nothing_is_asked_counts_for_nothing() -> None:
    y = torch.tensor([[IGNORE] * 3, [0, 1, 1], [1, IGNORE, 0]])
    data = Data(torch.randn(3, 3, 2), y)
    task = ArrayTask("steps", 0, data, data, (0, 1), valid=data)
    model = SequenceTagger("gru", 2, 4, 2)
    alone, together = (evaluate(model, task, "valid", size) for size in (1, 3))
    assert alone == pytest.approx(together)
    assert together["loss"] > 0


def test_experiments_train_by_the_same_defaults() -> None:
    plan, settings = Plan(5), Train(steps=5)
    assert settings.plan == plan
    assert settings.model_fields_set == {"steps"}


@pytest.mark.parametrize("keep_best", [False, True])
def test_a_network_is_judged_at_the_average_of_its_optimiser(keep_best: bool) -> None:
    """As schedule-free ones want it: there for every evaluation and at the end, back between."""
    torch.manual_seed(0)
    model = MLP([4, 5, 2])
    optimiser = Anytime(rate=0.3)(model.parameters())
    plan = Plan(6, batch_size=5, eval_every=2, keep_best=keep_best)
    training = Supervised(model, task(), optimiser, plan, generator=seeded())
    best = math.inf
    while not training.done:
        rows = training.advance()
        for row in (r for r in rows if r["split"] == "valid"):
            best = min(best, row["loss"])
            assert optimiser.training is (keep_best or not training.done)
            last = row["loss"]
    found = evaluate(model, task(), "valid", 100)["loss"]
    assert found == pytest.approx(best if keep_best else last, rel=1e-5)
    assert training.measure("valid")["loss"] == pytest.approx(found)
    other = MLP([4, 5, 2])
    again = Supervised(
        other, task(), Anytime(rate=0.3)(other.parameters()), plan, generator=seeded()
    )
    again.load_state_dict(training.state_dict())
    for _ in "ab":  # one that is taken up at its end stays at the average
        assert again.measure("valid")["loss"] == pytest.approx(found)
        assert evaluate(other, task(), "valid", 100)["loss"] == pytest.approx(found)
    if not keep_best:
        optimiser.train()
        assert evaluate(model, task(), "valid", 100)["loss"] != pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("patience", 3), ("keep_best", True), ("stop_below", 0.1), ("average_when_stale", 2)],
)
def test_what_goes_by_validation_needs_measurements(name: str, value: Any) -> None:
    asked: dict[str, Any] = {name: value, "eval_every": None}
    with pytest.raises(InputError, match=rf"eval_every beside {name}=.* or leave {name} out"):
        Plan(5, **asked)


@pytest.mark.parametrize("after", [1, 4, 5])
def test_a_rate_that_falls_on_a_plateau_does_so_by_measurements_and_goes_on(after: int) -> None:
    """With a threshold that no loss reaches, each measurement after the first halves the rate."""

    def made() -> Supervised:
        network = model()
        sgd = SGD(network.parameters(), 0.8)
        plateau = ReduceLROnPlateau(
            sgd, factor=0.5, patience=0, threshold=1e9, threshold_mode="abs"
        )
        plan = Plan(8, 5, eval_every=2)
        return Supervised(network, task(), sgd, plan, generator=seeded(2), scheduler=plateau)

    def rates(training: Supervised, steps: int) -> list[float]:
        found = []
        for _ in range(steps):
            training.advance()
            found.append(training.optimiser.param_groups[0]["lr"])
        return found

    whole, first, second = made(), made(), made()
    assert rates(whole, 8) == [0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.1]
    rates(first, after)
    second.load_state_dict(cloned(first.state_dict()))
    rates(second, 8 - after)
    assert torch.equal(parameters(second.model), parameters(whole.model))


def test_a_plateau_without_measurements_is_refused() -> None:
    network = model()
    plateau = ReduceLROnPlateau(SGD(network.parameters(), 0.8))
    with pytest.raises(InputError, match="expected eval_every beside ReduceLROnPlateau"):
        run(Plan(8, 5, eval_every=None), network, scheduler=plateau)


@pytest.mark.parametrize(
    ("asked", "steps", "every", "after"),
    [
        ({"keep_best": True}, 3, 5, [3]),  # else nothing would be judged
        ({"patience": 2}, 5, 5, [5]),
        ({"stop_below": 0.1}, 7, 5, [5]),
        ({}, 3, 5, []),
        ({"keep_best": True}, 4, 2, [2, 4]),
    ],
)
def test_a_training_that_is_judged_is_measured_however_short(
    asked: dict[str, Any], steps: int, every: int, after: list[int]
) -> None:
    plan = Plan(steps, 5, eval_every=every, **asked)
    assert [n for n in range(1, steps + 1) if plan.measures_after(n)] == after
