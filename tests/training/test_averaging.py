"""Averaged weights, other measures to judge by, and going on bit by bit with all of them."""

from typing import Any

import pytest
import torch
from torch import Generator, nn
from torch.optim import SGD

from attractor.errors import InputError
from attractor.models import LanguageModel
from attractor.optimisers import OPTIMISERS
from attractor.state import pack, unpack
from attractor.tasks import Digits, LanguageTask
from attractor.training import Plan, Supervised
from attractor.training.averaging import Average


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(64, 10)


def training(plan: Plan, lr: float = 0.5, model: nn.Module | None = None) -> Supervised:
    network = linear() if model is None else model
    sgd = SGD(network.parameters(), lr)
    return Supervised(network, Digits(order="flat"), sgd, plan, generator=seeded(1))


def weight(process: Supervised) -> torch.Tensor:
    model: Any = process.model
    found: torch.Tensor = model.weight.detach().clone()
    return found


def test_it_ends_with_the_mean_of_the_last_weights() -> None:
    plain, averaged = training(Plan(10, 8)), training(Plan(10, 8, average_after=7))
    seen = []
    while not plain.done:
        plain.advance()
        seen.append(weight(plain))
    while averaged.step < 9:
        averaged.advance()
    torch.testing.assert_close(weight(averaged), seen[8])  # training goes on from the last weights
    inside: list[torch.Tensor] = []
    with averaged.average.used():
        inside.append(weight(averaged))
    torch.testing.assert_close(inside[0], torch.stack(seen[6:9]).mean(0))
    averaged.advance()
    torch.testing.assert_close(weight(averaged), torch.stack(seen[6:]).mean(0))


def test_what_is_judged_is_the_mean() -> None:
    process = training(Plan(6, 8, average_after=3, eval_every=6))
    rows: list[Any] = []
    while not process.done:
        rows = process.advance()
    assert rows[-1]["loss"] == pytest.approx(process.measure("valid")["loss"])


@pytest.mark.parametrize(
    ("values", "stale", "begins"),
    [
        ([3, 2, 1, 0.5, 0.4], 1, None),
        ([3, 2, 2.5, 2.6], 2, None),  # worse than the last two alone
        ([3, 2, 2.5, 2.6, 2.1], 2, 4),
        ([3, 1, 2, 2], 1, 3),
        ([3, 1, 2], 2, None),
    ],
)
def test_averaging_begins_when_it_is_worse_than_long_ago(
    values: list[float], stale: int, begins: int | None
) -> None:
    process = training(Plan(10, 8, average_when_stale=stale))
    found = None
    for place, value in enumerate(values):
        process._judge(value)
        if process.average.on and found is None:
            found = place
    assert found == begins


def test_the_best_may_be_told_by_another_measure() -> None:
    process = training(Plan(300, 8, eval_every=5, judge="accuracy", patience=2, keep_best=True))
    accuracies = []
    while not process.done:
        accuracies += [row["accuracy"] for row in process.advance() if row["split"] == "valid"]
    assert process.measure("valid")["accuracy"] == max(accuracies)
    assert len(accuracies) == accuracies.index(max(accuracies)) + 3
    with pytest.raises(InputError, match="measure to judge by"):
        training(Plan(5, judge="error"))
    with pytest.raises(InputError, match="expected judge='loss' beside stop_below"):
        Plan(5, judge="accuracy", stop_below=0.1)


OPTIONS: dict[str, dict[str, Any]] = {
    "adam": {"lr": 0.01},
    "amsgrad": {"lr": 0.01},
    "rmsprop": {"lr": 0.001, "momentum": 0.9},
    "sgd": {"lr": 3.0},
}


@pytest.mark.parametrize("after", [3, 9, 14])
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_language_model_goes_on_bit_by_bit(name: str, after: int) -> None:
    words = "to be or not to be that is the question whether it is nobler in the mind to suffer"
    texts: Any = dict.fromkeys(("train", "valid", "test"), words)

    def made() -> Supervised:
        torch.manual_seed(0)
        task = LanguageTask(texts, level="character", steps=6, streams=3)
        model = LanguageModel(
            "lstm",
            task.input_size,
            8,
            [9, 8],
            tied=True,
            weight_dropout=0.3,
            output_dropout=0.2,
            embedding_dropout=0.1,
            activity=1.0,
            slowness=1.0,
            generator=seeded(),
        )
        optimiser = OPTIMISERS[name](**OPTIONS[name])(model.parameters())
        plan = Plan(
            18,
            4,
            clip=0.5,
            clip_value=0.2,
            log_every=1,
            eval_every=3,
            judge="perplexity",
            patience=9,
            keep_best=name == "adam",
            average_when_stale=1,
            average_after=8 if name == "sgd" else None,
            schedule="cosine",
        )
        return Supervised(model, task, optimiser, plan, generator=seeded(2))

    whole = made()
    rows = []
    while not whole.done:
        rows.append(whole.advance())
    first = made()
    for _ in range(after):
        first.advance()
    state = unpack(*pack(first.state_dict()))
    second = made()
    second.load_state_dict(state)
    assert [second.advance() for _ in range(whole.step - after)] == rows[after:]
    for one, other in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    if name == "sgd":
        assert after < 8 or state["average"]["mean"] is not None


def test_an_average_that_has_not_begun_changes_nothing() -> None:
    model = linear()
    average = Average(model)
    average.update()
    before = model.weight.detach().clone()
    with average.used():
        assert torch.equal(model.weight, before)
    average.settle()
    assert torch.equal(model.weight, before)
