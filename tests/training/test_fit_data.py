"""What fit makes of data of every kind, and what it refuses, in a sentence each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from attractor.errors import InputError
from attractor.models import MLP, SequenceClassifier, SequenceTagger
from attractor.tasks import IGNORE
from attractor.tasks.datasets import DatasetTask
from attractor.training import fit
from attractor.training.data import as_task

X = 3 * torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()
FLOATS = 2 * X[:, :1] - 1


class Counting(Dataset[Any]):
    """Samples by number, which counts how many are read."""

    def __init__(self, y: Tensor) -> None:
        self.y, self.read = y, 0

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, n: int) -> Any:
        self.read += 1
        return X[n], self.y[n]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return ((X[n % 60], Y[n % 60]) for n in range(10**6))


class Sizes(nn.Module):
    """Notes the sizes of batches in training."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.sizes = nn.Linear(4, 2), []  # type: ignore[var-annotated]

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.sizes.append(len(x))
        answer: Tensor = self.layer(x)
        return answer


def model(outputs: int = 2) -> nn.Module:
    return MLP([4, 8, outputs], generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "data",
    [
        TensorDataset(X, FLOATS),
        DataLoader(TensorDataset(X, FLOATS), batch_size=7),
        Counting(FLOATS),
        [X, FLOATS],
    ],
    ids=["tensors", "loader", "data set", "list"],
)
def test_numbers_are_fitted_by_least_squares_from_any_data(data: Any) -> None:
    fitted = fit(model(1), data, valid=data, steps=20)
    expected = F.mse_loss(fitted.model(X), FLOATS).item()
    assert fitted.valid == {"loss": pytest.approx(expected, rel=1e-4)}


def test_answers_that_would_be_broadcast_are_refused() -> None:
    message = r"answers of the shape \(1,\) that the right ones have, but the model gives \(1, 1\)"
    for loss in (None, F.l1_loss):
        with pytest.raises(InputError, match=message):
            fit(model(1), (X, FLOATS[:, 0]), loss=loss, steps=1)


