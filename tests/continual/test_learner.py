"""The learner: its matrix, its curve, combined strategies, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import StepLR

from attractor import InputError
from attractor.continual import (
    AGEM,
    ER,
    EWC,
    GEM,
    HAT,
    Freeze,
    Learner,
    MetaSGDCL,
    Naive,
    Stable,
    Strategy,
    accuracy,
    combine,
    train,
)
from attractor.models import HCN, MLP, MultiHead, ResNet, SequenceClassifier, SequenceTagger
from attractor.tasks import ArrayTask, Data, StoredTask
from attractor.tasks.streams import (
    Stream,
    own_heads,
    permuted_sequences,
    split_classes,
    split_images,
    with_features,
)
from continual.helpers import digits, mlp, parameters, seeded


def test_the_first_row_is_of_the_network_that_is_then_trained() -> None:
    model, stream = mlp(), digits()
    expected = [accuracy(model, task) for task in stream]
    result = train(model, stream, iterations=20)
    assert result.matrix[0].tolist() == expected
    assert result.model is model


def test_rows_are_of_the_ends_of_tasks() -> None:
    model, stream = mlp(), digits()
    learner = Learner(model, stream, iterations=20)
    for task in range(3):
        assert learner.result().matrix[task + 1 :].isnan().all()
        for _ in range(20):
            learner.advance()
        assert learner.result().matrix[task + 1].tolist() == [accuracy(model, t) for t in stream]
    assert learner.done


def test_accuracy_counts_right_answers() -> None:
    class Says(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.one_hot(x[:, 0].long(), 3).float()

    x = torch.tensor([[0.0], [1.0], [2.0], [1.0]])
    data = Data(x, torch.tensor([0, 1, 0, 0]))
    task = ArrayTask("hand", 0, data, data, (0, 1, 2))
    assert accuracy(Says(), task, batch_size=3) == 0.5


def test_the_length_of_a_task() -> None:
    assert Learner(mlp(), digits(), batch_size=100).updates == 16  # of 1547 samples
    assert Learner(mlp(), digits(), batch_size=100, epochs=3).updates == 47
    assert Learner(mlp(), digits(), iterations=25).updates == 25


def test_the_learning_curve() -> None:
    result = train(mlp(), digits(2), iterations=10, evaluate_every=4)
    assert [(one.task, one.update) for one in result.curve] == [(0, 4), (0, 8), (1, 4), (1, 8)]
    assert all(len(one.accuracies) == 2 for one in result.curve)
    plain = train(mlp(), digits(2), iterations=10)
    assert torch.equal(plain.matrix, result.matrix)  # to look changes nothing


def test_the_optimiser_lives_through_all_tasks() -> None:
    learner = Learner(mlp(), digits(2), optimiser=partial(Adam, lr=1e-3), iterations=5)
    while not learner.done:
        learner.advance()
    assert all(int(state["step"]) == 10 for state in learner.optimiser.state.values())


def test_stable_does_not_raise_a_rate_that_is_lower_still() -> None:
    learner = Learner(mlp(), digits(), Stable(), optimiser=partial(SGD, lr=1e-5), iterations=2)
    while not learner.done:
        learner.advance()
        assert learner.optimiser.param_groups[0]["lr"] == 1e-5


def test_stable_decays_the_rate_and_stops_at_the_least() -> None:
    learner = Learner(mlp(), digits(), Stable(0.5, least=0.03), optimiser=partial(SGD, lr=0.1))
    rates = []
    learner.iterations = 2
    while not learner.done:
        learner.advance()
        rates.append(learner.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.03, 0.03])
    with pytest.raises(InputError, match="gamma above 0 and at most 1, but got 1.5"):
        Stable(1.5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_freeze_leaves_all_but_the_first_layer(momentum: float) -> None:
    model = HCN([64, 8, 8, 10], generator=seeded())
    slow = partial(SGD, lr=0.01, momentum=momentum)
    learner = Learner(model, digits(2), Freeze(), optimiser=slow, iterations=10)
    while learner.task == 0:
        learner.advance()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    while not learner.done:
        learner.advance()
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {"first.weight", "first.bias"}


@pytest.mark.parametrize("other", [GEM, EWC, ER, AGEM, MetaSGDCL, Stable])
def test_freeze_goes_with_the_others(other: type) -> None:
    model = HCN([64, 8, 8, 10], generator=seeded())
    learner = Learner(model, digits(), combine(other(), Freeze()), iterations=8)
    while learner.task == 0:
        learner.advance()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    while not learner.done:
        learner.advance()
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {"first.weight", "first.bias"}


def test_freeze_needs_a_name_that_is_there() -> None:
    with pytest.raises(InputError, match="beginning of a parameter's name.*but got first"):
        Learner(mlp(), digits(), Freeze(["first"]))


def test_a_label_outside_the_head_is_refused_before_anything_is_lost() -> None:
    model = MLP([64, 8, 9], generator=seeded())
    before = parameters(model)
    with pytest.raises(InputError, match="each of the 10 classes.*but it has 9. Widen"):
        Learner(model, digits())
    assert torch.equal(parameters(model), before)


def test_another_input_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"inputs of shape \(2, 64\).*but it says"):
        Learner(MLP([60, 8, 10], generator=seeded()), digits())


class TimeFirst(nn.Module):
    """A network of the user's own that reads ``(time, batch, features)``."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.recurrent, self.readout = nn.GRU(inputs, 6), nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.readout(self.recurrent(x)[0][-1])
        return answer


