"""Trained networks and optimisers as systems: what docs/dynamics.md says of them.

``highways``: HCNs trained on three permutations of digits, one after the other: how many
attractors do the states of each task's samples go to? And beside it the layer of a Res-MLP, which
is not damped, passed as often.

``energies``: full batches of digits through an MLP: how often do loss and energy rise under SGD,
momentum and NAG?

``rules``: where the memory of the shipped optimisers rests under constant gradients.

``spectra``: the singular values that the shipped MTL2L makes of the data sets of its meta-training
and of those that it has not seen.

``wormholes``: a TARDIS trained to copy, beside one that is not trained.

    python benchmarks/trained_systems.py [PART ...] [--seeds 3] [--data DATA]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.continual import train
from attractor.dynamics import (
    RuleMap,
    energy,
    hessian_eigenvalues,
    highway_ends,
    read_graph,
    rule_fixed_points,
    spectra,
)
from attractor.models import HCN, MLP, ResMLP, SequenceTagger
from attractor.optimisers import DMSGD, MTL2L, DecayNetOptimiser, IHCLSTMOptimiser, LSTMOptimiser
from attractor.reproduction.computed.depth import distinct
from attractor.tasks import CopyMemory, Digits
from attractor.tasks.images.files import load_images
from attractor.tasks.streams import Stream, permuted_images
from attractor.training import fit

SIZES = [64, 32, 32, 10]


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def undamped(model: Any, x: Tensor, passes: int = 50) -> float:
    """How many times as large a state is after so many passes of the layer of a Res-MLP."""
    with torch.no_grad():
        k = start = torch.relu(model.first(x)).double()
        W, b = model.layers[0].weight.double(), model.layers[0].bias.double()
        for _ in range(passes):
            k = k + torch.relu(k @ W.T + b)
        return float((k.norm(dim=1) / start.norm(dim=1)).median())


def learnt(kind: Callable[..., nn.Module], stream: Stream, seed: int) -> nn.Module:
    return train(kind(SIZES, generator=seeded(seed)), stream, iterations=300, seed=seed).model


def highways(seeds: int, data: Path | None) -> None:
    print("attractors that 50 samples of each task go to (share of those that come to rest)")
    for seed in range(seeds):
        stream = permuted_images(dataset="digits", tasks=3, generator=seeded(seed))
        model, said = learnt(HCN, stream, seed), []
        assert isinstance(model, HCN)
        for task in stream:
            x = next(task.held_out("test", 50)).x
            ends = highway_ends(model, x, steps=3000)
            still = ends[~ends.isnan().any(1)]
            said.append(f"{distinct(still)} ({len(still) / len(ends):.2f})")
        times = undamped(learnt(ResMLP, stream, seed), x)
        print(f"seed {seed}: {', '.join(said)}; a Res-MLP's states grow {times:.2g} times in 50")


def energies(seeds: int, data: Path | None) -> None:
    batch = next(Digits(order="flat").held_out("test", 300))
    print("rises in 300 steps of loss, energy")
    for seed in range(seeds):
        model = MLP([64, 32, 10], generator=seeded(seed))

        def loss(model: nn.Module = model) -> Tensor:
            return F.cross_entropy(model(batch.x), batch.y)

        steep = float(hessian_eigenvalues(loss, model.parameters(), 1).values[0])
        for method in ("sgd", "momentum", "nag"):
            for share in (0.5, 10.0):
                rate = share * 2 * (1 - (method != "sgd") * 0.9) / steep
                found = energy(loss, model.parameters(), method, rate=rate, steps=300)
                end = float(found.losses[-1])
                rises = f"{found.loss_rises}, {found.energy_rises}"
                print(f"seed {seed} {method} at {share:g} of the bound: {rises}; loss {end:.3g}")


def rules(seeds: int, data: Path | None) -> None:
    for kind in (LSTMOptimiser, DecayNetOptimiser, IHCLSTMOptimiser, DMSGD):
        rule = kind.pretrained("mlp")
        for gradient in (1.0, 0.1, 0.001, 0.0):
            found = rule_fixed_points(rule, gradient, starts=40)
            made = RuleMap(rule, gradient)
            steps = [f"{float(made.step(point)):.3g}" for point in found.points]
            slow = [f"{float(one.abs().max()):.3f}" for one in found.eigenvalues]
            print(f"{kind.__name__} at {gradient:g}: {found}; steps {steps}, |eigenvalue| {slow}")


def shown(name: str, data: Path | None) -> Tensor:
    """Forty batches of 64 test images."""
    return load_images(name, "test", data).x[: 40 * 64].reshape(40, 64, 784) / 255


def singular(seeds: int, data: Path | None) -> None:
    sets = {name: shown(name, data) for name in ("mnist", "fashion_mnist", "kmnist")}
    sets["noise"] = torch.rand(40, 64, 784, generator=seeded(0))
    found = spectra(MTL2L.pretrained("mlp"), sets)
    print(f"batches of 64 told apart: {found.told_apart:.3f}; spreads {found.spread()}")
    means = {name: rows.mean(0) for name, rows in found.values.items()}
    for name, one in means.items():
        print(name, {key: f"{float((one - other).norm()):.3g}" for key, other in means.items()})
        print(f"    of the others: {found.mixture(name)}")


def wormholes(seeds: int, data: Path | None) -> None:
    task = CopyMemory(lag=10)
    x = next(task.held_out("test", 8)).x
    for seed in range(seeds):
        model: Any = SequenceTagger(
            "tardis", task.input_size, 32, task.output_size, cells=10, generator=seeded(seed)
        )
        for updates in (0, 1500):
            if updates:
                adam = {"name": "adam", "lr": 0.003}
                fit(model, task, optimiser=adam, steps=updates, clip=1.0, seed=seed, batch_size=16)
            graphs = [read_graph(model.recurrent.cells[0], one) for one in x]
            length = torch.stack([graph.lengths[-1] for graph in graphs]).double().mean()
            degrees = torch.cat([graph.degrees for graph in graphs])
            print(
                f"seed {seed}, {updates} updates: from the last of {x.shape[1]} steps to the first "
                f"{float(length):.2f}; edges at a step {float(degrees.double().mean()):.2f}, at "
                f"most {int(degrees.max())}"
            )


PARTS = {
    "highways": highways,
    "energies": energies,
    "rules": rules,
    "spectra": singular,
    "wormholes": wormholes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    for name in options.parts or PARTS:
        print(f"\n{name}")
        PARTS[name](options.seeds, options.data)


if __name__ == "__main__":
    main()
