"""Updates per second of continual learners: attractor, Avalanche and a plain PyTorch loop.

All learn the same stream, permuted MNIST with 1,000 training images a task, with the same network
(784-100-100-10), batches of 10, plain SGD and one thread, in one process and turn by turn. Twenty
updates are timed at once, in time of the processor, and the best of a task in all repeats counts;
what comes between tasks does not. Avalanche wants an environment of its own:

    python -m venv avalanche
    avalanche/bin/pip install avalanche-lib==0.6.0 quadprog -e . -c constraints.txt
    ATTRACTOR_DATA=... avalanche/bin/python benchmarks/continual.py

Without Avalanche the plain loop remains.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD

from attractor.continual import AGEM, ER, EWC, GEM, Learner, MetaSGDCL, Strategy, accuracy
from attractor.models import MLP
from attractor.tasks import Data
from attractor.tasks.streams import Stream, permuted_images

TASKS, SAMPLES, BATCH, MEMORIES, RATE = 10, 1000, 10, 250, 0.01
UPDATES = SAMPLES // BATCH
CHUNK = 20


@dataclass
class Run:
    """Updates per second in each task, and the mean accuracy at the end."""

    speeds: list[float]
    acc: float


class Clock:
    """Notes the time after each update."""

    def __init__(self) -> None:
        self.times: list[list[float]] = [[] for _ in range(TASKS)]

    def tick(self, task: int) -> None:
        self.times[task].append(time.process_time())

    def speeds(self) -> list[float]:
        """Updates per second in the fastest chunk of each task; the last update ends the task."""
        spans = [
            [ticks[end] - ticks[end - CHUNK] for end in range(CHUNK, UPDATES - 1)]
            for ticks in self.times
        ]
        return [CHUNK / min(some) for some in spans]


def stream(seed: int) -> Stream:
    """The tasks; data are read beforehand, so that nobody pays for permutations."""
    g = torch.Generator().manual_seed(seed)
    tasks = []
    for one in permuted_images(tasks=TASKS, generator=g).arrays():
        some = one.samples(torch.randperm(len(one.train.y), generator=g)[:SAMPLES])
        test = Data(one.test_samples.x, one.test_samples.y)
        tasks.append(replace(one, train=Data(some.x, some.y), test=test, read=lambda x: x))
    return Stream("benchmark", tasks)


def network(seed: int) -> MLP:
    g = torch.Generator().manual_seed(seed)
    return MLP([784, 100, 100, 10], init="xavier", generator=g)


def mean_accuracy(model: nn.Module, tasks: Stream) -> float:
    return sum(accuracy(model, task) for task in tasks) / len(tasks)


def attractor(strategy: Strategy | None, tasks: Stream, seed: int) -> Run:
    # accuracies are measured once at the end, not after each task
    still = replace(tasks, tasks=[replace(t, test=_first(t.test)) for t in tasks.arrays()])
    learner = Learner(network(seed), still, strategy, iterations=UPDATES, seed=seed)
    clock = Clock()
    while not learner.done:
        task = learner.task
        learner.advance()
        clock.tick(task)
    return Run(clock.speeds(), mean_accuracy(learner.model, tasks))


def _first(data: Data) -> Data:
    return Data(data.x[:10], data.y[:10])


def plain(tasks: Stream, seed: int) -> Run:
    """What one would write by hand: tensors in memory, an index for each batch."""
    model = network(seed)
    optimiser = SGD(model.parameters(), lr=RATE)
    g = torch.Generator().manual_seed(seed)
    clock = Clock()
    for task in tasks:
        x, y = task.train.x, task.train.y
        order = torch.randperm(len(y), generator=g)
        for index in order.split(BATCH):
            optimiser.zero_grad()
            F.cross_entropy(model(x[index]), y[index]).backward()
            optimiser.step()
            clock.tick(task.place)
    return Run(clock.speeds(), mean_accuracy(model, tasks))


def avalanche(method: "Method", tasks: Stream, seed: int) -> Run:
    from avalanche.benchmarks.scenarios.deprecated.generic_benchmark_creation import (
        create_generic_benchmark_from_tensor_lists,
    )
    from avalanche.core import SupervisedPlugin
    from avalanche.training.plugins import EvaluationPlugin
    from avalanche.training.templates import SupervisedTemplate

    class Ticking(SupervisedPlugin):  # type: ignore[misc]
        def after_training_iteration(self, *_: Any, **__: Any) -> None:
            clock.tick(place)

    torch.manual_seed(seed)
    clock, plugins = Clock(), method.theirs()
    model = network(seed)
    learner = SupervisedTemplate(
        model=model,
        optimizer=SGD(model.parameters(), lr=RATE),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        train_epochs=1,
        plugins=[*plugins, Ticking()],
        evaluator=EvaluationPlugin(loggers=[]),
    )
    tensors = [(task.train.x, task.train.y) for task in tasks]
    made = create_generic_benchmark_from_tensor_lists(
        tensors, tensors[:1], task_labels=[0] * len(tasks)
    )
    for place, experience in enumerate(made.train_stream):
        for plugin in plugins:
            method.before(plugin, place)
        learner.train(experience, num_workers=0)
    return Run(clock.speeds(), mean_accuracy(model, tasks))


@dataclass
class Method:
    """The same method twice; `before` sets a plugin of Avalanche's for a task."""

    name: str
    ours: Callable[[], Strategy | None]
    theirs: Callable[[], list[Any]]
    before: Callable[[Any, int], None] = lambda plugin, place: None