def test_time_first_networks_are_told_how_to_be_made() -> None:
    stream = permuted_sequences(tasks=2, generator=seeded())
    with pytest.raises(InputError, match="batch_first=True"):
        Learner(TimeFirst(1, 10), stream)


def test_a_network_that_needs_the_task_needs_a_stream_that_tells_it() -> None:
    stream = split_images(dataset="digits")
    heads = MultiHead(mlp(), [task.classes for task in stream])
    with pytest.raises(InputError, match="tells the task, which MultiHead needs"):
        Learner(heads, stream)
    Learner(heads, replace(stream, identity=True))


def test_the_state_of_another_stream_is_refused_and_nothing_is_lost() -> None:
    other = Learner(mlp(), digits(2), iterations=5)
    other.advance()
    learner = Learner(mlp(), digits(3), iterations=5)
    learner.advance()
    before = parameters(learner.model)
    with pytest.raises(InputError, match="with the stream permuted digits.*but it is of one with"):
        learner.load_state_dict(other.state_dict())
    assert torch.equal(parameters(learner.model), before)
    assert learner.update == 1


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"strategy": None}, r"strategy naive\(\), but it is of one with er\("),
        ({"strategy": ER("ring")}, "strategy er\\(memory='ring'"),
        ({"strategy": ER(balanced=True)}, "strategy er.*balanced=True"),
        ({"strategy": combine(ER(), Stable())}, "strategy er.* [+] stable"),
        ({"batch_size": 4}, "batch_size 4"),
        ({"iterations": 1}, "iterations 1"),
        ({"optimiser": Adam}, "optimiser Adam"),
        ({"model": mlp(9, 8)}, "same model, but: size mismatch"),
        ({"model": mlp(8)}, "same model, but: size mismatch"),
    ],
)
def test_the_state_of_another_learner_is_refused_and_nothing_is_lost(
    options: dict[str, Any], what: str
) -> None:
    def made(**changes: Any) -> Learner:
        given: dict[str, Any] = {"model": mlp(), "strategy": ER(), "iterations": 5} | changes
        return Learner(given.pop("model"), digits(2), given.pop("strategy"), **given)

    one = made()
    for _ in range(7):
        one.advance()
    other = made(**options)
    before = parameters(other.model)
    with pytest.raises(InputError, match=what):
        other.load_state_dict(one.state_dict())
    assert torch.equal(parameters(other.model), before)
    assert other.task == other.update == 0
    other.advance()


def test_dropout_goes_on_bit_by_bit_whatever_else_draws() -> None:
    def learner() -> Learner:
        model = MLP([64, 8, 8, 10], dropout=0.5, generator=seeded())
        return Learner(model, digits(), iterations=5)

    one, other = learner(), learner()
    here = torch.get_rng_state()
    for _ in range(3):
        one.advance()
    assert torch.equal(torch.get_rng_state(), here)
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert one.advance() == other.advance()
        torch.rand(1)


def test_a_task_without_a_head_is_refused() -> None:
    stream = replace(split_images(dataset="digits", size=2, relabel=True), identity=True)
    classes = [task.classes for task in own_heads(stream)]
    with pytest.raises(InputError, match=r"a head for the classes \[0, 1\] of the task"):
        Learner(MultiHead(mlp(), classes), stream)


def test_what_is_not_to_be_kept_is_not_kept() -> None:
    stream = Stream("large", [replace(task, keep=False) for task in digits(2).arrays()])
    Learner(mlp(), stream, iterations=2)
    assert not any("test_samples" in vars(task) for task in stream)


def test_models_that_answer_otherwise_are_refused() -> None:
    x, y = torch.randn(6, 4, 2), torch.tensor([0, 1, 2, 0, 1, 2])
    each = Data(x, y[:, None].repeat(1, 4))
    for data, model in (
        (Data(x, y), SequenceTagger("gru", 2, 5, 3)),
        (each, SequenceClassifier("gru", 2, 5, 3)),
        (Data(x, y), TimeFirst(2, 3)),
    ):
        stream = Stream("odd", [ArrayTask("odd", 0, data, data, (0, 1, 2))])
        with pytest.raises(InputError, match="answers of shape.*batch_first=True"):
            Learner(model, stream)
    ragged = Data(x, y, torch.tensor([4, 3, 2, 4, 4, 1]))
    stream = Stream("ragged", [ArrayTask("ragged", 0, ragged, ragged, (0, 1, 2))])
    with pytest.raises(InputError, match="but it says: 'PackedSequence'"):
        Learner(MLP([8, 5, 3]), stream)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"epochs": 0}, {"iterations": 0}])
