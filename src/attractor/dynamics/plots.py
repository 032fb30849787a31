"""Draw what was computed, on a given axis, with matplotlib (the extra ``figures``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from attractor.errors import InputError
from attractor.files import check_target, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attractor.dynamics.equilibria import Equilibria
    from attractor.dynamics.fields import Field
    from attractor.dynamics.fixed import FixedPoints
    from attractor.dynamics.landscapes import Landscape
    from attractor.dynamics.orbits import Bifurcation, Cobweb

# Okabe and Ito's colours, which the colour-blind can tell apart, without yellow
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "attractor",  # the same figure is the same file
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
}
FORMATS = (".svg", ".png", ".pdf")


@contextmanager
def styled() -> Iterator[None]:
    """The look of all figures, for what is drawn within."""
    matplotlib = require()
    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
        yield


def require() -> Any:
    """matplotlib, or a sentence on how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(
            "expected matplotlib for figures, but it is not installed. "
            "Try pip install 'attractor[figures]'."
        ) from error
    return matplotlib


def subplots(
    rows: int = 1, columns: int = 1, size: float = 2.6, **options: Any
) -> tuple[Figure, Any]:
    """A figure without a window, and its axes ``(rows, columns)``."""
    require()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size * columns, size * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, path: Path) -> None:
    """Write an SVG, PNG or PDF by the end of its name, at once or not at all."""
    import io

    path = check_format(path)
    kind = path.suffix.lower()[1:]
    raw = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with styled():
        figure.savefig(raw, format=kind, dpi=200, metadata=dates.get(kind))
    write_atomic(path, raw.getvalue(), lasting=False)


