"""Where M2SGD's pruning comes from: its initial weights, its meta-training, or the learner's data.

For the form of the released script on Fashion-MNIST, a 784-32-10 perceptron and batches of 32, as
in Table 5.1 of Kuo (2021): the share of weights that a rule prunes that was never meta-trained, and
one that was; how many of the latter's pruned weights the former prunes too; and, as a control, the
accuracy of SGD with momentum on networks in which a random share of the weights is held at zero.

    python benchmarks/pruning.py DATA [--seeds 3] [--steps 10000]

Without DATA: the share of a ResNet-20 that rules which were never meta-trained prune at their first
update, by seed, at the thresholds of Table 5.2.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attractor.estimates import estimate
from attractor.meta import Problem, train
from attractor.models import MLP, ResNet
from attractor.optimisers import GlobalM2SGD, View
from attractor.optimisers.view import count, flatten
from attractor.tasks import FashionMNIST, Task
from attractor.training import evaluate

SIZE = 25_450
SHARES = {0.0: 0.49, 0.1: 0.607, 0.2: 0.689}
"""By threshold, what the paper prunes."""
PAPER: dict[str, Any] = {"learners": 1, "steps": 100, "unroll": 5, "objective": "same"}
"""How it meta-trains."""


def learner(generator: torch.Generator) -> nn.Module:
    return MLP([784, 32, 10], generator=generator)


def descend(
    task: Task, model: nn.Module, step: Callable[[], object], steps: int, seed: int
) -> None:
    sampler = task.batches(32, generator=torch.Generator().manual_seed(seed))
    for _ in range(steps):
        model.zero_grad()
        torch.autograd.backward(task.loss(model, sampler.draw()))
        step()


def pruned(task: Task, rule: GlobalM2SGD, seed: int, steps: int = 300) -> Tensor:
    """Which weights of a learner are zero after some updates."""
    model = learner(torch.Generator().manual_seed(seed))
    descend(task, model, rule(model.parameters()).step, steps, seed)
    return torch.cat([p.detach().flatten() == 0 for p in model.parameters()])


def masked_sgd(task: Task, share: float, seed: int, steps: int) -> float:
    """The test accuracy of SGD where a random share of the weights is held at zero."""
    generator = torch.Generator().manual_seed(seed)
    model = learner(generator)
    kept = [torch.rand(p.shape, generator=generator) >= share for p in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    @torch.no_grad()
    def step() -> None:
        optimiser.step()
        for parameter, mask in zip(model.parameters(), kept, strict=True):
            parameter.mul_(mask)

    descend(task, model, step, steps, seed)
    return evaluate(model, task, "test", 1000)["accuracy"]


def first_update(seed: int) -> None:
    """Print which share of a ResNet-20 an untrained rule prunes at once, by threshold."""
    g = torch.Generator().manual_seed(seed)
    model = ResNet(20, generator=g)
    rule = GlobalM2SGD(size=count(model.parameters()), generator=g)
    x, y = torch.randn(8, 3, 32, 32, generator=g), torch.randint(10, (8,), generator=g)
    cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
    params = flatten(p.detach() for p in model.parameters())
    gradient = flatten(p.grad for p in model.parameters() if p.grad is not None)
    shares = []
    for rule.threshold in (0.0, 0.1, 0.2825):
        view = View.of(model.parameters())
        steps, _ = rule.update(gradient, rule.init(params, view), params, view)
        shares.append((params + steps == 0).float().mean().item())
    print(seed, *(f"{100 * share:.2f}" for share in shares), sep=", ")


def shown(values: list[float]) -> str:
    found = estimate([100 * value for value in values])
    return f"{found.mean:.1f} ± {found.half_width or 0:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.data is None:
        print("seed, pruned % of a ResNet-20 at U = 0, 0.1, 0.2825")
        for seed in range(asked.seeds):
            first_update(seed)
        return
    task = FashionMNIST(order="flat", normalise=True, root=asked.data)
    print(
        "U, paper %, untrained %, meta-trained %, of which also untrained %, random mask: accuracy"
    )
    for threshold, share in SHARES.items():
        found: list[list[float]] = [[], [], [], []]
        for seed in range(asked.seeds):
            g = torch.Generator().manual_seed(seed)
            rule = GlobalM2SGD(size=SIZE, threshold=threshold, generator=g)
            before = pruned(task, rule, seed)
            train(rule, [Problem(learner, task, 32)], generator=g, **PAPER)
            after = pruned(task, rule, seed)
            found[0].append(before.float().mean().item())
            found[1].append(after.float().mean().item())
            found[2].append((before & after).sum().item() / max(after.sum().item(), 1))
            found[3].append(masked_sgd(task, share, seed, asked.steps))
        print(threshold, 100 * share, *map(shown, found), sep=", ", flush=True)


if __name__ == "__main__":
    main()
