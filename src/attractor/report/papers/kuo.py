"""Figures of Kuo's thesis: minima, cobwebs, a vector field, rates and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from attractor.continual import MetaSGDCL, train
from attractor.dynamics import Landscape, euler, vector_field
from attractor.dynamics.plots import COLOURS, draw_field, draw_surface, subplots
from attractor.models import MLP
from attractor.report.papers import decaynet
from attractor.report.papers.kept import along, spreads
from attractor.report.papers.trainings import losses
from attractor.reproduction.computed.learners import two_tasks
from attractor.reproduction.computed.systems import MINIMA, terrain
from attractor.tasks.streams import permuted_images

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COURSES = {"accuracy": "ACC", "task_1": "accuracy on task 1"}
NETS = ("HCN", "split-HCN")
RULES = {
    "SGD": "SGD",
    "MetaSGD": "MetaSGD",
    "DMSGD, released": "DMSGD",
    "M2SGD, released, U = 0": "M2SGD, U = 0",
}


def rough(x: Tensor, y: Tensor) -> Tensor:
    """A minimum with a treacherous terrain around it."""
    radius = (x**2 + y**2).sqrt()
    waves = 2.5 * torch.sin(4 * x) * torch.cos(4 * y) * torch.tanh(radius)
    return 16 - 11 * torch.exp(-(radius**2) / 2.5) + waves


def seen(function: Callable[[Tensor, Tensor], Tensor], reach: float = 4.0) -> Landscape:
    """A function of two numbers as a landscape."""
    side = torch.linspace(-reach, reach, 101, dtype=torch.float64)
    x, y = torch.meshgrid(side, side, indexing="xy")
    return Landscape(side, side, function(x, y))


def figure_2_5() -> Figure:
    """Three minima on one landscape."""
    figure, axes = subplots(1, 1, size=4, subplot_kw={"projection": "3d"})
    ax = axes[0, 0]
    draw_surface(seen(terrain), ax)
    for number, (a, b, depth, _) in enumerate(MINIMA, start=1):
        ax.scatter([a], [b], [20 - depth], color=COLOURS[0], s=30, depthshade=False, zorder=5)
        ax.text(a, b, 20 - depth - 2.5, str(number), color=COLOURS[0], zorder=6)
    return figure


def figure_2_6() -> Figure:
    """Depth, with lines at a loss of 5; widths of mouth and bottom; a rough way down."""
    figure, axes = subplots(1, 3, size=3.2)
    side = torch.linspace(-4, 4, 401, dtype=torch.float64)
    depth, width, way = axes[0]
    for number, (a, b, _, _) in enumerate(MINIMA):
        cut = terrain(side, torch.full_like(side, b))
        depth.plot(side, cut, label=f"minimum {number + 1}", color=COLOURS[number])
        if number < 2:
            far = torch.linspace(-4, 4, 401, dtype=torch.float64)
            width.plot(far, terrain(far + a, torch.full_like(far, b)), color=COLOURS[number])
    depth.plot([-4, -0.5], [5, 5], color="black", linewidth=1)
    depth.plot([0.5, 4], [5, 5], color="black", linewidth=1)
    depth.set(title="(a) depth: lines at 5", xlabel="$\\theta_1$", ylabel="loss", ylim=(0, 21))
    depth.legend(loc="lower right")
    width.set(title="(b) widths, both centred", xlabel="distance", ylim=(0, 21))
    surface = seen(rough, 2.5)
    assert surface.y is not None
    drawn = way.contourf(
        surface.x, surface.y, surface.loss, [0, 10, 30], colors=["cyan", "magenta"]
    )
    way.contour(surface.x, surface.y, surface.loss, 10, colors="black", linewidths=0.4)
    figure.colorbar(drawn, ax=way, ticks=[0, 10, 30], shrink=0.8)
    way.set(title="(c) cyan below 10, magenta above", xlabel="$\\theta_1$", ylabel="$\\theta_2$")
    return figure


def figure_2_7() -> Figure:
    """Minima of three batches: from one distribution, and from one that moves."""
    generator = Generator().manual_seed(0)
    figure, axes = subplots(1, 2, size=3.6, subplot_kw={"projection": "3d"})
    side = torch.linspace(-1, 3, 41, dtype=torch.float64)
    a, b = torch.meshgrid(side, side, indexing="xy")
    for ax, moves, title in zip(
        axes[0], (0.0, 0.6), ("(a) one distribution", "(b) it moves"), strict=True
    ):
        for number in range(3):
            x = torch.randn(200, 2, generator=generator, dtype=torch.float64)
            w = torch.tensor([1.0, 1.0]).double() + moves * torch.tensor(
                [number - 1.0, 1.0 - number]
            )
            noise = torch.randn(200, generator=generator, dtype=torch.float64)
            y = x @ w + 0.3 * noise
            answers = a[..., None] * x[:, 0] + b[..., None] * x[:, 1]
            found = Landscape(side, side, (answers - y).square().mean(-1))
            draw_surface(found, ax, title=title, colour=COLOURS[number])
            lowest = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
            ax.scatter(*([float(v)] for v in lowest), [0.1], color=COLOURS[number], s=30)
        ax.set_zlim(0, 12)
    return figure


def figure_2_8() -> Figure:
    """The cobwebs of 0.5 u and 1.5 u."""
    return decaynet.figure_5()


def figure_2_9() -> Figure:
    """A vector field with two sinks, the point between them, null-clines and basins."""
    step = euler(lambda u: torch.stack([u[..., 0] - u[..., 0] ** 3, -u[..., 1]], -1))
    found = vector_field(step, samples=61, basins=400)
    figure, axes = subplots(1, 1, size=3.6)
    draw_field(found, axes[0, 0])
    return figure


def figure_4_3() -> Figure:
    """100 updates of a perceptron by learned optimisers: stored quick runs."""
    return decaynet.figure_4()


def figure_4_6() -> Figure:
    """A residual network by Adam, LSTM and IHC-LSTM: stored quick runs."""
    labels = {name: name for name in ("Adam 0.001", "LSTM", "IHC-LSTM")}
    return losses({"ResNet-20 on CIFAR-10": ("irc-figure-3-quick", labels)})


def figure_5_4() -> Figure:
    """MTL2L beside others on the data set of its meta-training: stored full runs."""
    labels = {name: name for name in ("SGD 0.01", "Adam 0.01", "LSTM", "MTL2L")}
    return losses({"MNIST": ("mtl2l-scenario-1", labels)})


def figure_5_5() -> Figure:
    """MTL2L beside others on a data set that they have not seen: stored full runs."""
    learned = ("LSTM, from KMNIST", "LSTM, from MNIST", "MTL2L, from both")
    labels = {name: name for name in ("SGD 0.01", *learned)}
    return losses({"grey CIFAR-10": ("mtl2l-scenario-2", labels)})


def figure_5_7() -> Figure:
    """M2SGD and others on Fashion-MNIST: stored full runs."""
    return losses({"Fashion-MNIST": ("m2sgd-table-5.1", RULES)})


def figure_5_9() -> Figure:
    """M2SGD and others on a ResNet-20: stored full runs."""
    return losses({"ResNet-20": ("m2sgd-table-5.2", RULES)})


def learned_rates(tasks: int = 5, iterations: int = 100) -> tuple[Tensor, list[tuple[str, int]]]:
    """Rates of MetaSGD-CL ``(tasks, parameters)`` on permuted digits, and the parameters' sizes."""
    stream = permuted_images(dataset="digits", tasks=tasks, generator=Generator().manual_seed(0))
    model = MLP([64, 100, 10], generator=Generator().manual_seed(0))
    strategy = MetaSGDCL()
    train(model, stream, strategy, iterations=iterations, seed=0)
    return strategy.rates, [(name, p.numel()) for name, p in model.named_parameters()]