def plugin(name: str, **options: Any) -> Callable[[], list[Any]]:
    def made() -> list[Any]:
        import avalanche.training.plugins as plugins

        return [getattr(plugins, name)(**options)]

    return made


def of_each(plugin: Any, place: int) -> None:
    plugin.batch_size_mem = BATCH * max(place, 1)


def replay() -> list[Any]:
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.storage_policy import ExperienceBalancedBuffer

    # as many memories of each task from the first on, and not the whole of the first
    kept = ExperienceBalancedBuffer(TASKS * MEMORIES, adaptive_size=False, num_experiences=TASKS)
    return [ReplayPlugin(TASKS * MEMORIES, batch_size_mem=BATCH, storage_policy=kept)]


METHODS = [
    Method("naive", lambda: None, list),
    Method("ER, 10 in all", lambda: ER("hard", MEMORIES, each=False), replay),
    Method("ER, a reservoir", lambda: ER("reservoir", TASKS * MEMORIES), list),
    Method("ER, 10 of each task", lambda: ER("hard", MEMORIES), replay, of_each),
    *[
        Method(
            f"A-GEM, {reference}",
            lambda reference=reference: AGEM(MEMORIES // 10, reference_batch=reference),
            plugin("AGEMPlugin", patterns_per_experience=MEMORIES, sample_size=reference),
        )
        for reference in (64, 256)  # Avalanche's default and the paper's
    ],
    Method("EWC", lambda: EWC(1.0), plugin("EWCPlugin", ewc_lambda=0.5, mode="separate")),
    Method(
        "GEM, 250 a task",
        lambda: GEM(MEMORIES, margin=0.5),
        plugin("GEMPlugin", patterns_per_experience=MEMORIES, memory_strength=0.5),
    ),
    Method("MetaSGD-CL", MetaSGDCL, list),
]


_KEPT: list[Any] = []


def import_avalanche() -> bool:
    # a torchvision built for another accelerator lacks two operators that nobody here needs
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        try:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        except RuntimeError:
            break
    try:
        import avalanche  # noqa: F401
    except ImportError:
        return False
    _KEPT.append(library)  # operators live as long as it does
    return True


def best(runs: Sequence[Run], task: int) -> float:
    return max(run.speeds[task] for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="methods whose name holds this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    there = import_avalanche()
    print("updates per second at tasks 1, 5 and 10, best of", options.repeats, "repeats")
    print(f"{'':22}{'attractor':>22}{'Avalanche':>22}{'plain loop':>22}   ratio at 10   ACC")
    for method in METHODS:
        if options.only and options.only not in method.name:
            continue
        found: dict[str, list[Run]] = {"attractor": [], "Avalanche": [], "plain loop": []}
        for seed in range(options.repeats):
            tasks = stream(seed)
            found["attractor"].append(attractor(method.ours(), tasks, seed))
            if method.name == "naive":
                found["plain loop"].append(plain(tasks, seed))
            if there and (method.name == "naive" or method.theirs is not list):
                found["Avalanche"].append(avalanche(method, tasks, seed))
        print(row(method.name, found), flush=True)


def row(name: str, found: dict[str, list[Run]]) -> str:
    speeds = [
        " ".join(f"{best(runs, task):6.0f}" for task in (0, 4, 9)) if runs else ""
        for runs in found.values()
    ]
    ours = best(found["attractor"], 9)
    others = {k: best(runs, 9) for k, runs in found.items() if runs and k != "attractor"}
    ratios = ", ".join(f"{ours / speed:.2f} x {k}" for k, speed in others.items())
    accs = ", ".join(
        f"{sum(run.acc for run in runs) / len(runs):.4f}" for runs in found.values() if runs
    )
    return f"{name:22}" + "".join(f"{speed:>22}" for speed in speeds) + f"   {ratios}   {accs}"


if __name__ == "__main__":
    main()
