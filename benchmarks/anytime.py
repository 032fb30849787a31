"""Meta-train `Anytime` by evolution strategies over whole trainings of random small networks.

::

    python benchmarks/anytime.py train --updates 150 --out runs/beyond
    python benchmarks/anytime.py choose --out runs/beyond

The second makes ``anytime.safetensors`` of what the first has learned, which
``benchmarks/beyond.py`` tests. `train` goes on from the last update if interrupted. The data sets
are looked for as everywhere: ``ATTRACTOR_DATA``, else the user's cache folder.
"""

import argparse
import itertools
import json
import math
import time
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from attractor.meta import Learners, Problem
from attractor.models import MLP
from attractor.optimisers import Anytime, load_rule, save_rule
from attractor.optimisers.rule import State
from attractor.tasks import KMNIST, Batch, Digits, FashionMNIST, Task
from attractor.tasks.images import Images, ImageTask, Splits


@dataclass(frozen=True)
class Drawn:
    """A problem of the distribution, and for how long."""

    task: str
    side: int
    centred: bool
    hidden: tuple[int, ...]
    activation: str
    init: str
    batch_size: int
    steps: int


@cache
def seen(name: str, side: int, centred: bool) -> Task:
    """The data sets of meta-training, also at lower resolutions, for cheap learners of other sizes.

    Of KMNIST the 10,000 test images, of which 8,000 train.
    """
    makes: dict[str, Any] = {
        "digits": Digits,
        "fashion_mnist": FashionMNIST,
        "kmnist": partial(KMNIST, source="test"),
    }
    whole: ImageTask = makes[name]()
    task = ImageTask(
        Splits(*(Images(shrunk(x, side), y) for x, y in whole.splits)),
        order="flat",
        permutation_seed=0,
        trailing=False,
        white=whole.read.white,
    )
    if centred:
        pixels = task.splits.train.x / task.read.white
        task.read.mean, task.read.std = pixels.mean(), pixels.std()
    return task


def shrunk(x: Tensor, side: int) -> Tensor:
    return F.avg_pool2d(x[:, None].float(), x.shape[-1] // side)[:, 0]


def draw(generator: Generator, low: int, high: int) -> Drawn:
    """Data set, resolution, width, depth, activation, start, batch size, horizon: all at random."""

    def pick(*options: Any) -> Any:
        return options[int(torch.randint(len(options), (), generator=generator))]

    def spread(a: int, b: int) -> int:
        return round(a * (b / a) ** torch.rand((), generator=generator).item())

    steps = spread(low, high)
    task = pick("digits", "fashion_mnist", "kmnist")
    side = 8 if task == "digits" else pick(7, 14, 28) if steps < 500 else pick(7, 14)
    widest = 128 if steps < 500 and side < 28 else 32  # what costs little
    hidden = tuple(spread(8, widest) for _ in range(pick(1, 1, 2)))
    return Drawn(
        task,
        side,
        pick(True, False),
        hidden,
        pick("relu", "tanh", "sigmoid"),
        pick("torch", "xavier"),
        pick(32, 64, 128),
        steps,
    )


def problem_of(drawn: Drawn) -> Problem:
    def model(generator: Generator) -> nn.Module:
        sizes = [drawn.side**2, *drawn.hidden, 10]
        return MLP(
            sizes,
            activation=drawn.activation,  # type: ignore[arg-type]
            init=drawn.init,  # type: ignore[arg-type]
            generator=generator,
        )

    return Problem(model, seen(drawn.task, drawn.side, drawn.centred), drawn.batch_size)


class Update(nn.Module):
    """The rule's update of one learner, as a forward pass: so each learner has its own weights."""

    def __init__(self, rule: Anytime) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, grads: Tensor, each: Any, shared: Tensor, params: Tensor) -> Any:
        state = State(tuple(s[None] for s in each), shared[None])
        steps, after = self.rule.update(grads[None], state, params[None])
        return steps[0], tuple(s[0] for s in after.each), after.shared[0]