def test_bad_lengths_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="to be at least 1, but got 0"):
        Learner(mlp(), digits(), **options)  # type: ignore[arg-type]


def test_a_stream_of_one_task_is_plain_training() -> None:
    result = train(mlp(), digits()[:1], iterations=100, optimiser=partial(SGD, lr=0.1))
    assert result.matrix.shape == (2, 1)
    assert set(result.metrics) == {"acc", "aia", "fa1"}
    assert "acc" in repr(result)


def test_a_stream_in_which_a_task_comes_again() -> None:
    first = digits()[0]
    again = Stream("again", [first, digits()[1].at(1), first.at(2)])
    result = train(mlp(16, 16), again, GEM(20), iterations=60, optimiser=partial(SGD, lr=0.05))
    assert torch.equal(result.matrix[:, 0], result.matrix[:, 2])


def test_a_classifier_on_the_features_of_a_frozen_network() -> None:
    g = seeded()
    x, y = torch.rand(24, 3, 32, 32, generator=g), torch.arange(24) % 4
    stream = split_classes(Data(x, y), Data(x, y), [(0, 1), (2, 3)], relabel=True)
    extractor = ResNet(20, 4, generator=g).eval()
    features = with_features(stream, extractor.features, batch_size=10)
    assert features[0].train.x.shape == (12, 64)
    before = parameters(extractor)
    result = train(HCN([64, 8, 8, 2], generator=g), features, GEM(4), epochs=2, batch_size=4)
    assert torch.isfinite(result.matrix).all()
    assert torch.equal(parameters(extractor), before)


def test_a_scheduler_is_no_optimiser() -> None:
    with pytest.raises(InputError, match="from parameters to an optimiser, but it gave a StepLR"):
        Learner(mlp(), digits(), optimiser=lambda p: StepLR(SGD(p, lr=0.1), 1))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("make", [Naive, GEM, partial(ER, replay=5), HAT, EWC, Stable])
def test_a_scheduler_is_no_optimiser_in_a_loop_of_ones_own(make: Callable[[], Strategy]) -> None:
    strategy, stream = make(), replace(digits(2), identity=True)
    model = strategy.start(mlp(), stream, generator=seeded())
    schedule: Any = StepLR(SGD(model.parameters(), lr=0.1), 1)
    some = stream[0].samples(torch.arange(10))

    def update() -> None:
        strategy.start_task(model, stream[0], schedule, 3)
        torch.autograd.backward(strategy.loss(model, some))
        strategy.observe(some)
        strategy.after_backward(model)
        strategy.step(model, schedule)

    with pytest.raises(InputError, match="an optimiser, but got the scheduler StepLR, whose step"):
        update()


def test_a_step_after_the_end_is_refused() -> None:
    learner = Learner(mlp(), digits(2), iterations=1)
    while not learner.done:
        learner.advance()
    state = torch.get_rng_state()
    with pytest.raises(InputError, match="all 2 of 'permuted digits.*' are learnt. Ask"):
        learner.advance()
    assert torch.equal(torch.get_rng_state(), state)
    assert learner.done


class Widened(Strategy):
    """Another model from the second task on."""

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> nn.Module | None:
        return mlp(16, 16) if task.place == 1 else None


@pytest.mark.parametrize("strategy", [Widened(), combine(Stable(), Widened())])
def test_a_strategy_may_go_on_with_another_model(strategy: Strategy) -> None:
    first = mlp()
    learner = Learner(first, digits(2), strategy, iterations=3, optimiser=partial(SGD, lr=0.1))
    while learner.task == 0:
        learner.advance()
    assert learner.model is first
    learner.advance()
    assert parameters(learner.model).shape == parameters(mlp(16, 16)).shape
    assert not torch.equal(parameters(learner.model), parameters(mlp(16, 16)))  # it learns
    assert learner.result().model is learner.model


def test_a_strategy_may_be_a_name_or_a_table() -> None:
    """By name as by itself, to the last digit, with options and combined."""
    spec = {"name": "er", "size": 30, "also": {"name": "ewc", "strength": 3.0}}
    same = combine(ER(size=30), EWC(3.0))
    results = [train(mlp(), digits(2), one, iterations=12, seed=1) for one in (spec, same, "er")]
    by_table, by_itself, plain = [parameters(one.model) for one in results]
    assert torch.equal(by_table, by_itself)
    assert not torch.equal(by_table, plain)


@pytest.mark.parametrize(
    ("model", "stream", "strategy", "said"),
    [
        ("mlp", None, None, "expected model to be a Module, but got 'mlp'"),
        (None, "permuted", None, "expected stream to be a Stream, but got 'permuted'"),
        (None, None, ER, r"expected strategy to be a Strategy, but got the class ER. Try ER\(\)"),
        (None, None, "era", "name of a known strategy .* but got 'era'. Did you mean 'er"),
        (None, None, {"name": "er", "sise": 3}, "known option of the strategy er"),
    ],
)
def test_what_is_no_model_stream_or_strategy_is_named(
    model: Any, stream: Any, strategy: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Learner(model or mlp(), stream or digits(2), strategy)
