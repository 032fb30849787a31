"""Grids and spaces read from the command line, and the runs that they mean."""

import pytest

from attractor.errors import InputError
from attractor.experiments.grid import Axis, axes, points, sweep_runs
from attractor.experiments.space import Range, Space
from experiments.helpers import TINY


def test_values_are_cut_at_commas_outside_brackets_and_quotes() -> None:
    found = axes(["a.b=1, 2", "c=[1, 2],[3]", "d={x = 1, y = 2},5", "e='p,q',\"r\""])
    assert found == [
        Axis("a.b", ("1", "2")),
        Axis("c", ("[1, 2]", "[3]")),
        Axis("d", ("{x = 1, y = 2}", "5")),
        Axis("e", ("'p,q'", '"r"')),
    ]


def test_points_are_every_value_with_every_other() -> None:
    assert points(axes(["a=1,2", "b=3,4,5"])) == [
        [f"a={a}", f"b={b}"] for a in (1, 2) for b in (3, 4, 5)
    ]
    assert points([]) == [[]]


@pytest.mark.parametrize(
    ("grids", "said"),
    [
        (["a"], r"expected a grid as a.b=1,2,3, but got 'a'"),
        (["=1"], r"expected a grid as"),
        (["a=1,,2"], r"expected a grid as"),
        (["a=1,1"], r"values of a to differ, but got '1' twice"),
        (["a=1", "a=2"], r"the grids to differ, but got 'a' twice"),
    ],
)
def test_what_is_no_grid_is_refused(grids: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        axes(grids)


def test_runs_of_a_grid() -> None:
    grid = axes(["model.hidden_size=3,5", "optimiser.lr=0.1,0.2,0.3"])
    runs = sweep_runs(str(TINY), grid, ["train.steps=2"], ["LSTM"])
    assert len(runs) == len({run.id for run in runs}) == 2 * 3 * 2
    settings = {(run.model_dump()["model"]["hidden_size"], run.seed) for run in runs}
    assert settings == {(3, 0), (3, 1), (5, 0), (5, 1)}


def test_a_run_of_a_grid_is_the_run_that_set_makes() -> None:
    [point] = sweep_runs(str(TINY), axes(["train.steps=9"]), ["seeds=[4]"], ["GRU"])
    [alone] = sweep_runs(str(TINY), [], ["seeds=[4]", "train.steps=9"], ["GRU"])
    assert point.id == alone.id


def test_points_that_mean_the_same_run_once() -> None:
    runs = sweep_runs(str(TINY), axes(["train.checkpoint_every=3,7"]), ["seeds=[0]"], ["GRU"])
    assert len(runs) == 1


def test_cell_is_short_for_the_cell_of_the_model() -> None:
    runs = sweep_runs(str(TINY), axes(["cell=gru,nru"]), ["seeds=[0]"])
    assert [run.model_dump()["model"]["cell"] for run in runs] == ["gru", "nru"]


def test_enormous_grids_are_refused_before_anything_is_made() -> None:
    grid = [Axis(f"a{i}", tuple(map(str, range(100)))) for i in range(4)]
    with pytest.raises(InputError, match=r"at most 100,000 points, but got 100,000,000"):
        sweep_runs(str(TINY), grid)


def test_a_space_has_lists_and_ranges() -> None:
    space = Space.read(["lr=1e-4..0.1:log", "size=4..64", "cell=lstm,nru", "scale=0.5..2"])
    assert space.choices == {
        "lr": Range(1e-4, 0.1, True),
        "size": Range(4, 64, False),
        "cell": ("lstm", "nru"),
        "scale": Range(0.5, 2, False),
    }
    whole = [one.whole for one in space.choices.values() if isinstance(one, Range)]
    assert whole == [False, True, False]
    assert space.first == ["lr=0.0001", "size=4", "cell=lstm", "scale=0.5"]
    point = {"lr": 0.0123456, "size": 8, "cell": "nru", "scale": 1.0}
    assert space.changes(point) == ["lr=0.012346", "size=8", "cell=nru", "scale=1"]


@pytest.mark.parametrize("grid", ["a=2..1", "a=0..1:log", "a=1..1"])
def test_ranges_that_are_none_are_refused(grid: str) -> None:
    with pytest.raises(InputError, match=r"expected a range from a smaller to a larger number"):
        Space.read([grid])


def test_a_search_needs_something_to_choose_from() -> None:
    with pytest.raises(InputError, match=r"expected at least one --grid to search in"):
        Space.read([])


def test_a_grid_that_is_too_large_is_refused_before_it_is_laid_out() -> None:
    grid = axes([f"{key}={','.join(map(str, range(60)))}" for key in ("a", "b", "c")])
    with pytest.raises(InputError, match=r"at most 100,000 points, but got 216,000"):
        sweep_runs(str(TINY), grid)


def test_optuna_draws_evenly_in_the_logarithm_only_where_that_is_asked() -> None:
    optuna = pytest.importorskip("optuna")
    space = Space.read(["a=1..8:log", "b=1..8", "c=0.1..1:log", "d=0.1..1", "e=x,y"])
    found = space.distributions(optuna)
    assert [found[key].log for key in "abcd"] == [True, False, True, False]
    assert isinstance(found["a"], optuna.distributions.IntDistribution)
    assert isinstance(found["c"], optuna.distributions.FloatDistribution)
    assert [(found[key].low, found[key].high) for key in "ad"] == [(1, 8), (0.1, 1.0)]
    assert found["e"].choices == ("x", "y")
