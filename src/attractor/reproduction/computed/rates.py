"""Rates of learned optimisers: where they stop, and whether they converge; data by MTL2L."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from attractor.dynamics import no_update, spectra
from attractor.optimisers import DMSGD, MTL2L, MetaSGD
from attractor.optimisers.view import View
from attractor.reproduction.computed.found import Found
from attractor.tasks.images.files import load_images

SEEDS = range(10)


def stops(data: Path | None = None) -> Iterator[Found]:
    """Parameters that an untrained DMSGD leaves alone on random gradients (000, section 5.2.3.1).

    Static rates are drawn from U(0, 0.1), and the network's weights are three times as large, so
    that its rates are about as large as the static ones.
    """
    for seed in SEEDS:
        g = Generator().manual_seed(seed)
        rule = DMSGD(size=2000, generator=g).requires_grad_(False)
        rule.static.copy_(0.1 * torch.rand(2000, generator=g))
        rule.head.weight.mul_(3)
        grads = torch.randn(1, 2000, generator=g)
        view = View.of([grads[0]])
        state = rule.init(grads, view)
        rates, _ = rule.rates(grads, state, view)
        said, _ = rule.stack.read(grads, state.each, rule.p, rule.head, view)
        dynamic = torch.tanh(said[0])
        still = rates[0] == 0
        told = no_update(rule.static, dynamic)
        printed, signed = rule.static.abs() < dynamic.abs(), rule.static <= -dynamic
        yield Found("DMSGD", "share that is not updated", float(still.double().mean()), seed)
        yield Found("condition as printed", "share that it names", told.printed, seed)
        for row, condition in (("as printed", printed), ("with its sign", signed)):
            agrees = float((condition == still).double().mean())
            yield Found(f"condition {row}", "share that it tells right", agrees, seed)


def converges(data: Path | None = None) -> Iterator[Found]:
    """Losses of MetaSGD with rates that are never negative, on bowls (000, section 5.2.2).

    The loss is the half sum of c w^2 over 20 numbers, with c from U(0.1, 10); rates are
    from U(0, b), and by theory a number converges where its rate is below 2 / c.
    """
    for seed in SEEDS:
        for row, bound in (("rates below 0.1", 0.1), ("rates below 1", 1.0)):
            g = Generator().manual_seed(seed)
            curvature = 0.1 + 9.9 * torch.rand(20, generator=g)
            weight = nn.Parameter(torch.randn(20, generator=g).double())
            rule = MetaSGD(size=20).double().requires_grad_(False)
            rule.rates.copy_(bound * torch.rand(20, generator=g))
            optimiser: Any = rule([weight])
            losses = []
            for _ in range(30):
                optimiser.zero_grad()
                loss = (curvature * weight.square()).sum() / 2
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                losses.append(float(loss.detach()))
            change = math.log10(losses[-1] / losses[0])
            yield Found(row, "log10 of the loss after 30 updates over before", change, seed)


def values(data: Path | None = None) -> Iterator[Found]:
    """Singular values of the MTL2L that comes with attractor, by data set (000, section 5.1.4.1).

    A seed draws 20 batches of 64 test images of each.
    """
    names = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "kmnist": "KMNIST"}
    images = {name: load_images(name, "test", data).x.flatten(1) / 255 for name in names}
    rule, row = MTL2L.pretrained("mlp"), "MTL2L"
    for seed in SEEDS:
        g = Generator().manual_seed(seed)
        drawn = {
            name: x[torch.randperm(len(x), generator=g)[: 20 * 64]].reshape(20, 64, 784)
            for name, x in images.items()
        }
        found = spectra(rule, drawn)
        yield Found(row, "batches nearest to their own data set", found.told_apart, seed)
        for name, printed in names.items():
            left = found.mixture(name).unexplained
            yield Found(
                f"{row}, {printed} left out", "share not explained by the others", left, seed
            )
