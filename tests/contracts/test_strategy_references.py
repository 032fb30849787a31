"""Every strategy of the table against a second implementation in plain NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attractor.continual import STRATEGIES, Strategy
from attractor.continual.columns import Columns
from attractor.models import MLP
from attractor.tasks import ArrayTask, Data
from attractor.tasks import Batch as Some
from attractor.tasks.streams import Stream
from reference.perceptron import Batch, Perceptron
from reference.result import Array
from reference.strategies import REFERENCES

SIZES, CLASSES, TASKS, UPDATES, RATE = [5, 7, 6, 3], 3, 4, 6, 0.3
COUNTS = [5, 8, 6, 7]
"""Samples in a batch of each task."""

CASES: list[tuple[str, dict[str, Any]]] = [
    ("agem", {"per_class": 2, "reference_batch": 500}),
    ("der", {"size": 200, "alpha": 0.7, "replay": 200}),
    ("derpp", {"size": 200, "alpha": 0.7, "beta": 0.4, "replay": 200}),
    ("er", {"size": 9, "replay": 9, "balanced": False}),
    ("er", {"size": 9, "replay": 9, "balanced": True}),
    ("er", {"size": 37, "replay": 37, "balanced": True}),  # more than task 1 has
    ("er_ace", {"size": 200, "replay": 200}),
    ("ewc", {"strength": 4.0, "samples": None, "decay": 1.0}),
    ("ewc", {"strength": 4.0, "samples": None, "decay": 0.6}),
    ("ewc", {"strength": 4.0, "samples": None, "decay": 0.6, "merge": False}),
    ("freeze", {"after": 2}),
    ("gdumb", {"size": 200, "epochs": 7, "batch_size": 200, "lr": 0.4}),
    ("gem", {"size": 9, "margin": 0.0}),
    ("gem", {"size": 37, "margin": 0.4}),
    ("hat", {"strength": 0.9, "sharpness": 30.0}),
    ("icarl", {"size": 20, "replay": 200}),
    ("joint", {"balanced": True}),
    ("joint", {"balanced": False}),
    ("lwf", {"strength": 0.6, "temperature": 3.0}),
    ("mas", {"strength": 0.3, "samples": None}),
    ("metasgd_cl", {"kappa": 0.2, "initial": 0.15, "meta_lr": 0.03, "size": 9, "replay": 9}),
    ("metasgd_cl", {"kappa": 0.2, "initial": 0.15, "meta_lr": 0.03, "size": 37, "replay": 37}),
    ("naive", {}),
    ("online_ewc", {"strength": 4.0, "samples": None, "decay": 0.6}),
    ("progressive", {}),
    ("si", {"strength": 0.4, "damping": 0.05}),
    ("slda", {"shrinkage": 0.02}),
    ("stable", {"gamma": 0.5, "least": 0.05}),
]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stream() -> Stream:
    """Tasks that contradict one another here and there, with inputs of several scales."""
    tasks = []
    for place, count in enumerate(COUNTS):
        g = seeded(place)
        x = torch.randn(UPDATES * count, SIZES[0], generator=g, dtype=torch.float64)
        x = x * torch.tensor([3.0, 1.0, 0.3, 2.0, 1.0])
        y = (x @ torch.randn(SIZES[0], CLASSES, generator=g, dtype=torch.float64)).argmax(1)
        data = Data(x, y)
        tasks.append(ArrayTask(f"task {place}", place, data, data, tuple(range(CLASSES))))
    return Stream("contradictions", tasks, identity=True)


def network() -> MLP:
    return MLP(SIZES, activation="tanh", generator=seeded(9), dtype=torch.float64)


def flat(model: torch.nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def learnt(strategy: Strategy) -> tuple[Array, list[list[Array]]]:
    """The weights at the end; the embeddings of masks, or columns, if any, at the beginning."""
    tasks, body = stream(), network()
    model: Any = strategy.start(body, tasks, generator=seeded(5))
    embeddings = []
    if isinstance(model, Columns):
        embeddings = [[flat(one).numpy()] for one in model.columns]
    elif model is not body:
        embeddings = [[e.detach().numpy().copy() for e in some] for some in model.embeddings]
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    for task, count in zip(tasks, COUNTS, strict=True):
        strategy.start_task(model, task, optimiser, UPDATES)
        for update in range(UPDATES):
            batch = task.samples(torch.arange(update * count, (update + 1) * count))
            optimiser.zero_grad()
            strategy.loss(model, batch).backward()  # type: ignore[no-untyped-call]
            strategy.observe(batch)
            strategy.after_backward(model)
            strategy.step(model, optimiser)
        strategy.end_task(model, task)
    return flat(model if isinstance(model, Columns) else body).numpy(), embeddings


def batches() -> list[list[Batch]]:
    found: list[list[Batch]] = []
    for task, count in zip(stream(), COUNTS, strict=True):
        pairs = list(zip(task.train.x.numpy(), task.train.y.tolist(), strict=True))
        found.append([pairs[i * count : (i + 1) * count] for i in range(UPDATES)])
    return found


def test_every_strategy_has_a_reference_and_a_case() -> None:
    assert sorted(REFERENCES) == sorted(STRATEGIES)
    assert {name for name, _ in CASES} == set(STRATEGIES)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_it_does_what_its_reference_does(name: str, settings: dict[str, Any]) -> None:
    found, embeddings = learnt(STRATEGIES[name](**settings))
    given = dict(settings)
    if name == "progressive":
        given["columns"] = [column for (column,) in embeddings]
    elif embeddings:
        given["embeddings"] = embeddings
    if name == "joint":
        g = seeded(5)  # which the strategy draws from
        given["draw"] = lambda u, n: torch.randint(COUNTS[u] * UPDATES, (n,), generator=g).tolist()
    begin = flat(network()).numpy()
    expected = REFERENCES[name](Perceptron(SIZES), begin, batches(), RATE, **given)
    assert float(np.abs(expected[: len(begin)] - begin).max()) > 0.1  # something was learnt
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_the_cases_tell_the_strategies_apart() -> None:
    ends = [learnt(STRATEGIES[name](**settings))[0] for name, settings in CASES]
    for place, one in enumerate(ends):
        for earlier, other in enumerate(ends[:place]):
            same = CASES[place][1] | {"merge": True} == CASES[earlier][1] | {"merge": True}
            if CASES[place][0] != CASES[earlier][0] or not same:
                least = min(len(one), len(other))  # columns have more weights
                far = float(np.abs(one[:least] - other[:least]).max())
                assert far > 1e-3 or len(one) != len(other), (CASES[place], CASES[earlier])


def test_gradients_meet_in_every_way_that_gem_tells_apart() -> None:
    """Some updates hurt one task while the mean over tasks is not hurt."""
    net, tasks, theta = Perceptron(SIZES), batches(), flat(network()).numpy()
    mixed = 0
    for place, some in enumerate(tasks):
        old = [[sample for batch in earlier for sample in batch][:9] for earlier in tasks[:place]]
        for batch in some:
            g = net.mean(theta, batch)
            overlaps = np.array([net.mean(theta, memory) @ g for memory in old])
            mixed += bool(len(overlaps) and overlaps.min() < 0 < overlaps.mean())
            theta = theta - RATE * g
    assert mixed >= 3


def test_a_batch_of_mixed_tasks_is_filed_under_the_task_of_each() -> None:
    tasks = stream()
    mixed = Some(
        torch.cat([task.train.x[:4] for task in tasks[:2]]),
        torch.cat([task.train.y[:4] for task in tasks[:2]]),
        task=torch.tensor([0, 1, 0, 1, 1, 0, 1, 1]),
    )
    for name in ("er", "gem", "metasgd_cl"):
        strategy: Any = STRATEGIES[name](size=10)
        strategy.start(network(), tasks, generator=seeded())
        strategy.observe(mixed)
        for task in (0, 1):
            kept = strategy.episodes.all_of([task])
            assert torch.equal(kept.x, mixed.x[mixed.task == task]), name
            assert (kept.places == task).all()