def check_format(path: Path) -> Path:
    """The path, once a figure can be written to it."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"expected a figure that ends in {', '.join(FORMATS)}, but got {path.name!r}. "
            f"Try {path.with_suffix('.svg').name}."
        )
    check_target(path, "--out")
    return path


def draw_cobweb(web: Cobweb, ax: Axes, *, found: Equilibria | None = None, title: str = "") -> None:
    """A cobweb in the papers' symbols.

    The outline is solid, that of the step before dot-dash, the diagonal dashed and the course
    dotted, from a rhombus to a circle. Equilibria are filled where they attract.
    """
    x, y = web.outline.T.numpy()
    ax.plot(x, x, "--", color="#555555", linewidth=1, label="y = x")
    if web.before is not None:
        ax.plot(*web.before.T.numpy(), "-.", color=COLOURS[4], linewidth=1.1, label="step before")
    ax.plot(x, y, color=COLOURS[0], label="y = T(x)")
    path = web.path.numpy()
    ax.plot(*path.T, ":", color="black", linewidth=1.3, label="course")
    ax.plot(*path[0], "D", color=COLOURS[1], markersize=6, label="start", zorder=5)
    ax.plot(*path[-1], "o", color=COLOURS[2], markersize=6, label="end", zorder=5)
    for point in found.points if found is not None else ():
        if point.period == 1 and x[0] <= point.x <= x[-1]:
            filled = "black" if point.attracts else "white"
            ax.plot(point.x, point.x, "s", color="black", markerfacecolor=filled, markersize=4)
    ax.set_xlim(x[0], x[-1])
    near = np.concatenate([path[:, 1], x])
    pad = 0.05 * (near.max() - near.min())
    ax.set_ylim(near.min() - pad, near.max() + pad)
    ax.set(xlabel="x", ylabel="y", title=title)


def draw_bifurcation(found: Bifurcation, ax: Axes, *, label: str = "r") -> None:
    """Where orbits end, by the parameter."""
    r = found.parameters.repeat_interleave(found.states.shape[1]).numpy()
    ax.plot(r, found.states.flatten().numpy(), ",", color="black", alpha=0.4, rasterized=True)
    ax.set(xlabel=label, ylabel="x")


def draw_eigenvalues(found: FixedPoints, ax: Axes) -> None:
    """The eigenvalues at each fixed point, in the complex plane with the unit circle."""
    angle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), "--", color="#555555", linewidth=1)
    shown: set[str] = set()
    kinds = ("stable", "saddle", "unstable", "neutral")
    for values, kind in zip(found.eigenvalues.numpy(), found.stability, strict=True):
        place = kinds.index(kind)
        ax.plot(
            values.real,
            values.imag,
            "os^D"[place],
            color=COLOURS[place],
            markersize=3.5,
            alpha=0.8,
            label=None if kind in shown else kind,
        )
        shown.add(kind)
    ax.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    if shown:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)  # clear of the circle


def draw_heatmap(
    values: Tensor,
    ax: Axes,
    *,
    title: str = "",
    low: float | None = None,
    high: float | None = None,
) -> None:
    """Values ``(time, units)`` as a map: time to the right, units upwards."""
    signed = low is not None and low < 0
    image = ax.imshow(
        values.T.numpy(),
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        vmin=low,
        vmax=high,
        cmap="PuOr" if signed else "cividis",
    )
    ax.figure.colorbar(image, ax=ax, shrink=0.85)
    ax.set(xlabel="step", ylabel="unit", title=title)


def draw_field(found: Field, ax: Axes, *, title: str = "") -> None:
    """Streamlines, null-clines, basins and equilibria; triangles are sinks, squares are not."""
    x, y = found.x.numpy(), found.y.numpy()
    u, v = found.movement.movedim(-1, 0).numpy()
    if found.basins is not None:
        levels = np.arange(-1.5, int(found.basins.max()) + 1.5)
        tints = ["#dddddd", "#cfe3f1", "#fbe0cf", "#cfeee4", "#f2dfea", "#fbeccc", "#def0fa"]
        ax.contourf(x, y, found.basins.numpy(), levels=levels, colors=tints[: len(levels) - 1])
    ax.streamplot(x, y, u, v, color="#555555", linewidth=0.7, density=0.9, arrowsize=0.8)
    for part, colour, line in ((u, COLOURS[1], ":"), (v, COLOURS[0], "--")):
        if part.min() < 0 < part.max():
            ax.contour(x, y, part, levels=[0], colors=[colour], linestyles=[line], linewidths=1.6)
    if found.points is not None and found.coordinates is not None:
        for place, kind in zip(found.coordinates.numpy(), found.points.stability, strict=True):
            mark, colour = ("^", COLOURS[0]) if kind == "stable" else ("s", COLOURS[1])
            ax.plot(*place, mark, color=colour, markersize=8, zorder=5)
    ax.set(xlabel="$u_1$", ylabel="$u_2$", title=title, xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))


def draw_surface(found: Landscape, ax: Any, *, title: str = "", colour: str | None = None) -> None:
    """A landscape over a plane, on an axis of three dimensions."""
    assert found.y is not None
    x, y = np.meshgrid(found.x.numpy(), found.y.numpy())
    look: dict[str, Any] = {"color": colour, "alpha": 0.5} if colour else {"cmap": "cividis"}
    ax.plot_surface(x, y, found.loss.numpy(), linewidth=0, antialiased=True, **look)
    ax.set(xlabel="$\\theta_1$", ylabel="$\\theta_2$", zlabel="loss", title=title)


def draw_contours(found: Landscape, ax: Axes, *, title: str = "") -> None:
    """A landscape over a plane from above, with the way that training took."""
    assert found.y is not None
    drawn = ax.contourf(found.x.numpy(), found.y.numpy(), found.loss.numpy(), 20, cmap="cividis")
    ax.figure.colorbar(drawn, ax=ax, shrink=0.85, label="loss")
    if found.path is not None:
        path = found.path.numpy()
        ax.plot(*path.T, ".-", color="white", linewidth=1, markersize=3)
        ax.plot(*path[0], "D", color=COLOURS[1])
        ax.plot(*path[-1], "o", color=COLOURS[2])
    ax.set(xlabel="first direction", ylabel="second direction", title=title)


def draw_portrait(states: Tensor, ax: Any, *, title: str = "") -> None:
    """A course ``(time, 3)`` in space, from a rhombus to a circle."""
    course = states.numpy()
    ax.plot(*course.T, color=COLOURS[0], linewidth=1)
    ax.plot(*course[:1].T, "D", color=COLOURS[1])
    ax.plot(*course[-1:].T, "o", color=COLOURS[2])
    ax.set(xlabel="first", ylabel="second", zlabel="third", title=title)


def draw_lines(
    series: Mapping[str, Sequence[float] | Tensor], ax: Axes, *, x: str, y: str, title: str = ""
) -> None:
    """One line for each name, with a colour and a dash of its own."""
    dashes = ("-", "--", "-.", ":")
    for place, (name, values) in enumerate(series.items()):
        ax.plot(np.asarray(values), dashes[place % 4], label=name)
    ax.set(xlabel=x, ylabel=y, title=title)
    ax.legend()


def draw_histogram(
    values: Tensor, ax: Axes, *, expected: float | None = None, title: str = ""
) -> None:
    """Whole numbers by how often they came, and what was expected."""
    whole = values.flatten().numpy()
    bins = np.arange(whole.min(), whole.max() + 2) - 0.5
    ax.hist(whole, bins=list(bins), density=True, color=COLOURS[5], edgecolor="white")
    ax.axvline(float(whole.mean()), color=COLOURS[0], label=f"mean {whole.mean():.3f}")
    if expected is not None:
        ax.axvline(expected, color=COLOURS[1], linestyle="--", label=f"expected {expected:g}")
    ax.set(xlabel="length", ylabel="share", title=title)
    ax.legend()


def draw_violins(groups: Mapping[str, Tensor], ax: Axes, *, y: str, boxes: bool = True) -> None:
    """The distribution of each group, with its median and quartiles."""
    values = [group.flatten().numpy() for group in groups.values()]
    parts: Any = ax.violinplot(values, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=COLOURS[5], alpha=0.7)
    if boxes:
        ax.boxplot(values, widths=0.12, showfliers=False, medianprops={"color": COLOURS[1]})
    ax.set_xticks(range(1, len(groups) + 1), list(groups))
    ax.set(ylabel=y)
