"""Training in one call, on whatever users have."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from attractor.errors import InputError
from attractor.models import (
    MLP,
    LanguageModel,
    PairClassifier,
    Point,
    SequenceClassifier,
    SequenceTagger,
)
from attractor.optimisers import DMSGD, Anytime
from attractor.tasks import (
    ArrayTask,
    CopyMemory,
    Data,
    Digits,
    LanguageTask,
    PairTask,
    Rosenbrock,
)
from attractor.tasks.data.pairs import LABELS, Pair
from attractor.training import Plan, Supervised, Tuning, evaluate, fit

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


class Samples(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return zip(X, Y, strict=True)


def model(outputs: int = 2) -> nn.Module:
    return MLP([4, 8, outputs], generator=torch.Generator().manual_seed(1))


DATA: dict[str, Any] = {
    "tensors": (X, Y),
    "arrays": (X.double().numpy(), Y.numpy()),
    "data set": TensorDataset(X, Y),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=16),
    "without numbers": Samples(),
}


@pytest.mark.parametrize("name", DATA)
def test_data_of_every_form(name: str) -> None:
    fitted = fit(
        model(), DATA[name], valid=DATA[name], optimiser={"name": "adam", "lr": 0.02}, steps=60
    )
    assert fitted.valid["accuracy"] > 0.9
    assert fitted.rows[-1]["loss"] < fitted.rows[0]["loss"]


@pytest.mark.parametrize(
    "optimiser",
    ["anytime", {"name": "sgd", "lr": 0.1}, Anytime.pretrained(), partial(torch.optim.SGD, lr=0.1)],
    ids=["name", "options", "rule", "function"],
)
def test_optimisers_of_every_form(optimiser: Any) -> None:
    fitted = fit(model(), (X, Y), valid=(X, Y), optimiser=optimiser, steps=100)
    assert fitted.valid["accuracy"] > 0.8


def test_numbers_are_fitted_by_least_squares_and_any_loss_can_be_given() -> None:
    target = X[:, :1] * 2 - 1
    fitted = fit(
        model(1), (X, target), valid=(X, target), steps=300, optimiser={"name": "adam", "lr": 0.01}
    )
    assert fitted.valid["loss"] == pytest.approx(
        F.mse_loss(fitted.model(X), target).item(), rel=1e-4
    )
    robust = fit(model(1), (X, target), valid=(X, target), loss=F.l1_loss, steps=1)
    assert robust.valid["loss"] == pytest.approx(
        F.l1_loss(robust.model(X), target).item(), rel=1e-4
    )


def test_a_task_brings_its_own_validation_data() -> None:
    fitted = fit(MLP([64, 16, 10]), Digits(order="flat"), steps=30, eval_every=10)
    assert [row["step"] for row in fitted.rows if row["split"] == "valid"] == [10, 20, 30]
    with pytest.raises(InputError, match="no valid beside a task"):
        fit(MLP([64, 16, 10]), Digits(order="flat"), valid=(X, Y))


def test_a_task_without_validation_data_is_fitted_without_measuring() -> None:
    data = Data(torch.eye(4), torch.tensor([0, 1, 0, 1]))
    task = ArrayTask("alone", 0, data, data, (0, 1))
    fitted = fit(MLP([4, 2]), task, steps=3, batch_size=2, log_every=1, eval_every=None)
    assert fitted.valid == {}
    assert [row["split"] for row in fitted.rows] == ["train"] * 3
    with pytest.raises(InputError, match="expected validation samples for the task 'alone'"):
        fit(MLP([4, 2]), task, steps=3, batch_size=2)


def test_the_seed_decides_and_the_default_generator_is_left_alone() -> None:
    models = [
        MLP([4, 8, 2], dropout=0.5, generator=torch.Generator().manual_seed(1)) for _ in "abc"
    ]
    before = torch.get_rng_state()
    for one, seed in zip(models, (0, 0, 1), strict=True):
        fit(one, (X, Y), steps=5, seed=seed)
    assert torch.equal(torch.get_rng_state(), before)
    first, same, other = (nn.utils.parameters_to_vector(one.parameters()) for one in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_without_validation_data_nothing_is_measured_on_them() -> None:
    fitted = fit(model(), (X, Y), steps=20)
    assert fitted.valid == {}
    assert {row["split"] for row in fitted.rows} == {"train"}


def test_arrays_that_only_may_be_read_are_read(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X.numpy())
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert fit(model(), (x, Y), steps=2).rows == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, Y[:5]), r"data as \(x, y\) with an answer for each input, but got \[60, 5\]"),
        ((X,), r"data as \(x, y\) .* but got \[60\]"),
    ],
)
def test_bad_data(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(model(), data, steps=1)


def test_bad_names() -> None:
    with pytest.raises(InputError, match="known optimiser .* Did you mean 'adam"):
        fit(model(), (X, Y), optimiser="adm", steps=1)
    with pytest.raises(InputError, match="option of Adam"):
        fit(model(), (X, Y), optimiser={"name": "adam", "rate": 1}, steps=1)
    with pytest.raises(InputError, match="known option of fit .* 'clip'"):
        fit(model(), (X, Y), steps=1, clp=1.0)


def test_an_objective_is_measured_on_itself() -> None:
    task, point = Rosenbrock(), Point(2, generator=torch.Generator().manual_seed(3))
    fitted = fit(point, task, optimiser={"name": "sgd", "lr": 1e-4}, steps=10, eval_every=5)
    measured = [row["loss"] for row in fitted.rows if row["split"] == "valid"]
    assert len(measured) == 2
    batch = task.batches(1, generator=torch.Generator()).draw()
    assert measured[1] == fitted.valid["loss"] == task.loss(point, batch).item() < measured[0]


def test_a_rate_is_tuned_on_an_objective() -> None:
    def training(lr: float) -> Supervised:
        point = Point(2, generator=torch.Generator().manual_seed(3))
        sgd = torch.optim.SGD(point.parameters(), lr)
        return Supervised(point, Rosenbrock(), sgd, Plan(20), generator=torch.Generator())

    tuning = Tuning([1e-6, 1e-3], training)
    while not tuning.done:
        tuning.advance()
    assert tuning.rate == 1e-3


def test_nothing_to_measure_on_is_refused() -> None:
    with pytest.raises(InputError, match="samples for validation in 'data', but there are none"):
        fit(model(), (X, Y), valid=(X[:0], Y[:0]), steps=1)
    with pytest.raises(InputError, match="samples to measure on, but Rosenbrock gave none"):
        evaluate(Point(2), Rosenbrock(), "valid", 10)


def test_the_rate_falls_as_the_plan_says() -> None:
    made: list[torch.optim.Optimizer] = []

    def maker(parameters: Any) -> torch.optim.Optimizer:
        made.append(torch.optim.SGD(parameters, lr=0.3))
        return made[0]

    fit(model(), (X, Y), optimiser=maker, steps=4, schedule="linear")
    assert made[0].param_groups[0]["lr"] == 0.0


def test_a_model_of_another_vocabulary_is_refused() -> None:
    text = "a b a b a b a b a b a b a b a b c"  # the third word comes late
    task = LanguageTask({"train": text, "valid": "a b", "test": "a b"}, level="word")
    assert task.input_size == 4  # with the end of the line
    with pytest.raises(InputError, match="knows the 4 tokens of the vocabulary, but .* for 3"):
        fit(LanguageModel("gru", 3, 4, [4]), task, steps=1, batch_size=1)
    with pytest.raises(InputError, match="knows the 4 tokens .* was made for 9. Make it with voc"):
        fit(LanguageModel("gru", 9, 4, [4]), task, steps=1, batch_size=1)
    with pytest.raises(InputError, match="knows the 4 tokens .* was made for 9. Make it with voc"):
        evaluate(LanguageModel("gru", 9, 4, [4]), task, "valid", 1)
    placed = LanguageModel("gru", 4, 4, [4])
    placed.places = nn.Embedding(70, 4)  # a table of something else
    fit(placed, task, steps=1, batch_size=1)


def test_outputs_that_are_too_few_for_any_task_are_told() -> None:
    with pytest.raises(InputError, match="labels from 0 to 1, one for each of the 2 outputs"):
        fit(SequenceTagger("gru", 10, 4, 2), CopyMemory(5), steps=3)
    with pytest.raises(InputError, match=r"labels of shape \(1, 25\), but .* of shape \(1, 9\)"):
        fit(SequenceClassifier("gru", 10, 4, 9), CopyMemory(5), steps=3)
    with pytest.raises(InputError, match=r"of shape \(1,\), but .* shape \(1, 8, 10\)\. Try Seq"):
        fit(SequenceTagger("gru", 8, 4, 10), Digits(), steps=3)
    one_hot = F.one_hot(Y)
    with pytest.raises(InputError, match=r"or y\.argmax\(-1\) for one-hot labels"):
        fit(model(), (X, one_hot), steps=1)
    seldom = [Pair("a", "b", LABELS[int(n == 20)]) for n in range(30)]
    task = PairTask(seldom, seldom, seldom)
    with pytest.raises(InputError, match="from 0 to 0, .* got 1 in the batch of step"):
        fit(PairClassifier("gru", task.input_size, 4, 4, 1), task, steps=9, batch_size=10)


def test_a_rule_that_is_not_made_and_a_model_by_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"options of DMSGD by name.*DMSGD.pretrained\(\)\(model"):
        fit(model(), (X, Y), optimiser=DMSGD, steps=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected model to be a Module, but got the class Linear"):
        fit(nn.Linear, (X, Y), steps=1)  # type: ignore[arg-type]
