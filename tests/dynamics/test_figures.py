"""Figures: drawn from what was computed, in the papers' symbols, by the command line too."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.dynamics import cell_map, cobweb, equilibria, fixed_points
from attractor.dynamics.landscapes import Landscape
from attractor.dynamics.plots import (
    COLOURS,
    draw_cobweb,
    draw_contours,
    draw_eigenvalues,
    draw_portrait,
    draw_violins,
    save,
    subplots,
)
from attractor.errors import InputError
from attractor.report.papers import FIGURES, draw, listed
from attractor.report.papers.table import ABSENT
from attractor.reproduction.computed.adding import additions
from attractor.reproduction.computed.systems import CELL_STATES

pytest.importorskip("matplotlib")
run = CliRunner()
QUICK = (
    "decaynet-1",
    "decaynet-2",
    "decaynet-5",
    "decaynet-7",
    "kuo-2.6",
    "kuo-2.9",
    "chandar-3.3",
)


def test_a_cobweb_has_the_papers_symbols() -> None:
    figure, axes = subplots()
    web = cobweb(cell_map(0.9, 1.0), 1.0, steps=2, before=cell_map(0.5, 0.0))
    draw_cobweb(web, axes[0, 0], found=equilibria(cell_map(0.9, 1.0)))
    lines = {line.get_label(): line for line in axes[0, 0].get_lines()}
    assert lines["start"].get_marker() == "D"
    assert lines["end"].get_marker() == "o"
    assert lines["y = x"].get_linestyle() == "--"
    assert lines["step before"].get_linestyle() == "-."
    assert lines["course"].get_linestyle() == ":"
    assert lines["end"].get_xdata()[0] == float(web.states[-1])
    assert len(figure.axes) == 1


def test_a_portrait_goes_from_a_rhombus_to_a_circle() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot(projection="3d")
    course = torch.tensor([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 8.0, 7.0]])
    draw_portrait(course, ax)
    line, start, end = ax.get_lines()
    assert [list(one) for one in line.get_data_3d()] == course.T.tolist()
    assert (start.get_marker(), end.get_marker()) == ("D", "o")
    assert [float(one[0]) for one in end.get_data_3d()] == [6.0, 8.0, 7.0]


def test_contours_have_the_way_that_training_took() -> None:
    _, axes = subplots()
    path = torch.tensor([[0.0, 2.0], [1.0, 3.0], [1.5, 2.5]])
    x, y = torch.linspace(-1, 2, 4), torch.linspace(0, 4, 3)
    draw_contours(Landscape(x, y, torch.arange(12.0).reshape(3, 4), path), axes[0, 0])
    way, start, end = axes[0, 0].get_lines()
    assert torch.equal(torch.tensor(way.get_xydata()), path.double())
    assert (start.get_marker(), end.get_marker()) == ("D", "o")
    assert axes[0, 0].get_xlim() == (-1.0, 2.0)


def test_violins_have_one_body_and_box_for_each_group() -> None:
    _, axes = subplots()
    groups = {"LSTM": torch.linspace(0, 4, 9), "DecayNet": torch.linspace(1, 2, 30)}
    draw_violins(groups, axes[0, 0], y="accuracy")
    ax = axes[0, 0]
    assert [label.get_text() for label in ax.get_xticklabels()] == list(groups)
    assert len(ax.collections) == 2
    medians = [
        float(line.get_ydata()[0]) for line in ax.get_lines() if line.get_color() == COLOURS[1]
    ]
    assert medians == pytest.approx([2.0, 1.5])


def test_eigenvalues_are_drawn_where_they_are() -> None:
    _, axes = subplots()
    draw_eigenvalues(fixed_points(lambda x: torch.tanh(3 * x), 20, size=1), axes[0, 0])
    drawn = [line.get_xdata()[0] for line in axes[0, 0].get_lines()[1:]]
    assert sorted(round(float(x), 3) for x in drawn) == [0.031, 0.031, 3.0]


@pytest.mark.parametrize("name", QUICK)
def test_figures_without_training(name: str, tmp_path: Path) -> None:
    save(draw(name), tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert text.startswith("<?xml")
    save(draw(name), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_the_gates_of_figure_2_grow_and_shrink_as_the_paper_says() -> None:
    for name, state, f, i in CELL_STATES:
        sizes = [state]
        for forget, write in zip(f, i, strict=True):
            sizes.append(float(cell_map(forget, write)(torch.tensor(sizes[-1]))))
        grows = [b > a for a, b in pairwise(sizes)]
        wanted = {"unregulated": [True, False, True], "large constant f": [True] * 3}
        assert grows == wanted.get(name, [False] * 3)


def test_additions_are_right() -> None:
    x, y = additions(50, torch.Generator().manual_seed(0))
    weights = 2 ** torch.arange(16)
    numbers = (x.long() * weights[None, :, None]).sum(1)
    assert torch.equal(numbers.sum(-1), (y[..., 0].long() * weights).sum(-1))


def test_one_figure_by_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "cobweb.svg"
    done = run.invoke(app, ["analyse", "cobweb", "--map", "tanh(3*x)", "--out", str(out)])
    assert done.exit_code == 0
    assert "sink at -0.994902" in done.output
    assert out.read_text().startswith("<?xml")


def test_bifurcations_by_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "b.png"
    done = run.invoke(app, ["analyse", "bifurcation", "--map", "r*x*(1-x)", "--out", str(out)])
    assert done.exit_code == 0
    assert out.read_bytes().startswith(b"\x89PNG")


def test_figures_are_listed() -> None:
    done = run.invoke(app, ["figure"])
    assert done.exit_code == 0
    assert all(name in done.output for name in FIGURES)
    names = [*listed()]
    assert names.index("kuo-6.3") < names.index("kuo-6.11") < names.index("kuo-6.14")
    assert "kuo-6.14      Not drawn: " in done.output
    assert not {*ABSENT} & {*FIGURES}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyse", "cobweb", "--map", "open('x')"], "part of another kind|calls 'open'"),
        (["analyse", "cobweb"], "expected a map, but got none"),
        (["analyse", "cobweb", "--map", "x*x", "--start", "2"], "leaves all bounds"),
        (["analyse", "nowhere"], "expected the folder of a run"),
        (["analyse", "nowhere", "--map", "x"], "expected cobweb or bifurcation"),
        (["figure", "decaynet-8"], "name of a known figure"),
        (["figure", "kuo-6.15"], "no.* of HCN and MLP with four strategies on incremental CIFAR-1"),
        (["figure", "decaynet-2", "--out", "x.gif"], "ends in .svg"),
    ],
)
def test_mistakes_are_said(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run.invoke(app, arguments)
    assert isinstance(done.exception, InputError)
    with pytest.raises(InputError, match=said):
        raise done.exception
    assert list(tmp_path.iterdir()) == []