def figure_6_3() -> Figure:
    """Stored runs on permuted MNIST: ACC and the accuracy on task 1, after each of ten tasks."""
    labels = {
        "MetaSGD-CL": "MetaSGD-CL",
        "ER": "ER",
        "GEM": "GEM",
        "EWC, strength 1": "EWC",
        "HAT, 400 wide, lr 0.05": "HAT",
        "Singular": "singular",
    }
    return along("permuted-mnist", labels, COURSES, step="tasks learnt")


def figure_6_4() -> Figure:
    """The same on incremental CIFAR-10, which stands in for CIFAR-100: three tasks."""
    labels = {
        "MetaSGD-CL": "MetaSGD-CL",
        "ER + MLP": "ER",
        "GEM, 250 memories + MLP": "GEM",
        "EWC + MLP": "EWC",
        "HAT, 400 wide + MLP": "HAT",
        "MLP": "singular",
    }
    return along("incremental-cifar10", labels, COURSES, step="tasks learnt")


def figure_6_5() -> Figure:
    """MetaSGD-CL beside ER with small rings of memories, as the text and as the script have it."""
    return _pairs("rings", "ring 100")


def figure_6_6() -> Figure:
    """MetaSGD-CL beside ER with 25 updates a task, as the text and as the script have it."""
    return _pairs("few", "25 updates")


