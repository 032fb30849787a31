"""What goes on inside continual learners: the rates of MetaSGD-CL, and the gradients of layer 2.

``rates`` is table 6.3 and figure 6.8 of Kuo (2021): MetaSGD-CL with kappa = 0.1 on permuted MNIST,
ten tasks of 100 batches of ten, and the shares of each layer's rates that are large and small when
a task ends. Once as the thesis has it, once with the 0.001 of its released script for Adam, and
once with what else that script does otherwise.

``gradients`` is figures 6.11 and 6.12: 525 updates on MNIST, then 525 on KMNIST, in batches of ten
with SGD at 0.01; the loss and the mean absolute gradients of the weights of each layer, as moving
averages of 50 updates. KMNIST is its 10,000 test images, 8,000 of which are trained on.

    python benchmarks/inside.py rates DATA [--seeds 10] [--figure figure-6.8.svg]
    python benchmarks/inside.py gradients DATA [--seeds 10] [--figure figure-6.12.svg]

Figures want matplotlib: pip install -e ".[figures]" -c constraints.txt
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from attractor.continual import Learner, MetaSGDCL
from attractor.estimates import estimate, t_quantile
from attractor.models import HCN, MLP, ResMLP
from attractor.tasks import ArrayTask, joined
from attractor.tasks.streams import Stream, image_sets, permuted

TASKS = (2, 4, 6, 8, 10)
LAYERS = ("layer 1", "layer 2", "softmax layer")
UPDATES, WINDOW = 525, 50
SHOWN = 5
"""Updates from one point of a drawn curve to the next."""
NETWORKS: dict[str, Callable[..., nn.Module]] = {"MLP": MLP, "Res-MLP": ResMLP, "HCN": HCN}


def shown(values: Sequence[float] | Tensor, digits: int = 2, scale: float = 1.0) -> str:
    found = estimate([scale * float(value) for value in values])
    return f"{found.mean:.{digits}f} ± {found.half_width or 0:.{digits}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (header, ["---", *["---:"] * (len(header) - 1)], *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


class Released(MetaSGDCL):
    """As the released script has it: task u at the rates of task u + 1, and a factor of 1 / V.

    So the rates being learnt are those of the newest past task too, and learn from its gradient.
    """

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        flat, task = self.gradients.flat, int(self._batch.places[0])
        felt = flat.gradient()
        change = -self._rate() * felt
        seen = [self._batch]
        if past := list(range(task)):
            seen.append(self.episodes.draw(self.replay, past))
            sizes = self.episodes.drawn(self.replay, past)
            each = self.gradients.of_groups(seen[1], sizes, self._base)
            change -= each.blend(self.rates[1:]) / (task + 1)
            newest = torch.zeros_like(self.frozen)
            newest[-1] = 1
            felt = felt + each.blend(newest) / (task + 1)
        self.episodes.add(self._batch)
        flat.add(change)
        self._learn(model, felt, joined(seen))


SETTINGS: dict[str, Callable[[], MetaSGDCL]] = {
    "thesis": partial(MetaSGDCL, kappa=0.1),
    "thesis, but Adam at 0.001": partial(MetaSGDCL, kappa=0.1, meta_lr=0.001),
    "released": partial(Released, kappa=0.1, meta_lr=0.001),
}


def learnt_rates(images: ArrayTask, strategy: MetaSGDCL, seed: int) -> tuple[Tensor, float]:
    """The rates that every task ended with, and ACC."""
    g = torch.Generator().manual_seed(seed)
    stream = permuted(images.train, images.test, tasks=10, generator=g)
    model = MLP([784, 100, 100, 10], init="xavier", generator=g)
    learner = Learner(model, stream, strategy, iterations=100, seed=seed)
    while not learner.done:
        learner.advance()
    return strategy.frozen, learner.result().metrics["acc"]


def rates(data: Path, seeds: int, path: Path | None) -> None:
    (images,) = image_sets(datasets=["mnist"], root=data).arrays()
    sizes = [784 * 100 + 100, 100 * 100 + 100, 100 * 10 + 10]
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "> 0.05, %": lambda r: 100 * (r > 0.05).double().mean(),
        "< 0.02, %": lambda r: 100 * (r < 0.02).double().mean(),
        "median, thousandths": lambda r: 1000 * r.double().median(),
    }
    drawn = {}
    for words, make in SETTINGS.items():
        learnt = [learnt_rates(images, make(), seed) for seed in range(seeds)]
        print(f"{words}: ACC {shown([100 * acc for _, acc in learnt])}, {seeds} seeds\n")
        layers = [torch.split(found, sizes, dim=1) for found, _ in learnt]
        drawn[words] = [torch.cat(each, dim=1) for each in zip(*layers, strict=True)]
        rows = [
            [f"{name}, {kind}"]
            + [shown([float(measure(each[place][task - 1])) for each in layers]) for task in TASKS]
            for kind, measure in kinds.items()
            for place, name in enumerate(LAYERS)
        ]
        table(["", *(f"task {task}" for task in TASKS)], rows)
    if path is not None:
        draw_rates(drawn, path)


def draw_rates(drawn: dict[str, list[Tensor]], path: Path) -> None:
    """Of each layer and setting, the median of the rates and bands of 50, 90 and 99%."""
    import matplotlib.pyplot as plt
    from figures import STYLE, save

    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(
            len(LAYERS), len(drawn), sharex=True, sharey=True, figsize=(9, 6), layout="constrained"
        )
        for column, (words, layers) in enumerate(drawn.items()):
            for row, (name, found) in enumerate(zip(LAYERS, layers, strict=True)):
                ax, tasks = axes[row, column], range(1, len(found) + 1)
                for share, opacity in ((0.99, 0.15), (0.9, 0.3), (0.5, 0.5)):
                    low, high = (
                        np.quantile(found.numpy(), end, axis=1)
                        for end in (0.5 - share / 2, 0.5 + share / 2)
                    )
                    ax.fill_between(tasks, low, high, color="C0", alpha=opacity, linewidth=0)
                ax.plot(tasks, found.median(1).values, color="black", linewidth=1)
                ax.set_title(f"{name}, {words}")
        for ax in axes[-1]:
            ax.set_xlabel("task")
        for ax in axes[:, 0]:
            ax.set_ylabel("rate")
        save(fig, path)


def trained(network: Callable[..., nn.Module], stream: Stream, seed: int) -> Tensor:
    """At each update the loss, and the mean absolute gradients of the weights of each layer.

    Shape:
        ``(updates, 1 + layers)``.
    """
    g = torch.Generator().manual_seed(seed)
    model = network([784, 100, 100, 10], init="xavier", generator=g)
    weights = [p for name, p in model.named_parameters() if "weight" in name and "gate" not in name]
    optimiser = partial(SGD, lr=0.01)
    learner = Learner(model, stream, optimiser=optimiser, iterations=UPDATES, seed=seed)
    found = []
    while not learner.done:
        [row, *_] = learner.advance()
        gradients = [w.grad.abs().mean() for w in weights if w.grad is not None]
        found.append(torch.stack([torch.tensor(row["loss"]), *gradients]))
    return torch.stack(found).double()


def gradients(data: Path, seeds: int, path: Path | None) -> None:
    stream = image_sets(datasets=["mnist", "kmnist_test"], root=data)
    curves = {
        name: torch.stack([trained(network, stream, seed) for seed in range(seeds)])
        for name, network in NETWORKS.items()
    }
    averages = {name: curve.unfold(1, WINDOW, 1).mean(-1) for name, curve in curves.items()}
    if path is not None:
        draw_gradients(averages, path)
    # the windows that end at these updates; the first on KMNIST alone ends at 575
    ends = (50, 250, 525, 575, 750, 1050)
    header = ["network", *(f"{end - WINDOW + 1} to {end}" for end in ends)]
    for place, what in enumerate(("loss", "W1", "W2", "W3")):
        scale = 1.0 if place == 0 else 1000.0
        print(
            what if place == 0 else f"mean absolute gradient of {what}, in thousandths", end="\n\n"
        )
        rows = [
            [name, *(shown(average[:, end - WINDOW, place], 3, scale) for end in ends)]
            for name, average in averages.items()
        ]
        rows += [
            [f"{name} / MLP"]
            + [
                shown(average[:, end - WINDOW, place] / averages["MLP"][:, end - WINDOW, place])
                for end in ends
            ]
            for name, average in averages.items()
            if name != "MLP"
        ]
        table(header, rows)


def draw_gradients(averages: dict[str, Tensor], path: Path) -> None:
    """The moving averages of the loss and of the gradient of W2, with intervals over seeds."""
    import matplotlib.pyplot as plt
    from figures import STYLE, save

    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
        for ax, place, what in zip(axes, (0, 2), ("loss", "mean |gradient| of W2"), strict=True):
            for name, average in averages.items():
                found = average[:, ::SHOWN, place]
                half = t_quantile(len(found)) * found.std(0) / len(found) ** 0.5
                updates = np.arange(WINDOW, WINDOW + average.shape[1], SHOWN)
                (line,) = ax.plot(updates, found.mean(0), label=name)
                low, high = found.mean(0) - half, found.mean(0) + half
                ax.fill_between(updates, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
            ax.axvline(UPDATES, color="grey", linewidth=0.8, linestyle=":")
            ax.set(title=f"{what}, moving average of {WINDOW}", xlabel="update", ylim=(0, None))
        axes[1].legend()
        save(fig, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["rates", "gradients"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--figure", type=Path, help="draw it there")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    {"rates": rates, "gradients": gradients}[asked.what](asked.data, asked.seeds, asked.figure)


if __name__ == "__main__":
    main()
