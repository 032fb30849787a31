"""Meta-train `Anytime` by evolution strategies over whole trainings of random small networks.

::

    first=runs/beyond/first
    python benchmarks/anytime.py train --small --updates 66 --out $first
    python benchmarks/anytime.py average --out $first
    python benchmarks/anytime.py train --start $first/start.safetensors --updates 21 --lr 0.03
    python benchmarks/anytime.py choose --start $first/start.safetensors

These made the weights of the package: 66 updates of all numbers but e, which stays 0, on small
networks; their mean with e = 1 and a larger rate; 21 updates from there of all numbers on larger
networks; their mean, with e, delta and rate from a grid. The last writes
``runs/beyond/anytime.safetensors``, which ``benchmarks/beyond.py`` tests. `train` goes on from the
last update if interrupted. The data sets are looked for as everywhere: ``ATTRACTOR_DATA``, else the
user's cache folder.
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
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from attractor.meta import Learners, Problem
from attractor.models import MLP
from attractor.optimisers import Anytime, State, View, load_rule, save_rule
from attractor.optimisers.files import about
from attractor.tasks import KMNIST, Batch, Digits, FashionMNIST, Task
from attractor.tasks.images import ImageTask, Reading

E = "size_power"
"""The exponent of the size of initial values."""


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
    task: ImageTask = makes[name](order="flat", side=side)
    if centred and isinstance(task.read, Reading):
        pixels = task.read(task.train.x)
        task.read.mean, task.read.std = pixels.mean(), pixels.std()
    return task


def draw(generator: Generator, low: int, high: int, *, small: bool = False) -> Drawn:
    """Data set, resolution, width, depth, activation, start, batch size, horizon: all at random.

    A small one has at most 14 pixels a side and layers of at most 32 units.
    """

    def pick(*options: Any) -> Any:
        return options[int(torch.randint(len(options), (), generator=generator))]

    def spread(a: int, b: int) -> int:
        return round(a * (b / a) ** torch.rand((), generator=generator).item())

    steps = spread(low, high)
    task = pick("digits", "fashion_mnist", "kmnist")
    cheap = steps < 500 and not small
    side = 8 if task == "digits" else pick(7, 14, 28) if cheap else pick(7, 14)
    widest = 128 if cheap and side < 28 else 32
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

    def __init__(self, rule: Anytime, view: View) -> None:
        super().__init__()
        self.rule, self.view = rule, view

    def forward(self, grads: Tensor, each: Any, shared: Any, params: Tensor) -> Any:
        state = State(each, shared).map(lambda s: s[None])
        steps, after = self.rule.update(grads[None], state, params[None], self.view)
        return steps[0], *after.map(lambda s: s[0])


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
    state = learners.first_state(rule, params)
    module = Update(rule, learners.view)
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
    return batch.map(lambda part: part.expand(count, *part.shape))


def bounded(losses: Tensor) -> Tensor:
    return torch.nan_to_num(losses, nan=10.0, posinf=10.0).clamp(max=10).add(0.01).log()


def train(
    out: Path,
    start: Path | None,
    *,
    small: bool,
    updates: int,
    pairs: int,
    sigma: float,
    lr: float,
    steps: int,
) -> None:
    """Antithetic evolution strategies: a problem, 2 x `pairs` whole trainings, an update.

    On small problems the size of initial values is of no account, and e stays as it is.
    """
    rule = Anytime() if start is None else load_rule(start)
    assert isinstance(rule, Anytime)
    named = dict(rule.named_parameters())
    still = {f"rule.{E}": named.pop(E).detach()} if small else {}
    adam = torch.optim.Adam(named.values(), lr=lr, betas=(0.9, 0.99))
    log = out / "train.jsonl"
    done = logged(out) if log.exists() else []
    for past in done:  # the updates are few and small: going on is doing them again
        _apply(named, adam, past["gradient"], lr * fade(past["update"]))
    began = time.time() - (done[-1]["seconds"] if done else 0)
    for update in range(len(done), updates):
        generator = torch.Generator().manual_seed(update)
        drawn = draw(generator, 100, steps, small=small)
        moves = {
            k: sigma * torch.randn((pairs, *p.shape), generator=generator) for k, p in named.items()
        }
        weights = {
            f"rule.{k}": torch.cat([p + moves[k], p - moves[k]]).detach() for k, p in named.items()
        }
        weights |= {k: p.expand(2 * pairs, *p.shape) for k, p in still.items()}
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


def logged(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


def mean_of(entries: list[dict[str, Any]]) -> dict[str, Tensor]:
    """The mean of the weights after some updates."""
    return {
        k: torch.stack([torch.tensor(e["weights"][k]) for e in entries]).mean(0)
        for k in entries[-1]["weights"]
    }


def average(out: Path) -> None:
    """Where the second stage starts: the mean of the last 20 updates, e = 1 and gamma x 1.3."""
    entries = logged(out)
    mean = mean_of(entries[-20:])
    changed = {E: torch.tensor(1.0), "log_gamma": mean["log_gamma"] + math.log(1.3)}
    rule = Anytime()
    rule.load_state_dict(mean | changed)
    told = {
        "stages": [
            f"{len(entries)} updates with e = 0 on 8 to 32 units and 7 to 14 pixels a side; mean "
            "of the last 20, then e = 1 and gamma x 1.3"
        ],
        "seconds": [entries[-1]["seconds"]],
        "curve": [round(e["cost"], 3) for e in entries],
    }
    save_rule(rule, out / "start.safetensors", about=told)


WIDER = [
    Drawn("fashion_mnist", 28, False, (48,), "tanh", "torch", 128, 800),
    Drawn("kmnist", 28, False, (64, 64), "relu", "torch", 128, 900),
    Drawn("digits", 8, False, (32,), "relu", "torch", 128, 4000),
]
"""What the last choice is made on: seen data, networks that were too large to be trained on."""


def choose(out: Path, start: Path | None) -> None:
    """The mean of the last ten updates, with the size, decay and rate that suit larger networks.

    These three are taken from a grid by the sum of their costs on `WIDER`; its values were set
    after a look at another one. The card also tells how `start` was made, where training began.
    """
    entries = logged(out)
    mean = mean_of(entries[-10:])
    grid = list(itertools.product((1.0, 1.25), (3e-2, 1e-1, 3e-1), (0.6, 0.35)))
    changed = [
        {
            E: torch.tensor(e),
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
    before = about(start) if start else {"stages": [], "seconds": [], "curve": []}
    told = {
        "made by": "benchmarks/anytime.py: antithetic evolution strategies over whole trainings, "
        "then a grid",
        "tasks": "MLPs of one or two hidden layers (relu, tanh, sigmoid) on digits, Fashion-MNIST "
        "and the test images of KMNIST, plain or centred, batches of 32 to 128, 100 to 4,000 steps",
        "stages": [
            *before["stages"],
            f"{len(entries)} updates of all fifteen on 8 to 128 units and 7 to 28 pixels a side; "
            "mean of the last 10",
            "e = {}, delta = {} and gamma x {} from a grid of 12 on Fashion-MNIST 784-48-10, "
            "KMNIST 784-64-64-10 and digits 64-32-10".format(*grid[best]),
        ],
        "seconds": [*before["seconds"], entries[-1]["seconds"]],
        "seeds": "the number of the update; 77 for the grid",
        "curve": [*before["curve"], *(round(e["cost"], 3) for e in entries)],
    }
    print(found.T.tolist(), json.dumps(told, indent=1))
    save_rule(rule, out / "anytime.safetensors", about=told)


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["train", "average", "choose"])
    parser.add_argument("--out", type=Path, default=Path("runs/beyond"))
    parser.add_argument("--start", type=Path, help="where training starts, if not fresh")
    parser.add_argument("--small", action="store_true", help="small networks, and e stays as it is")
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--sigma", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=4000, help="of the longest training")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "choose":
        choose(given.out, given.start)
    elif given.what == "average":
        average(given.out)
    else:
        train(
            given.out,
            given.start,
            small=given.small,
            updates=given.updates,
            pairs=given.pairs,
            sigma=given.sigma,
            lr=given.lr,
            steps=given.steps,
        )


if __name__ == "__main__":
    main()
