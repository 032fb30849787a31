"""Samplers: epochs without replacement, and going on bit by bit after a stop."""

import pytest
import torch
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks import ArrayTask, Batch, Data, Drawn, Shuffled

N = 7


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def shuffled(batch_size: int, seed: int = 0, samples: int = N) -> Shuffled:
    x = torch.arange(float(samples)).reshape(samples, 1, 1).repeat(1, 3, 2)
    data = Data(x, torch.arange(samples))
    task = ArrayTask("numbers", 0, data, data, tuple(range(samples)))
    return Shuffled(task, batch_size, generator=seeded(seed))


class Noise:
    """The simplest task that draws."""

    def draw(self, batch_size: int, *, generator: Generator) -> Batch:
        x = torch.randn(batch_size, 2, 3, generator=generator)
        return Batch(x, torch.zeros(batch_size, dtype=torch.long))


def answers(sampler: Shuffled, batches: int) -> Tensor:
    return torch.cat([sampler.draw().y for _ in range(batches)])


@pytest.mark.parametrize("batch_size", [1, 2, 3, N, 2 * N + 1])
def test_each_epoch_holds_every_sample_once(batch_size: int) -> None:
    seen = answers(shuffled(batch_size), 2 * N)
    epochs = seen.reshape(-1, N)
    assert len(epochs) == 2 * batch_size
    for epoch in epochs:
        assert epoch.sort().values.tolist() == list(range(N))


def test_epochs_differ_in_order() -> None:
    first, second = answers(shuffled(1, samples=50), 100).reshape(2, 50)
    assert not torch.equal(first, second)


def test_inputs_go_with_their_answers_and_samples_come_first() -> None:
    batch = shuffled(4).draw()
    assert batch.x.shape == (4, 3, 2)
    assert torch.equal(batch.x[:, 0, 0], batch.y.float())


@pytest.mark.parametrize("before", range(6))
def test_a_shuffled_sampler_goes_on_where_another_was(before: int) -> None:
    one, other = shuffled(3, seed=0), shuffled(3, seed=1)
    answers(one, before + 1)
    answers(other, 4)
    other.load_state_dict(one.state_dict())
    assert torch.equal(answers(one, 9), answers(other, 9))


def test_a_saved_state_does_not_move_with_the_sampler() -> None:
    sampler = shuffled(3)
    state = sampler.state_dict()
    expected = answers(sampler, 5)
    sampler.load_state_dict(state)
    assert torch.equal(answers(sampler, 5), expected)
    sampler.load_state_dict(state)
    assert torch.equal(answers(sampler, 5), expected)


def test_a_drawing_sampler_goes_on_where_another_was() -> None:
    one, other = Drawn(Noise(), 4, seeded(0)), Drawn(Noise(), 4, seeded(1))
    one.draw()
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.draw().x, other.draw().x)


def test_the_state_of_another_kind_of_sampler_is_refused() -> None:
    with pytest.raises(InputError, match=r"with generator, order, position, but got generator\."):
        shuffled(3).load_state_dict(Drawn(Noise(), 4, seeded()).state_dict())
    with pytest.raises(InputError, match="with generator, but got nothing"):
        Drawn(Noise(), 4, seeded()).load_state_dict({})


def test_the_state_of_another_data_set_is_refused() -> None:
    larger = shuffled(3, samples=8)
    answers(larger, 6)  # into the second epoch, so that some of an order is left
    with pytest.raises(InputError, match=r"the 7 samples of 'numbers', but the state names"):
        shuffled(3).load_state_dict(larger.state_dict() | {"order": torch.tensor([7])})


def test_a_damaged_position_is_refused() -> None:
    sampler = shuffled(3)
    state = sampler.state_dict() | {"position": torch.tensor(N + 1)}
    with pytest.raises(InputError, match="a multiple of the batch size 3, but the state holds 8"):
        sampler.load_state_dict(state)


def test_an_impossible_batch_size_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size to be at least 1, but got 0"):
        shuffled(0)
    with pytest.raises(InputError, match="batch_size to be at least 1, but got -1"):
        Drawn(Noise(), -1, seeded())


def test_inputs_without_answers_are_refused() -> None:
    with pytest.raises(InputError, match="got 3 inputs and 2 answers"):
        ArrayTask("torn", 0, data := Data(torch.zeros(3, 1), torch.zeros(2)), data, (0,))


def test_batches_are_where_they_are_asked_for() -> None:
    data = Data(torch.zeros(N, 3, 2), torch.arange(N))
    task = ArrayTask("numbers", 0, data, data, tuple(range(N)))
    for device in (None, "meta"):
        batch = Shuffled(task, 3, generator=seeded(), device=device).draw()
        assert {batch.x.device.type, batch.y.device.type} == {device or "cpu"}
