"""Memories keep samples as they are stored, and show them anew at each replay."""

import pytest
import torch
from torch import Generator, Tensor

from attractor.continual import AGEM, ER, GEM, Learner, MetaSGDCL, Strategy
from attractor.continual.replay.episodes import Episodes, MemoryKind
from attractor.models import MLP
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream, inject_noise


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def jitter(x: Tensor, generator: Generator) -> Tensor:
    return x + torch.rand(len(x), 1, generator=generator)


def bytes_of(*, noisy: bool = False) -> Stream:
    """Two tasks of bytes, which the second shows upside down."""
    tasks = []
    for place in (0, 1):
        x = torch.randint(256, (40, 4), generator=seeded(place), dtype=torch.uint8)
        data = Data(x, torch.arange(40) % 3)

        def read(x: Tensor, place: int = place) -> Tensor:
            return (x.flip(1) if place else x) / 255

        noise = jitter if noisy else None
        tasks.append(ArrayTask(f"bytes {place}", place, data, data, (0, 1, 2), read, noise))
    return Stream("bytes", tasks)


@pytest.mark.parametrize("kind", ["hard", "ring", "reservoir", "classes"])
def test_bytes_stay_bytes_and_are_read_as_their_task_reads_them(kind: MemoryKind) -> None:
    stream = bytes_of()
    episodes = Episodes(kind, 12, 2, generator=seeded(), stream=stream)
    for task in stream:
        episodes.add(task.samples(torch.arange(20)))
    assert episodes.memory.store.columns[0].dtype == torch.uint8
    kept = episodes.everything()
    for row in range(len(kept)):
        every = stream[int(kept.places[row])].samples(torch.arange(20))
        assert (every.x == kept.x[row]).all(1).any()
    assert len(torch.unique(kept.places)) == 2
    assert episodes.nbytes < 24 * (4 + 2 * 8) + 1


def test_noise_is_drawn_anew_at_each_replay_but_not_at_each_question() -> None:
    strategy = ER("hard", 6, replay=6)
    stream = bytes_of(noisy=True)
    model = strategy.start(MLP([4, 5, 3], generator=seeded()), stream, generator=seeded())
    strategy.observe(stream[0].samples(torch.arange(10), seeded()))
    batch = stream[1].samples(torch.arange(10), seeded())
    first, same = strategy.loss(model, batch), strategy.loss(model, batch)
    strategy.observe(batch)
    assert torch.equal(first, same)
    assert not torch.equal(strategy.loss(model, batch), first)
    assert strategy.episodes.memory.store.columns[0].dtype == torch.uint8


def read_by(task: ArrayTask, data: Data) -> Data:
    return data._replace(x=task.read(data.x))


@pytest.mark.parametrize("strategy", [ER(), ER("classes", 20), GEM(9), AGEM(4), MetaSGDCL()])
def test_strategies_learn_the_same_from_bytes_as_from_what_is_read(strategy: Strategy) -> None:
    raw = bytes_of()
    read = [
        ArrayTask(t.name, t.place, read_by(t, t.train), read_by(t, t.test), t.classes)
        for t in raw.arrays()
    ]
    ends = []
    for stream in (raw, Stream("read", read)):
        learner = Learner(MLP([4, 5, 3], generator=seeded()), stream, strategy, iterations=8)
        while not learner.done:
            learner.advance()
        ends.append(torch.cat([p.detach().flatten() for p in learner.model.parameters()]))
    assert torch.equal(*ends)


def test_noise_can_be_shared_by_a_batch_and_drawn_anew() -> None:
    data = Data(torch.arange(50.0).repeat(6, 1), torch.zeros(6, dtype=torch.long))
    stream = Stream("one", [ArrayTask("a", 0, data, data, (0,))])
    noisy = inject_noise(stream, 0.5, together=3, anew=True)
    batch = noisy[0].samples(torch.arange(6), seeded())
    assert torch.equal(batch.x[0], batch.x[2])
    assert torch.equal(batch.x[3], batch.x[5])
    assert not torch.equal(batch.x[0], batch.x[3])
    assert torch.equal(batch.x.sort(1).values, data.x)
    assert batch.raw is not None
    assert torch.equal(batch.raw, data.x)
    assert inject_noise(stream, 0.5)[0].samples(torch.arange(2), seeded()).raw is None
