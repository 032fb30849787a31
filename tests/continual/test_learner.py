"""The learner: its matrix, its curve, combined strategies, and what it refuses."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam

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
    Stable,
    accuracy,
    combine,
    train,
)
from attractor.models import HCN, MLP, MultiHead, ResNet, SequenceClassifier
from attractor.tasks.streams import (
    Data,
    Experience,
    Stream,
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
            learner.step()
        assert learner.result().matrix[task + 1].tolist() == [accuracy(model, t) for t in stream]
    assert learner.done


def test_accuracy_counts_right_answers() -> None:
    class Says(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.one_hot(x[:, 0].long(), 3).float()

    x = torch.tensor([[0.0], [1.0], [2.0], [1.0]])
    data = Data(x, torch.tensor([0, 1, 0, 0]))
    task = Experience("hand", 0, data, data, (0, 1, 2))
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
        learner.step()
    assert all(int(state["step"]) == 10 for state in learner.optimiser.state.values())


def test_stable_decays_the_rate_and_stops_at_the_least() -> None:
    learner = Learner(mlp(), digits(), Stable(0.5, least=0.03), optimiser=partial(SGD, lr=0.1))
    rates = []
    learner.iterations = 2
    while not learner.done:
        learner.step()
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
        learner.step()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    while not learner.done:
        learner.step()
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {"first.weight", "first.bias"}


@pytest.mark.parametrize("other", [GEM, EWC, ER, AGEM, MetaSGDCL, Stable])
def test_freeze_goes_with_the_others(other: type) -> None:
    model = HCN([64, 8, 8, 10], generator=seeded())
    learner = Learner(model, digits(), combine(other(), Freeze()), iterations=8)
    while learner.task == 0:
        learner.step()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    while not learner.done:
        learner.step()
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert changed == {"first.weight", "first.bias"}


def test_freeze_needs_a_name_that_is_there() -> None:
    with pytest.raises(InputError, match="beginning of a parameter's name.*but got first"):
        Learner(mlp(), digits(), Freeze(["first"]))


def test_combined_strategies_do_what_each_does() -> None:
    er, ewc = ER(size=20, replay=5), EWC(50.0, samples=50)
    ends = {}
    for name, strategy in {"er": er, "both": combine(er, ewc, Stable(0.5))}.items():
        learner = Learner(mlp(), digits(), strategy, optimiser=partial(SGD, lr=0.02), iterations=20)
        while not learner.done:
            learner.step()
        ends[name] = learner
    assert ends["both"].optimiser.param_groups[0]["lr"] == pytest.approx(0.005)
    assert len(ewc.anchors) == 1
    assert not torch.equal(parameters(ends["er"].model), parameters(ends["both"].model))


def test_a_combined_learner_goes_on_bit_by_bit() -> None:
    def learner() -> Learner:
        strategy = combine(ER(size=20, replay=5), EWC(samples=50), Freeze(), Stable(0.9))
        return Learner(HCN([64, 8, 8, 10], generator=seeded()), digits(), strategy, iterations=10)

    one, other = learner(), learner()
    for _ in range(13):
        one.step()
    other.load_state_dict(one.state_dict())
    while not one.done:
        assert torch.equal(one.step(), other.step())


def test_two_strategies_cannot_both_make_the_step() -> None:
    with pytest.raises(InputError, match="at most one.*HAT and MetaSGDCL"):
        combine(HAT(), MetaSGDCL())


def test_a_label_outside_the_head_is_refused_before_anything_is_lost() -> None:
    model = MLP([64, 8, 9], generator=seeded())
    before = parameters(model)
    with pytest.raises(InputError, match="each of the 10 classes.*but it has 9. Widen"):
        Learner(model, digits())
    assert torch.equal(parameters(model), before)


def test_another_input_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"inputs of shape \(2, 64\).*but it says"):
        Learner(MLP([60, 8, 10], generator=seeded()), digits())


def test_time_first_networks_are_told_how_to_be_made() -> None:
    stream = permuted_sequences(tasks=2, generator=seeded())
    model = SequenceClassifier("gru", 2, 6, 10)
    with pytest.raises(InputError, match="batch_first=True"):
        Learner(model, stream)


def test_a_network_that_needs_the_task_needs_a_stream_that_tells_it() -> None:
    stream = split_images(dataset="digits")
    heads = MultiHead(mlp(), [task.classes for task in stream])
    with pytest.raises(InputError, match="tells the task, which MultiHead needs"):
        Learner(heads, stream)
    Learner(heads, replace(stream, identity=True))


def test_the_state_of_another_stream_is_refused_and_nothing_is_lost() -> None:
    other = Learner(mlp(), digits(2), iterations=5)
    other.step()
    learner = Learner(mlp(), digits(3), iterations=5)
    learner.step()
    before = parameters(learner.model)
    with pytest.raises(InputError, match="'permuted digits', but it is of another one"):
        learner.load_state_dict(other.state_dict())
    assert torch.equal(parameters(learner.model), before)
    assert learner.update == 1


def test_the_state_of_another_strategy_is_refused() -> None:
    one = Learner(mlp(), digits(2), ER(), iterations=5)
    one.step()
    other = Learner(mlp(), digits(2), iterations=5)
    with pytest.raises(InputError, match="expected no state for Naive, but got memory"):
        other.load_state_dict(one.state_dict())


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
    again = Stream("again", [first, replace(digits()[1], task=1), replace(first, task=2)])
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
