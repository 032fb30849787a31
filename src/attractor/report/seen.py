"""What there is to see in a trained network: figures, each with a sentence of its numbers."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor import dynamics
from attractor.cells import Recurrent
from attractor.report.figures import COLOURS, Figure
from attractor.report.written import SCALE
from attractor.results.numbers import plural
from attractor.tasks import IGNORE

WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}
"""Small numbers of fixed points."""

LARGEST = 400
"""Numbers of a state beyond which Jacobians are left out."""
LONGEST = 200
"""Steps of a sequence beyond which it is cut."""


@dataclass(frozen=True)
class Seen:
    """A figure and a sentence that says what is seen in it."""

    figure: Figure
    sentence: str


def layout(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Axes with titles, on a page that chooses the colours."""
    return {
        "xaxis": {"title": {"text": x}, "zeroline": False},
        "yaxis": {"title": {"text": y}, "zeroline": False},
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        **more,
    }


def line(values: Tensor, name: str, colour: str = COLOURS[0]) -> dict[str, Any]:
    """A line over steps, without what is no number."""
    shown = [v if torch.isfinite(torch.tensor(v)) else None for v in values.double().tolist()]
    return {"type": "scatter", "mode": "lines", "y": shown, "name": name, "line": {"color": colour}}


def recurrent_input(model: nn.Module, told: tuple[Tensor, ...]) -> tuple[nn.Module, Tensor] | None:
    """The first recurrent layer of a model, and what it reads ``(time, batch, features)``.

    Args:
        model: a network.
        told: what it is called with.
    """
    kinds = (Recurrent, nn.RNN, nn.GRU, nn.LSTM)
    layer = next((one for one in model.modules() if isinstance(one, kinds)), None)
    if layer is None or layer.bidirectional:
        return None
    heard: list[Any] = []
    handle = layer.register_forward_pre_hook(lambda module, given: heard.append(given[0]))
    try:
        with torch.no_grad():
            model(*told)
    finally:
        handle.remove()
    given = heard[0]
    if isinstance(given, PackedSequence):
        given = pad_packed_sequence(given)[0]
    elif layer.batch_first:
        given = given.movedim(0, 1)
    return layer, given[:LONGEST]


def gates_seen(layer: nn.Module, x: Tensor) -> list[Seen]:
    """A map of the gate that keeps (or of the first) along one sequence."""
    found = dynamics.gates(layer, x)
    names = [name for name in ("f", "f1", "z", "z1", *found.gates) if name in found.gates]
    if not names:
        return []
    name = names[0]
    value = found.gate(name)
    low, high = found.saturation(name)
    traces = [
        {
            "type": "heatmap",
            "z": value[:, 0].T.tolist(),
            "colorscale": SCALE,
            "zmin": min(0.0, float(value.min())),
            "zmax": 1,
        }
    ]
    told = (
        f"Over {x.shape[1]} sequences of {len(x)} steps the gate {name} is "
        f"{float(value.mean()):.3f} on average; it is within 0.1 of its lower end {low:.1%} of the "
        f"time and of its upper end {high:.1%}."
    )
    if name.startswith("f"):
        scale = found.time_scale(name)
        told += (
            f" The median unit forgets over {float(scale.median()):.1f} steps, the slowest over "
            f"{float(scale.max()):.1f}."
        )
    figure = Figure(f"Gate {name} along one sequence", True, traces, layout("step", "unit"))
    seen = [Seen(figure, told)]
    if {"f", "i"} <= found.gates.keys() and "c" in found.states:
        seen.append(_phases(found))
    return seen


def _phases(found: dynamics.Gates) -> Seen:
    told = dynamics.phases(found)
    size = found.states["c"].abs().mean((1, 2))
    figure = Figure(
        "Catch and release",
        False,
        [
            line(told.release.double().mean((1, 2)), "units in release"),
            line(size / size.max(), "mean |c|, of its largest", COLOURS[1]),
        ],
        layout("step", "share"),
    )
    return Seen(
        figure,
        f"The gates release (f + i > 1) {told.released:.1%} of the time. The cell state grows in "
        f"{told.grows_in_release:.1%} of those steps, and in {told.grows_in_catch:.1%} of the "
        f"steps that catch; a unit changes its phase {told.reversals:.2f} times per step.",
    )