def test_data_without_numbers_come_in_batches_of_the_size_that_is_asked_for() -> None:
    network = Sizes()
    fit(network, Endless(), steps=3, batch_size=5)
    assert network.sizes == [5, 5, 5]
    with pytest.raises(InputError, match="batch_size to be at least 1, but got 0"):
        fit(network, Endless(), steps=3, batch_size=0)
    with pytest.raises(InputError, match=r"no batch_size beside a DataLoader, .* but got 5"):
        fit(network, DataLoader(Endless(), batch_size=3), steps=1, batch_size=5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_array_on_disk_stays_there_and_batches_are_converted(kind: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.numpy().astype(kind))
    np.save(tmp_path / "y.npy", Y.numpy().astype(np.int32))
    x, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    task = as_task((x, y))
    assert isinstance(task, DatasetTask)
    held: Any = task.train
    assert [one.data_ptr() for one in held.tensors] == [x.ctypes.data, y.ctypes.data]
    batch = task.batches(3, generator=torch.Generator()).draw()
    assert (batch.x.dtype, batch.y.dtype) == (torch.float32, torch.int64)
    expected = fit(model(), (X, Y), steps=5).model(X)
    assert torch.equal(fit(model(), (x, y), steps=5).model(X), expected)


def test_large_samples_are_read_batch_by_batch_and_in_the_same_order() -> None:
    wide = torch.arange(30.0)[:, None].expand(30, 2**14).contiguous()
    large, small = (
        DatasetTask(TensorDataset(x, torch.arange(30))) for x in (wide, wide[:, :9].contiguous())
    )
    assert (large.block, small.block) == (1, 64)
    one, other = (
        task.batches(4, generator=torch.Generator().manual_seed(1)) for task in (large, small)
    )
    for _ in range(20):
        assert torch.equal(one.draw().y, other.draw().y)


def test_no_more_is_read_than_is_learnt_from() -> None:
    data = Counting(Y)
    fit(model(), data, optimiser="mtl2l", steps=3, batch_size=4)
    assert data.read == 1 + 3 * 4


def test_a_loader_is_begun_once_to_see_it_and_once_an_epoch() -> None:
    begun = []

    class Begun(TensorDataset):
        def __getitems__(self, numbers: list[int]) -> Any:
            begun.extend([n for n in numbers if n == 0])
            return [(X[n], Y[n]) for n in numbers]

    loader = DataLoader(Begun(X, Y), batch_size=20)
    fit(model(), loader, optimiser="mtl2l", steps=4)
    assert len(begun) == 1 + 2


def test_training_and_validation_data_may_be_of_different_kinds() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=8)
    pairs: list[tuple[Any, Any]] = [
        (Counting(Y), (X.numpy(), Y.numpy())),
        (loader, Counting(Y)),
        (loader, (X, Y)),
        ((X, Y), Counting(Y)),
        ((X, Y), [X, Y]),
        (Endless(), (X, Y)),
    ]
    for data, valid in pairs:
        fitted = fit(model(), data, valid=valid, steps=2)
        found = float((fitted.model(X).argmax(1) == Y).double().mean())
        assert fitted.valid["accuracy"] == pytest.approx(found)
    with pytest.raises(InputError, match="valid data with numbers, .* got a DataLoader. Try valid"):
        fit(model(), (X, Y), valid=loader, steps=1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, r"data as \(x, y\), a Dataset or a DataLoader, but got NoneType. Try"),
        (((x, 1) for x in X), "a Dataset or a DataLoader, but got generator"),
        ({"x": X}, "a Dataset or a DataLoader, but got dict"),
        (DataLoader(TensorDataset(X[:3], Y[:3]), 4, drop_last=True), "the loader gives none"),
        ((X, ["yes", "no"] * 30), r"the answers of data as numbers, but got \['yes', 'no'"),
        ((X, np.array(["yes", "no"] * 30)), "the answers of data as numbers, .* Number classes"),
        ([(X[0], "yes"), (X[1], "no")], r"answers as numbers, but got \('yes',\)"),
        ((X, Y + 1), "labels from 0 to 1, one for each of the 2 outputs .* but got 2. Widen"),
        ((X, Y - 1), "labels from 0 to 1, .* but got -1"),
        ((X[:, :3], Y), r"inputs of shape \(1, 3\) and answers of shape \(1,\), but it says: mat1"),
        (DataLoader(TensorDataset(X, Y + 5), 8), "labels from 0 to 1, .* but got [56]"),
        ((X, 0 * Y + 1), "samples of at least two classes, but all are of the class 1: with one"),
        (TensorDataset(X, 0 * Y), "at least two classes, but all are of the class 0"),
    ],
)
def test_bad_data(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(model(), data, steps=1)


def test_one_class_is_no_mistake_where_another_loss_judges() -> None:
    fitted = fit(model(), (X, 0 * Y), loss=lambda said, y: said.square().mean(), steps=50)
    assert fitted.model(X).abs().mean() < model()(X).abs().mean()


def test_labels_that_do_not_count_are_no_class() -> None:
    y = torch.where(X[:, 0] > 0, 1, IGNORE)
    with pytest.raises(InputError, match="all are of the class 1"):
        fit(model(), (X, y), steps=1)
    fit(model(), (X, torch.where(X[:, 1] > 0, y, 0)), steps=1)


def test_labels_of_validation_data_are_looked_at_too() -> None:
    for y, said in (
        (Y + 5, "labels from 0 to 1, .* but got [56] in valid"),
        (Y - 5, "labels from 0 to 1, .* but got -[45] in valid"),
        (Y.float(), r"whole numbers as labels, .* got torch.float32 in valid\. Try y\.long\(\)"),
        (torch.full_like(Y, IGNORE), "but all in valid are -100, which says that nothing is asked"),
    ):
        with pytest.raises(InputError, match=said):
            fit(model(), (X, Y), valid=(X, y), steps=1)
        if not y.is_floating_point():
            continue
        loader = DataLoader(TensorDataset(X, y), 8)
        with pytest.raises(InputError, match="got torch.float32 in a batch that is held out"):
            fit(model(), DataLoader(TensorDataset(X, Y), 8), valid=loader, steps=1)


def test_labels_in_data_that_are_read_bit_by_bit_are_told_when_met() -> None:
    late = Y.clone()
    late[50] = 9
    where = r"labels from 0 to 1, .* but got 9 in the batch of step [1-3]\. Widen"
    with pytest.raises(InputError, match=where):
        fit(model(), Counting(late), steps=9, batch_size=20)
    with pytest.raises(InputError, match="but got 9 in the batch of step 3"):
        fit(model(), DataLoader(TensorDataset(X, late), 20), steps=9)
    late[40:] = IGNORE
    with pytest.raises(InputError, match="all in the batch of step 3 are -100"):
        fit(model(), DataLoader(TensorDataset(X, late), 20), steps=9)


def test_data_in_which_nothing_is_asked_are_refused() -> None:
    with pytest.raises(InputError, match="labels that count, but all are -100, which says"):
        fit(model(), (X, torch.full_like(Y, IGNORE)), steps=1)


def test_a_loss_that_fails_for_another_reason_says_so_itself() -> None:
    class Fails(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                raise RuntimeError("something else")
            return super().forward(x)

    with pytest.raises(RuntimeError, match="something else"):
        fit(Fails(X.shape[1], 2), (X, Y), steps=1)


def with_nan(x: Tensor, *place: int) -> Tensor:
    x = x.clone()
    x[place] = torch.nan
    return x


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((with_nan(X, 7, 2), Y), r"the inputs of data, but sample 7 has NaN at \[2\]. Fill in"),
        ((X, with_nan(FLOATS, 3, 0)), r"the answers of data, but sample 3 has NaN at \[0\]"),
        ((X / 0, Y), r"the inputs of data, but sample 0 has -?inf at \[0\]"),
        (TensorDataset(X, with_nan(FLOATS, 9, 0)), "tensor 1 of data, but sample 9 has NaN"),
    ],
    ids=["inputs", "answers", "infinity", "tensors"],
)
def test_what_is_missing_is_told_before_training(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"expected finite numbers in {message}"):
        fit(model(1 if data[1][0].is_floating_point() else 2), data, steps=1)


