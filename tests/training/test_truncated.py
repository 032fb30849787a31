"""Truncated backpropagation through time: the state goes on, the gradient does not."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import SGD

from attractor.cells import Recurrent
from attractor.state import pack, unpack
from attractor.tasks import Batch, Sampler, Split, Task
from attractor.training import Plan, Supervised, evaluate
from attractor.training.carried import Carried


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


class Text(Sampler):
    """Two texts, three steps at a time; a new one begins after nine."""

    def __init__(self, x: Tensor) -> None:
        self.x, self.place = x, 0

    def draw(self) -> Batch:
        self.place = 0 if self.place == self.x.shape[1] else self.place
        continues = self.place > 0
        piece = self.x[:, self.place : self.place + 3]
        self.place += 3
        return Batch(piece, (piece.sum(2) > 0).long(), continues=continues)

    def state_dict(self) -> dict[str, Tensor]:
        return {"place": torch.tensor(self.place)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.place = int(state["place"])


class Reading(Task):
    reference = "none"
    input_size, output_size, answers = 2, 2, "each step"

    def __init__(self) -> None:
        self.x = torch.randn(2, 9, 2, generator=seeded(3))

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return Text(self.x)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        text = Text(self.x)
        return (text.draw() for _ in range(3))


class Reader(nn.Module):
    carries_state = True

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = Recurrent("lstm", 2, 4, batch_first=True, generator=seeded(4))
        self.readout = nn.Linear(4, 2)

    def initial_state(self, batch_size: int) -> Any:
        zeros = torch.zeros(1, batch_size, 4)
        return self.recurrent(torch.zeros(batch_size, 1, 2))[1]._make((zeros, zeros))

    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        output, state = self.recurrent(x, state)
        return self.readout(output), state


def reader() -> Reader:
    torch.manual_seed(0)
    return Reader()


def test_a_state_is_carried_and_the_gradient_is_not() -> None:
    network, text = reader(), Reading()
    training = Supervised(
        network, text, SGD(network.parameters(), 0.0), Plan(4, 2, log_every=1), generator=seeded()
    )
    losses = [training.advance()[0]["loss"] for _ in range(4)]
    whole, _ = network(text.x, network.initial_state(2))
    y = (text.x.sum(2) > 0).long()
    for piece in range(3):
        some = slice(3 * piece, 3 * piece + 3)
        expected = F.cross_entropy(whole[:, some].flatten(0, 1), y[:, some].flatten())
        assert losses[piece] == pytest.approx(expected.item())
    assert losses[3] == losses[0]  # a new text begins
    leaves = training.state_dict()["carried"]
    assert all(not leaf.requires_grad for leaf in leaves)


def test_a_carried_state_is_saved_and_taken_up() -> None:
    def made() -> Supervised:
        network = reader()
        sgd = SGD(network.parameters(), 0.5)
        return Supervised(network, Reading(), sgd, Plan(8, 2, log_every=1), generator=seeded())

    one, other = made(), made()
    for _ in range(2):
        one.advance()
    other.load_state_dict(unpack(*pack(one.state_dict())))
    for _ in range(4):
        assert one.advance() == other.advance()


def test_evaluation_carries_a_state_of_its_own() -> None:
    network, text = reader(), Reading()
    whole, _ = network(text.x, network.initial_state(2))
    y = (text.x.sum(2) > 0).long()
    found = evaluate(network, text, "test", 2)
    expected = F.cross_entropy(whole.flatten(0, 1), y.flatten())
    assert found["loss"] == pytest.approx(expected.item())
    assert found["accuracy"] == float((whole.argmax(-1) == y).double().mean())


def test_a_carrier_that_is_reset_begins_anew() -> None:
    network = reader()
    carried, x = Carried(network), torch.randn(2, 3, 2, generator=seeded())
    first = carried(x)
    assert not torch.equal(carried(x), first)
    carried.reset()
    assert torch.equal(carried(x), first)