def gradients_seen(layer: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor]) -> Seen:
    """How much gradient reaches each step."""
    norms = dynamics.gradient_norms(layer, x, loss).norms
    traces = [
        line(value.mean(-1), name, COLOURS[place % len(COLOURS)])
        for place, (name, value) in enumerate(norms.items())
        if float(value.max()) > 0
    ]
    name = next(iter(norms))
    first, last = float(norms[name][0].mean()), float(norms[name][-1].mean())
    ratio = first / last if last else float("nan")
    shown = layout("step", "norm of the gradient")
    if first > 0:
        shown["yaxis"]["type"] = "log"
    return Seen(
        Figure("Gradient at each step", False, traces, shown),
        f"At the first step the gradient of {name} is {first:.3g}, at the last {last:.3g}: "
        f"after {len(x) - 1} steps back it is {ratio:.2g} times as long, a factor of "
        f"{ratio ** (1 / max(1, len(x) - 1)):.3f} per step.",
    )


def fixed_seen(layer: nn.Module, x: Tensor) -> list[Seen]:
    """The eigenvalues at the fixed points under the mean input."""
    mean = x.double().mean((0, 1))
    if dynamics.system(layer, input=mean).size > LARGEST:
        return []
    found = dynamics.fixed_points(layer, 64, input=mean)
    circle = torch.linspace(0, 2 * torch.pi, 200)
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": circle.cos().tolist(),
            "y": circle.sin().tolist(),
            "name": "unit circle",
            "line": {"color": COLOURS[6], "dash": "dash"},
        }
    ]
    for place, (values, kind) in enumerate(zip(found.eigenvalues, found.stability, strict=True)):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": values.real.tolist(),
                "y": values.imag.tolist(),
                "name": f"point {place + 1}, {kind}",
                "marker": {"color": COLOURS[place % 6], "size": 5},
            }
        )
    shown = layout("real part", "imaginary part")
    shown["yaxis"]["scaleanchor"] = "x"
    figure = Figure("Eigenvalues at the fixed points", False, traces, shown)
    return [Seen(figure, f"Under the mean input, {_fixed_told(found)}")]


def _fixed_told(found: dynamics.FixedPoints) -> str:
    """How many there are, and how fast a disturbance fades at the first."""
    if not len(found):
        return f"none of {found.starts} starts led to a fixed point."
    kinds = Counter(found.stability)
    which = " and ".join(f"{WORDS.get(n, n)} {kind}" for kind, n in kinds.items())
    slow = f" It also has {plural(len(found.slow), 'slow point')}." if len(found.slow) else ""
    points = "fixed point" if len(found) == 1 else "fixed points"
    radius = float(found.eigenvalues[0].abs().max())
    whose = "Its" if len(found) == 1 else "At the first, the"
    told = (
        f"{int(found.reached.sum())} of {found.starts} starts led to {which} {points}. "
        f"{whose} largest eigenvalue has modulus {radius:.3f}"
    )
    if radius >= 1:
        return f"{told}.{slow}"
    steps = -1 / math.log(radius) if radius > 0 else 0.0
    about = f"{steps:.1f}" if steps < 10 else f"{steps:,.0f}"
    return f"{told}, so a disturbance fades to 1/e in about {about} steps.{slow}"


def jacobian_seen(layer: nn.Module, x: Tensor) -> list[Seen]:
    """The singular values of the Jacobian over more and more steps."""
    if dynamics.system(layer).size > LARGEST:
        return []
    found = dynamics.long_term_jacobian(layer, x[:64, 0])
    values = found.singular_values
    traces = [
        line(values[:, place].clamp_min(1e-300), f"number {place + 1}", COLOURS[place])
        for place in range(min(3, values.shape[1]))
    ]
    shown = layout("steps", "singular value")
    shown["yaxis"]["type"] = "log"
    rate = float(found.rates[-1])
    trend = "vanish" if rate < 0.99 else "explode" if rate > 1.01 else "keep their size"
    told = (
        f"After {len(values)} steps the largest singular value is {float(values[-1, 0]):.3g}, a "
        f"factor of {rate:.3f} per step: gradients {trend}."
    )
    return [Seen(Figure("Singular values of the long-term Jacobian", False, traces, shown), told)]


def portrait_seen(layer: nn.Module, x: Tensor) -> list[Seen]:
    """Courses of the state in the three directions that hold most of its variance."""
    found = dynamics.gates(layer, x)
    name, states = next(iter(found.states.items()))
    flat = states.flatten(2)
    every = flat.flatten(0, 1)
    if flat.shape[-1] < 3:
        return []
    centre = every.mean(0)
    _, values, axes = torch.linalg.svd(every - centre, full_matrices=False)
    share = values.square() / values.square().sum()
    traces = []
    for place in range(min(6, flat.shape[1])):
        a, b, c = ((flat[:, place] - centre) @ axes[:3].T).T.tolist()
        look = {"color": COLOURS[place % len(COLOURS)], "width": 3}
        traces.append({"type": "scatter3d", "mode": "lines", "x": a, "y": b, "z": c, "line": look})
        traces[-1]["name"] = f"sequence {place + 1}"
    return [
        Seen(
            Figure("Courses of the state", True, traces, _space(share)),
            f"Three directions hold {float(share[:3].sum()):.0%} of the variance of {name} "
            f"({float(share[0]):.0%}, {float(share[1]):.0%}, {float(share[2]):.0%}).",
        )
    ]