def test_what_is_missing_is_found_beyond_what_is_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attractor.training.finite.AT_ONCE", 9)
    with pytest.raises(InputError, match=r"valid, but sample 41 has NaN at \[3\]"):
        fit(model(), (X, Y), valid=(with_nan(X, 41, 3), Y), steps=1)


def test_what_is_missing_in_data_that_are_read_bit_by_bit_is_told_when_met(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", with_nan(X, 50, 1).numpy())
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    loader = DataLoader(TensorDataset(with_nan(X, 50, 1), Y), batch_size=20)
    where = r"the inputs of the batch of step [1-3], but sample \d+ has NaN at \[1\]"
    with pytest.raises(InputError, match=where):
        fit(model(), (x, Y), steps=9, batch_size=20)
    where = r"the inputs of the batch of step 3, but sample 10 has NaN at \[1\]"
    with pytest.raises(InputError, match=where):
        fit(model(), loader, steps=9)


def test_fewer_samples_than_a_batch_are_refused_as_by_estimators() -> None:
    network = Sizes()
    message = "at least batch_size=64 samples to train on, but got 20. Try batch_size=20"
    for data in ((X[:20], Y[:20]), TensorDataset(X[:20], Y[:20])):
        with pytest.raises(InputError, match=message):
            fit(network, data, steps=1, batch_size=64)
    with pytest.raises(InputError, match="at least batch_size=21 samples"):
        fit(model(1), (X[:20], FLOATS[:20]), steps=1, batch_size=21)
    fit(network, (X[:20], Y[:20]), steps=2)  # all there are
    fit(network, (X[:20], Y[:20]), steps=1, batch_size=20)
    fit(network, (X, Y), steps=1)
    assert network.sizes == [20, 20, 20, 32]


def test_bad_validation_data() -> None:
    with pytest.raises(InputError, match=r"valid as \(x, y\), a Dataset .* but got int"):
        fit(model(), (X, Y), valid=3, steps=1)


def test_a_loader_that_runs_dry_is_refused() -> None:
    class Once(IterableDataset[Any]):
        left = iter([*zip(X, Y, strict=True)])

        def __iter__(self) -> Iterator[Any]:
            return self.left

    with pytest.raises(InputError, match="gone through again and again, but it gives nothing"):
        fit(model(), Once(), steps=5, batch_size=30)


def test_bad_optimisers() -> None:
    network = model()
    built = torch.optim.SGD(network.parameters(), 0.1)
    with pytest.raises(InputError, match="what makes one from parameters, but got SGD itself"):
        fit(network, (X, Y), optimiser=built, steps=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="but got NoneType itself. Try partial"):
        fit(network, (X, Y), optimiser=None, steps=1)  # type: ignore[arg-type]


def test_a_model_of_which_nothing_may_change_is_refused() -> None:
    for frozen in (model().requires_grad_(False), nn.Flatten()):
        with pytest.raises(InputError, match="to have weights to train, but it has none"):
            fit(frozen, (X, Y), steps=1)


@pytest.mark.parametrize("option", ["patience", "keep_best", "stop_below", "eval_every"])
def test_what_needs_validation_data_is_refused_without(option: str) -> None:
    given: dict[str, Any] = {option: True if option == "keep_best" else 2}
    with pytest.raises(InputError, match=f"validation data for {option}=.*, but there are none"):
        fit(model(), (X, Y), steps=1, **given)


def test_a_check_leaves_the_model_as_it_is() -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)).train()
    seen = fit(network, (X, Y), steps=3, batch_size=6).model[1].num_batches_tracked  # type: ignore[index]
    assert seen == 3
    assert network.training


