"""Another loss: what a judge is given, with ragged sequences and with weights."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, Digits, Judged, LoaderTask, Penalised
from attractor.tasks.answers import asked
from attractor.tasks.streams import Stream


def judged(judge: Any = F.mse_loss) -> Judged:
    return Judged(Digits(order="flat"), judge)


class Twice(nn.Module):
    """Answers each step with twice the input, packed or not."""

    def forward(self, x: Any) -> Any:
        return x._replace(data=2 * x.data) if hasattr(x, "batch_sizes") else 2 * x


def drawn(*shape: int) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def test_steps_beyond_the_end_are_not_judged() -> None:
    x, y, lengths = drawn(3, 5, 2), drawn(3, 5, 2).flip(1), torch.tensor([2, 5, 1])
    batch = Batch(x, y, lengths)
    steps = [((2 * x[i, t] - y[i, t]) ** 2).mean() for i in range(3) for t in range(lengths[i])]
    expected = torch.stack(steps).mean().item()
    assert judged().loss(Twice(), batch).item() == pytest.approx(expected)
    value, count = judged().measure(Twice(), batch)["loss"]
    assert count == 8
    assert value / count == pytest.approx(expected)


def test_samples_weigh_what_they_are_given() -> None:
    x, y = drawn(3, 2), drawn(3, 2).flip(0)
    weight = torch.tensor([0.5, 0.2, 0.9])
    each = ((2 * x - y) ** 2).mean(1)
    loss = judged().loss(Twice(), Batch(x, y, weight=weight))
    assert loss.item() == pytest.approx(float(each @ weight))
    value, count = judged().measure(Twice(), Batch(x, y, weight=weight))["loss"]
    assert value / count == pytest.approx(each.mean().item())


def test_weights_and_ends_go_together() -> None:
    x, y, lengths = drawn(2, 4, 1), drawn(2, 4, 1).flip(1), torch.tensor([3, 1])
    weight = torch.tensor([0.3, 2.0])
    each = [F.l1_loss(2 * x[i, :n], y[i, :n]) for i, n in enumerate(lengths)]
    loss = judged(F.l1_loss).loss(Twice(), Batch(x, y, lengths, weight=weight))
    assert loss.item() == pytest.approx(float(torch.stack(each) @ weight))


def test_one_answer_to_a_ragged_sequence_is_judged_whole() -> None:
    class Ends(nn.Module):
        def forward(self, x: Any) -> Tensor:
            return torch.ones(3, 2)

    y = drawn(3, 2)
    batch = Batch(drawn(3, 5, 2), y, torch.tensor([1, 5, 1]))
    assert judged().loss(Ends(), batch).item() == pytest.approx(F.mse_loss(torch.ones(3, 2), y))
    classes = Batch(batch.x, torch.tensor([0, 1, 1]), batch.lengths)
    total, count = judged(F.cross_entropy).measure(Ends(), classes)["loss"]
    assert total == pytest.approx(3 * math.log(2))
    assert count == 3


def test_shapes_that_differ_are_refused_for_numbers_alone() -> None:
    with pytest.raises(InputError, match=r"shape \(4,\) .* gives \(4, 1\). Try y.reshape\(n, 1\)"):
        judged().loss(nn.Identity(), Batch(torch.ones(4, 1), torch.ones(4)))
    batch = Batch(torch.eye(4), torch.arange(4))
    assert judged(F.cross_entropy).loss(nn.Identity(), batch) > 0


def test_a_stream_of_tasks_without_numbers_is_refused() -> None:
    data = TensorDataset(torch.ones(4, 2), torch.zeros(4, dtype=torch.long))
    with pytest.raises(InputError, match=r"samples have numbers .* got a LoaderTask. Try ArrayT"):
        Stream("loaded", [LoaderTask(DataLoader(data))])  # type: ignore[list-item]


def test_beyond_the_end_no_number_of_a_vector_is_asked() -> None:
    batch = Batch(drawn(2, 3, 1), torch.ones(2, 3, 4), torch.tensor([1, 3]))
    beyond = asked(batch) == IGNORE
    assert beyond.all(-1).tolist() == [[False, True, True], [False, False, False]]
    assert beyond.any(-1).equal(beyond.all(-1))


class Priced(Twice):
    """Answers likewise, for a price."""

    def forward(self, x: Any) -> Any:
        return Penalised(super().forward(x), torch.tensor(7.0))


@pytest.mark.parametrize("weight", [None, torch.tensor([0.5, 0.2, 0.9])])
def test_what_a_model_charges_is_on_top_of_a_loss_of_ones_own(weight: Tensor | None) -> None:
    batch = Batch(drawn(3, 2), drawn(3, 2).flip(0), weight=weight)
    free = judged().loss(Twice(), batch).item()
    assert judged().loss(Priced(), batch).item() == pytest.approx(free + 7)
