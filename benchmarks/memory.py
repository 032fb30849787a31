"""Peak memory and time of learned optimisers: in use, and in meta-training, of a ResNet-34 too.

Run it with ``python benchmarks/memory.py``: the times of all rules in meta-training, in one
process and in turns, then one process for each measurement of memory, which may take 18 GB of
address space at most and prints its own line. ``python benchmarks/memory.py use lstm resnet34``
prints one such line. One thread; times are of the processor.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Generator, nn
from torch.nn.functional import cross_entropy

from attractor.meta import Learners, Problem
from attractor.meta.unroll import Position, first_order
from attractor.models import MLP, ResNet
from attractor.optimisers import OPTIMISERS, Rule, shipped
from attractor.optimisers.view import count
from attractor.tasks.images.task import Images, ImageTask, Splits

LIMIT = 18 * 10**9
"""Bytes of address space of a measurement."""
UNROLL = {"mlp": 20, "resnet34": 2}
REPEATS = {"mlp": 5, "resnet34": 1}
BATCH = {"mlp": 128, "resnet34": 8}
MEASUREMENTS = [
    (mode, rule, network)
    for network in ("mlp", "resnet34")
    for rule in ("lstm", "ihc_lstm")
    for mode in ("use", "meta")
]


def problem(network: str) -> Problem:
    """A network on random images of its size."""
    shape = (28, 28) if network == "mlp" else (3, 32, 32)
    images = Images(torch.randint(256, (512, *shape)), torch.randint(10, (512,)))
    task = ImageTask(
        Splits(images, images, images),
        order="flat" if network == "mlp" else "image",
        permutation_seed=0,
        trailing=False,
        white=255,
    )
    models: dict[str, Callable[[Generator], nn.Module]] = {
        "mlp": lambda g: MLP([784, 32, 10], generator=g),
        "resnet34": lambda g: ResNet(34, track=False, generator=g),
    }
    return Problem(models[network], task, BATCH[network])


def generator() -> Generator:
    """The same for all."""
    return torch.Generator().manual_seed(0)


def weights(rule: str) -> Rule:
    """A rule as it comes with the package."""
    found: Rule = OPTIMISERS[rule].kind.pretrained()
    return found


def use(rule: str, network: str) -> Callable[[], float]:
    """What updates a network once."""
    given = problem(network)
    model = given.model(generator())
    optimiser = weights(rule)(model.parameters())
    batch = given.task.batches(given.batch_size, generator=generator()).draw()

    def update() -> float:
        cross_entropy(model(batch.x), batch.y).backward()  # type: ignore[no-untyped-call]
        start = time.process_time()
        optimiser.step(context=batch.x)
        seconds = time.process_time() - start
        optimiser.zero_grad()
        return seconds

    return update


def meta(rule: str, network: str) -> Callable[[], float]:
    """What finds one meta-gradient, through all updates of an unroll."""
    trained = weights(rule)
    learners = Learners(problem(network), 1, generator=generator())
    # as after an update: zeros that were never written would take no memory
    state = learners.first_state(trained, learners.start).map(torch.clone)
    start = Position(learners.start, state, learners.draw())
    noise = torch.zeros(UNROLL[network], 1, 1)

    def unroll() -> float:
        began = time.process_time()
        first_order(trained, learners, start, noise)
        return time.process_time() - began

    return unroll


def measure(mode: str, rule: str, network: str) -> str:
    """One line: seconds, the best of several on the small network, and the peak of memory."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    update = {"use": use, "meta": meta}[mode](rule, network)
    seconds = min(update() for _ in range(REPEATS[network]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = count(problem(network).model(generator()).parameters())
    what = "one update" if mode == "use" else f"one unroll of {UNROLL[network]}"
    return f"| {what} | `{rule}` | {size:,} | {seconds:.2f} | {peak / 1e9:.2f} |"


def times(repeats: int = 5) -> None:
    """Milliseconds of an unroll of 20 with each rule that comes with the package."""
    rules = [name.split("/")[0] for name in shipped()]
    made = {rule: meta(rule, "mlp") for rule in rules}
    best = dict.fromkeys(rules, float("inf"))
    for _ in range(repeats):
        for rule, update in made.items():
            best[rule] = min(best[rule], 1e3 * update())
    print("| rule | ms per update of the rule | ms per update of the learner |\n|---|---:|---:|")
    for rule, found in best.items():
        print(f"| `{rule}` | {found:.0f} | {found / UNROLL['mlp']:.0f} |")


def main() -> None:
    """Print the tables, or one line."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if len(sys.argv) == 4:
        print(measure(*sys.argv[1:]))
        return
    times()
    print("\n| what | rule | parameters | seconds | peak, GB |", flush=True)
    print("|---|---|---:|---:|---:|", flush=True)
    for words in MEASUREMENTS:
        subprocess.run([sys.executable, __file__, *words], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