def test_the_last_measures_are_taken_as_those_on_the_way() -> None:
    plan: dict[str, Any] = {"eval_batches": 1, "eval_batch_size": 7, "autocast": "bfloat16"}
    fitted = fit(model(), (X, Y), valid=(X, Y), steps=4, eval_every=4, **plan)
    assert {"step": 4, "split": "valid", **fitted.valid} == fitted.rows[-1]


def test_lengths_beyond_the_end_are_told_before_training() -> None:
    data = TensorDataset(torch.randn(20, 6, 2), torch.arange(20) % 2, torch.full((20,), 9))
    with pytest.raises(InputError, match="lengths from 1 to 6, the steps of x, but got 9 to 9"):
        fit(SequenceClassifier("lstm", 2, 4, 2), data, steps=20, batch_size=10)


def test_a_list_of_sequences_of_several_lengths_is_padded() -> None:
    samples = [(torch.randn(3 + i % 2, 2), i % 2) for i in range(20)]
    network = SequenceClassifier("lstm", 2, 4, 2)
    fitted = fit(network, samples, valid=samples, steps=2)
    alone = [F.cross_entropy(network(x[None]), torch.tensor([y])).item() for x, y in samples]
    assert fitted.valid["loss"] == pytest.approx(np.mean(alone), rel=1e-5)


def test_answers_at_each_step_of_several_lengths_are_padded_too() -> None:
    samples = [(np.random.randn(3 + i % 2, 2), np.arange(3 + i % 2) % 2) for i in range(20)]
    task = as_task(samples)
    batch = task.batches(20, generator=torch.Generator()).draw()
    assert batch.x.shape == (20, 4, 2)
    assert batch.x.dtype == torch.float32
    assert sorted(batch.y[:, 3].tolist()) == [IGNORE] * 10 + [1] * 10
    fit(SequenceTagger("gru", 2, 4, 2), samples, steps=2)


def test_sequences_of_several_features_or_of_none_are_refused() -> None:
    message = r"the same features each in data, but got \(3, 1\) and \(3, 2\)\. Try"
    with pytest.raises(InputError, match=message):
        fit(model(2), [(torch.zeros(3, 1 + i % 2), i % 2) for i in range(4)], steps=1)
    with pytest.raises(InputError, match=r"at least one step .* but got \(0, 2\) and \(1, 2\)"):
        fit(model(2), [(torch.zeros(i % 2, 2), i % 2) for i in range(4)], steps=1)
    with pytest.raises(InputError, match=r"one for each of its steps, but got \(1,\) for 3 steps"):
        fit(model(2), [(torch.zeros(3 + i, 2), torch.zeros(1 + i)) for i in range(4)], steps=1)


def test_a_data_set_of_several_lengths_is_refused_in_words() -> None:
    class Uneven(Dataset[Any]):
        def __len__(self) -> int:
            return 20

        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            return torch.zeros(3 + index % 2, 2), index % 2

    message = r"samples that make one batch, but: stack expects.*\. Try a list of .* collate_fn"
    with pytest.raises(InputError, match=message):
        fit(SequenceClassifier("lstm", 2, 4, 2), Uneven(), steps=2)