def _space(share: Tensor) -> dict[str, Any]:
    """Three directions with the share of the variance that each holds, and the key below."""
    axes = {
        f"{name}axis": {"title": {"text": f"direction {place + 1} ({float(share[place]):.0%})"}}
        for place, name in enumerate("xyz")
    }
    return {
        "scene": axes,
        "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "top"},
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
    }


def curvature_seen(model: nn.Module, loss: Callable[[], Tensor]) -> list[Seen]:
    """The leading eigenvalues of the Hessian and a plane of the loss around the network."""
    found = dynamics.hessian_eigenvalues(loss, model, 10)
    values = found.values.tolist()
    traces: list[dict[str, Any]] = [{"type": "bar", "x": [*range(1, len(values) + 1)], "y": values}]
    traces[0]["marker"] = {"color": COLOURS[0]}
    bars = layout("number, by size", "eigenvalue")
    bars["xaxis"]["dtick"] = 1
    step = dynamics.step_condition(loss, model, 1e-3)
    way = f"lowers the loss for learning rates up to {step.largest_rate:.3g}"
    if step.largest_rate == float("inf"):
        way = "lowers the loss for every learning rate"
    plane = dynamics.landscape(loss, model, low=-0.5, high=0.5, samples=13)
    assert plane.y is not None
    traces_2 = [
        {
            "type": "contour",
            "x": plane.x.tolist(),
            "y": plane.y.tolist(),
            "z": plane.loss.tolist(),
            "colorscale": SCALE,
        }
    ]
    here = float(plane.loss[6, 6])
    return [
        Seen(
            Figure("Leading eigenvalues of the Hessian", False, traces, bars),
            f"{eigenvalues_told(values)} To second order, a gradient step {way}.",
        ),
        Seen(
            Figure("Loss around the network", False, traces_2, layout("first", "second")),
            f"When each filter is moved by half its own length, the loss rises from {here:.3g} to "
            f"at most {float(plane.loss.max()):.3g}. Its lowest value on the plane is "
            f"{float(plane.loss.min()):.3g}, at ({plane.lowest[0]:.2f}, {plane.lowest[1]:.2f}).",
        ),
    ]


def eigenvalues_told(values: Sequence[float]) -> str:
    """The largest, and the most negative one or that there is none.

    Example:
        >>> eigenvalues_told([3.0, 0.6])
        'The largest eigenvalue is 3; none of the 2 is negative, and the smallest is 0.6.'
    """
    low, high = min(values), max(values)
    told = f"The largest eigenvalue is {high:.3g}"
    if low < 0:
        return f"{told}, and the most negative of the {len(values)} is {low:.3g}."
    return f"{told}; none of the {len(values)} is negative, and the smallest is {low:.3g}."


def depth_seen(
    model: nn.Module, told: tuple[Tensor, ...], loss: Callable[[Tensor], Tensor]
) -> list[Seen]:
    """How much gradient reaches each layer of a network without recurrence."""
    found = dynamics.gradient_by_depth(model, told, loss)
    if len(found.names) < 2:
        return []
    bars = {"type": "bar", "x": list(found.names), "y": found.parameters.tolist()}
    first, last = float(found.outputs[0]), float(found.outputs[-1])
    return [
        Seen(
            Figure("Gradient of each layer", False, [bars], layout("layer", "norm")),
            f"The gradient at the output of {found.names[0]} is "
            f"{first / last if last else 0:.2g} times that at {found.names[-1]}.",
        )
    ]


def answered(model: nn.Module, y: Tensor, time: int) -> Callable[[Tensor], Tensor]:
    """The loss of a layer's outputs through the model's readout, or their sum without one."""
    readout = getattr(model, "readout", None)
    if not isinstance(readout, nn.Linear) or y.is_floating_point():
        return lambda output: output[-1].sum()
    W, b = readout.weight.detach().double(), readout.bias.detach().double()
    once = y.dim() == 1

    def loss(output: Tensor) -> Tensor:
        if once:
            return F.cross_entropy(F.linear(output[-1], W, b), y)
        answers, asked = F.linear(output, W, b).movedim(0, 1), y[:, :time]
        if asked.dim() == 2:
            return F.cross_entropy(answers.flatten(0, 1), asked.flatten())
        told = asked != IGNORE  # bits, several at each step
        return F.binary_cross_entropy_with_logits(answers[told], asked[told].double())

    return loss
