"""Short trainings: rates of MetaSGD-CL, gradients on two tasks, a learned rule and two minima."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from attractor.cells import DecayNetCell
from attractor.continual import Learner, MetaSGDCL, train
from attractor.dynamics import gates, rate_shares
from attractor.models import HCN, MLP, ResMLP
from attractor.optimisers import choose
from attractor.reproduction.computed.found import Found
from attractor.reproduction.computed.memories import SEEDS
from attractor.tasks import MNIST
from attractor.tasks.streams import image_sets, permuted_images

LAYERS = {"layer 1": 784 * 100 + 100, "layer 2": 100 * 100 + 100, "softmax layer": 100 * 10 + 10}


def rates(data: Path | None) -> Iterator[Found]:
    """Shares of large and small rates of MetaSGD-CL with a bound of 0.1 (000, table 6.3)."""
    for seed in range(3):
        g = Generator().manual_seed(seed)
        stream = permuted_images(dataset="mnist", tasks=10, root=data, generator=g)
        model = MLP([784, 100, 100, 10], init="xavier", generator=g)
        strategy = MetaSGDCL(kappa=0.1)
        train(model, stream, strategy, iterations=100, seed=seed)
        parts = torch.split(strategy.frozen, list(LAYERS.values()), dim=1)
        for layer, part in zip(LAYERS, parts, strict=True):
            shares = rate_shares(part)
            for task in (2, 4, 6, 8, 10):
                for words, kind in (("above 0.05", shares.large), ("below 0.02", shares.small)):
                    value = 100 * float(kind[task - 1])
                    yield Found(f"rates {words}, {layer}", f"task {task}", value, seed)
                    yield Found(f"{layer}, task {task}", f"percent {words}", value, seed)


NETWORKS: dict[str, Callable[..., nn.Module]] = {"MLP": MLP, "Res-MLP": ResMLP, "HCN": HCN}


@cache
def two_tasks(seed: int = 0, root: Path | None = None) -> dict[str, dict[str, list[float]]]:
    """Losses and mean gradients of layer 2 of three networks, on MNIST and then on KMNIST.

    Each is 525 updates with ten images, normalised, by SGD at 0.01.
    """
    stream = image_sets(datasets=["mnist", "kmnist_test"], root=root)
    found: dict[str, dict[str, list[float]]] = {}
    for name, kind in NETWORKS.items():
        model = kind([784, 100, 100, 10], init="xavier", generator=Generator().manual_seed(seed))
        middle = next(p for p in model.parameters() if p.shape == (100, 100))
        sgd = partial(torch.optim.SGD, lr=0.01)
        learner = Learner(model, stream, optimiser=sgd, iterations=525, seed=seed)
        losses, norms = [], []
        while not learner.done:
            [row, *_] = learner.advance()
            assert middle.grad is not None
            losses.append(row["loss"])
            norms.append(float(middle.grad.abs().mean()))
        found[name] = {"loss": losses, "gradient": norms}
    return found


def _course(what: str) -> Callable[[Path | None], Iterator[Found]]:
    def found(data: Path | None) -> Iterator[Found]:
        for seed in range(10):
            for name, course in two_tasks(seed, data).items():
                yield Found(name, f"mean {what}", sum(course[what]) / len(course[what]), seed)

    return found


losses = _course("loss")
gradients = _course("gradient")


def valley(theta: Tensor) -> Tensor:
    """Two minima of a line, each number on its own: 1.5 at -1, and 0.5 at 2, beyond a hill.

    Example:
        >>> [round(float(one), 1) for one in valley(torch.tensor([-1.0, 0.3, 2.0]))]
        [1.5, 2.5, 0.5]
    """
    near, far = torch.exp(-((theta + 1) ** 2) / 0.3), torch.exp(-((theta - 2) ** 2) / 0.5)
    return 2.5 - near - 2 * far


RULES = {"LSTM": "lstm", "IHC-LSTM": "ihc_lstm", "DecayNet": "decaynet"}


def nearest(data: Path | None = None, starts: int = 50, updates: int = 1000) -> Iterator[Found]:
    """Where learned rules that come with attractor end beside two minima (000, figure 5.1)."""
    for name, key in RULES.items():
        model = nn.Linear(1, starts, bias=False)
        with torch.no_grad():
            model.weight.copy_(torch.linspace(-1.8, -0.4, starts)[:, None])
        optimiser = choose({"name": key, "pretrained": "mlp"}, model)(model.parameters())
        for _ in range(updates):
            optimiser.zero_grad()
            valley(model.weight).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        ended = model.weight.detach()
        near = ((ended + 1).abs() < 0.5).double().mean()
        yield Found(f"{name}-optimiser", "starts that end in the nearer minimum", float(near))


def decay_sums(data: Path | None) -> Iterator[Found]:
    """Sums in DecayNet's forget gate, weights from U(-1, 1), on psMNIST (000, section 4.1.4.1)."""
    x = next(MNIST(order="permuted", root=data).held_out("test", 100)).x.movedim(0, 1)
    for seed in SEEDS:
        cell = DecayNetCell(1, 100, length=784, generator=Generator().manual_seed(seed))
        n, double = cell.hidden_size, torch.float64
        with torch.no_grad():
            before = gates(cell, x).before["h"]
            sums = (
                x.to(double) @ cell.weight_ih[:n].to(double).T
                + before @ cell.weight_hh[:n].to(double).T
            )
        row = "DecayNet, weights U(-1, 1)"
        yield Found(row, "lower bound of W_F x + U_F h", float(sums.min()), seed)
        yield Found(row, "upper bound of W_F x + U_F h", float(sums.max()), seed)
        within = float((sums.abs() <= 3).double().mean())
        yield Found(row, "share of sums within 3", within, seed)