def figure_6_7() -> Figure:
    """MetaSGD-CL beside ER with half of the pixels shuffled, as the text and the script have it."""
    return _pairs("noise", "noise 50%")


def _pairs(change: str, ending: str) -> Figure:
    labels = {f"{name}, {ending}": name for name in ("MetaSGD-CL", "ER")}
    panels = {
        f"{ending}, {protocol}": (f"permuted-mnist-{change}{form}", labels)
        for protocol, form in (("the text", ""), ("the released script", "-released"))
    }
    return spreads(panels, ("first_task_accuracy", "accuracy"))


def figure_6_13() -> Figure:
    """Networks without a strategy on twenty permutations: ACC and the accuracy on task 1."""
    labels = {name: name for name in ("HCN", "MLP", "Large-MLP", "Res-MLP")}
    return along("permuted-mnist-networks", labels, COURSES, step="tasks learnt")


def figure_6_16() -> Figure:
    """How much the final accuracy on task 1 varies over seeds, HCN beside MLP."""
    panels = {
        name or "no strategy": (
            "permuted-mnist-networks",
            {f"{name} + {net}" if name else net: net for net in ("HCN", "MLP")},
        )
        for name in ("", "EWC", "GEM", "Stable")
    }
    return spreads(panels, ("first_task_accuracy",))


def figure_6_17() -> Figure:
    """Split-HCN, of which the first layer alone goes on learning, beside HCN."""
    labels = {f"{one} + {net}": f"{one}, {net}" for one in ("GEM", "Stable") for net in NETS}
    return along("permuted-mnist-networks", labels, COURSES, step="tasks learnt")


def figure_6_8(tasks: int = 5, iterations: int = 100) -> Figure:
    """How the rate of each parameter changes from task to task, first and last layer."""
    rates, sizes = learned_rates(tasks, iterations)
    weights = [
        (name, part)
        for (name, _), part in zip(
            sizes, torch.split(rates, [size for _, size in sizes], -1), strict=True
        )
        if name.endswith("weight")
    ]
    figure, axes = subplots(2, 1, size=3, sharex=True)
    for ax, (name, part), layer in zip(
        axes[:, 0], (weights[0], weights[-1]), ("first layer", "softmax layer"), strict=True
    ):
        last = part[-1]
        shown = last.argsort()[torch.linspace(0, len(last) - 1, min(len(last), 400)).long()]
        large = float(rates.max()) / 2
        for index in shown.tolist():
            colour = "magenta" if float(part[-1, index]) > large else "blue"
            ax.plot(range(1, len(part) + 1), part[:, index].numpy(), color=colour, alpha=0.08)
        share = float((last > large).float().mean())
        ax.set(ylabel="rate", title=f"{layer} ({name}): {share:.0%} of the last task's are large")
    axes[1, 0].set(xlabel="task", xticks=range(1, tasks + 1))
    return figure


def _two_tasks(what: str, label: str) -> Figure:
    figure, axes = subplots(1, 3, size=2.8, sharey=True)
    for ax, (name, course) in zip(axes[0], two_tasks().items(), strict=True):
        values = torch.tensor(course[what])
        mean = values.unfold(0, 50, 1).mean(-1)
        ax.plot(values.numpy(), color=COLOURS[5], linewidth=0.5)
        ax.plot(range(25, 25 + len(mean)), mean.numpy(), "--", color="black")
        ax.axvline(len(values) / 2, color=COLOURS[1], linewidth=1)
        ax.set(title=f"{name}: mean {float(values.mean()):.4f}", xlabel="update")
    axes[0, 0].set_ylabel(label)
    return figure


def figure_6_11() -> Figure:
    """The losses of MLP, Res-MLP and HCN on MNIST, then on KMNIST (its test images)."""
    return _two_tasks("loss", "loss")


def figure_6_12() -> Figure:
    """The mean absolute gradients of their second layers."""
    return _two_tasks("gradient", "mean |gradient| of layer 2")