@torch.no_grad()
def costs(
    rule: Anytime,
    weights: dict[str, Tensor],
    drawn: Drawn,
    generator: Generator,
    *,
    alike: int = 2,
) -> Tensor:
    """How badly each set of weights does: mean of log held-out losses on the way and at the end.

    To these comes half the log of the training loss over the last tenth. Of n learners, `alike`
    start alike: i, i + n / alike and so on. All see the same batches.

    Shape:
        weights ``(learners, ...)`` each; the costs ``(learners,)``.
    """
    count = len(weights["rule.mixture"])
    learners = Learners(problem_of(drawn), count // alike, generator=generator)
    params = learners.start.repeat(alike, 1)
    # a tensor at a time, as in an optimiser, for the rule looks at the size of initial values
    parts = params.split_with_sizes([shape.numel() for shape in learners.shapes.values()], dim=1)
    states = [rule.init(part) for part in parts]
    each = tuple(torch.cat(leaves, dim=1) for leaves in zip(*(s.each for s in states), strict=True))
    state = State(each, states[0].shared)
    module = Update(rule)
    step = vmap(lambda w, *given: functional_call(module, w, given))
    held_out = next(learners.problem.task.held_out("valid", 1000))
    checks = {max(1, drawn.steps // 10), max(1, drawn.steps // 3), drawn.steps}
    total, recent = torch.zeros(count), torch.zeros(count)
    last = max(1, drawn.steps // 10)
    for t in range(1, drawn.steps + 1):
        batch = spread_out(learners.sampler.draw(), count)
        losses, grads = learners.gradients(params, batch)
        steps, each, shared = step(weights, grads, state.each, state.shared, params)
        params, state = params + steps, State(each, shared)
        if t > drawn.steps - last:
            recent += losses / last
        if t in checks:
            found = learners.losses(params, spread_out(held_out, count))
            total += bounded(found) / len(checks)
    return total + bounded(recent) / 2


def spread_out(batch: Batch, count: int) -> Batch:
    return Batch(*(part.expand(count, *part.shape) for part in batch))


def bounded(losses: Tensor) -> Tensor:
    return torch.nan_to_num(losses, nan=10.0, posinf=10.0).clamp(max=10).add(0.01).log()


def train(
    out: Path, start: Path | None, *, updates: int, pairs: int, sigma: float, lr: float, steps: int
) -> None:
    """Antithetic evolution strategies: a problem, 2 x `pairs` whole trainings, an update."""
    rule = Anytime() if start is None else load_rule(start)
    assert isinstance(rule, Anytime)
    named = dict(rule.named_parameters())
    adam = torch.optim.Adam(rule.parameters(), lr=lr, betas=(0.9, 0.99))
    log = out / "train.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for past in done:  # the updates are few and small: going on is doing them again
        _apply(named, adam, past["gradient"], lr * fade(past["update"]))
    began = time.time() - (done[-1]["seconds"] if done else 0)
    for update in range(len(done), updates):
        generator = torch.Generator().manual_seed(update)
        drawn = draw(generator, 100, steps)
        moves = {
            k: sigma * torch.randn((pairs, *p.shape), generator=generator) for k, p in named.items()
        }
        weights = {
            f"rule.{k}": torch.cat([p + moves[k], p - moves[k]]).detach() for k, p in named.items()
        }
        found = costs(rule, weights, drawn, generator)
        better = found[:pairs] - found[pairs:]
        # a problem whose costs differ more has no louder voice
        better = better / better.square().mean().sqrt().clamp(min=1e-3)
        gradient = {
            k: ((better.view(-1, *[1] * (v.dim() - 1)) * v).mean(0) / sigma).tolist()
            for k, v in moves.items()
        }
        _apply(named, adam, gradient, lr * fade(update))
        entry = {
            "update": update,
            "problem": asdict(drawn),
            "cost": found.mean().item(),
            "gradient": gradient,
            "weights": {k: p.detach().tolist() for k, p in named.items()},
            "seconds": round(time.time() - began),
        }
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        print(update, drawn, f"{entry['cost']:.3f}", entry["seconds"], flush=True)


def fade(update: int) -> float:
    """The rate of the meta-updates falls to a fifth."""
    return max(0.2, 1 - 0.8 * update / 150)


def _apply(
    named: dict[str, nn.Parameter],
    adam: torch.optim.Optimizer,
    gradient: dict[str, Any],
    lr: float,
) -> None:
    for k, p in named.items():
        p.grad = torch.tensor(gradient[k])
    adam.param_groups[0]["lr"] = lr
    adam.step()


WIDER = [
    Drawn("fashion_mnist", 28, False, (48,), "tanh", "torch", 128, 800),
    Drawn("kmnist", 28, False, (64, 64), "relu", "torch", 128, 900),
    Drawn("digits", 8, False, (32,), "relu", "torch", 128, 4000),
]
"""What the last choice is made on: seen data, networks that were too large to be trained on."""


def choose(out: Path) -> None:
    """The mean of the last ten updates, with the size, decay and rate that suit larger networks.

    These three are taken from a grid by the sum of their costs on `WIDER`.
    """
    entries = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    mean = {
        k: torch.stack([tensors(e["weights"])[k] for e in entries[-10:]]).mean(0)
        for k in entries[-1]["weights"]
    }
    grid = list(itertools.product((1.0, 1.25), (3e-2, 1e-1, 3e-1), (0.6, 0.35)))
    changed = [
        {
            "size_power": torch.tensor(e),
            "log_delta": torch.tensor(delta).log(),
            "log_gamma": mean["log_gamma"] + math.log(factor),
        }
        for e, delta, factor in grid
    ]
    weights = {f"rule.{k}": torch.stack([(mean | c)[k] for c in changed]) for k in mean}
    found = torch.stack(
        [
            costs(Anytime(), weights, drawn, torch.Generator().manual_seed(77), alike=len(grid))
            for drawn in WIDER
        ]
    )
    best = int(found.sum(0).argmin())
    rule = Anytime()
    rule.load_state_dict(mean | changed[best])
    about = {
        "made by": "benchmarks/beyond.py: antithetic evolution strategies over whole trainings",
        "tasks": "MLPs of one or two hidden layers of 8 to 128 units (relu, tanh, sigmoid) on "
        "digits, Fashion-MNIST and the test images of KMNIST, at 7 to 28 pixels a side, plain or "
        "centred, batches of 32 to 128, 100 to 4,000 steps",
        "budget": f"{len(entries)} updates of 12 trainings, {entries[-1]['seconds']} seconds",
        "seeds": f"0 to {len(entries) - 1} to train, 77 to choose",
        "chosen": dict(zip(("e", "delta", "gamma"), grid[best], strict=True)),
        "curve": [round(e["cost"], 3) for e in entries],
    }
    print(found.T.tolist(), json.dumps(about, indent=1))
    save_rule(rule, out / "anytime.safetensors", about=about)


def tensors(weights: dict[str, Any]) -> dict[str, Tensor]:
    return {k: torch.tensor(v) for k, v in weights.items()}


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["train", "choose"])
    parser.add_argument("--out", type=Path, default=Path("runs/beyond"))
    parser.add_argument("--start", type=Path, help="a rule to train on")
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--sigma", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=4000, help="of the longest training")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "choose":
        choose(given.out)
    else:
        train(
            given.out,
            given.start,
            updates=given.updates,
            pairs=given.pairs,
            sigma=given.sigma,
            lr=given.lr,
            steps=given.steps,
        )


if __name__ == "__main__":
    main()
