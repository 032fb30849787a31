"""Vector fields, basins, landscapes and wormholes against what is known."""

import pytest
import torch
from torch import nn

from attractor.dynamics import (
    along_trajectory,
    euler,
    filter_direction,
    landscape,
    minimum,
    path_lengths,
    pca_plane,
    shortest_paths,
    slice_plane,
    urmann_hit,
    vector_field,
)
from attractor.dynamics.fields import Plane
from attractor.dynamics.landscapes import Landscape
from attractor.errors import InputError


def double_well(u: torch.Tensor) -> torch.Tensor:
    return torch.stack([u[..., 0] - u[..., 0] ** 3, -2 * u[..., 1]], -1)


def test_two_basins_are_parted_by_the_line_between_them() -> None:
    field = vector_field(
        euler(double_well, 0.1), low=(-2.0, -1.0), high=(2.0, 1.0), samples=20, basins=300
    )
    assert field.points is not None
    assert field.basins is not None
    assert sorted(field.points.stability) == ["saddle", "stable", "stable"]
    left, right = field.basins[:, :10], field.basins[:, 10:]
    assert bool((left == left[0, 0]).all() and (right == right[0, 0]).all())
    assert int(left[0, 0]) != int(right[0, 0])
    x, y = field.x[3], field.y[5]
    expected = 0.1 * double_well(torch.stack([x, y]))
    torch.testing.assert_close(field.movement[5, 3], expected)


def test_planes_lift_and_project() -> None:
    g = torch.Generator().manual_seed(0)
    axes = torch.linalg.qr(torch.randn(5, 2, generator=g, dtype=torch.float64)).Q.T * 3
    plane = Plane(torch.arange(5.0).double(), axes)
    coordinates = torch.randn(4, 2, generator=g, dtype=torch.float64)
    torch.testing.assert_close(plane.project(plane.lift(coordinates)), coordinates)
    with pytest.raises(InputError, match="from 0 to 2, but got 3"):
        slice_plane(3, 0, 3)
    with pytest.raises(InputError, match="at least three states"):
        pca_plane(torch.zeros(2, 4))


def test_a_slice_of_a_larger_state() -> None:
    A = torch.diag(torch.tensor([0.5, 0.2, 0.9], dtype=torch.float64))
    field = vector_field(lambda s: A @ s, slice_plane(3, 0, 2), samples=3)
    torch.testing.assert_close(field.movement[2, 0], torch.tensor([1.0, -0.2], dtype=torch.float64))


@pytest.mark.parametrize("memory", ["tardis", "umann"])
def test_paths_are_as_long_as_expected(memory: str) -> None:
    found = path_lengths(memory, steps=120, cells=20, simulations=4000)  # type: ignore[arg-type]
    assert found.expected == 5.0
    assert abs(found.mean - 5.0) <= 4 * found.error + 1e-12
    exact = found.lengths.sum(-1)
    assert bool((exact == 100).all()) == (memory == "tardis")


def test_shortest_paths_against_a_search_of_the_graph() -> None:
    """One run of TARDIS by hand: the same draws, and a breadth-first search."""
    g = torch.Generator().manual_seed(5)
    found = shortest_paths("tardis", cells=4, start=2, end=20, simulations=1, generator=g)
    g = torch.Generator().manual_seed(5)
    held: list[int] = []
    edges: dict[int, set[int]] = {}
    for time in range(21):
        read = int(torch.randint(min(time, 4), (1,), generator=g)) if time else None
        edges[time] = ({time - 1} if time else set()) | (
            {held[read]} if read is not None else set()
        )
        if time < 4:
            held.append(time)
        else:
            assert read is not None
            held[read] = time
    reached, length = {20}, 0
    while 2 not in reached:
        reached, length = {s for t in reached for s in edges[t]}, length + 1
    assert int(found.lengths[0]) == length


def test_larger_memories_shorten_paths_and_the_part_outside_of_them() -> None:
    """The caption of figure 3.5 is right, not the text, whose second part falls with it."""
    few, many = (shortest_paths("tardis", cells=k, simulations=2000) for k in (2, 30))
    assert float(many.lengths.double().mean()) < float(few.lengths.double().mean()) / 3
    assert float(many.outside.double().mean()) < float(few.outside.double().mean())


def test_the_hits_of_urmann_are_those_of_a_simulation() -> None:
    g = torch.Generator().manual_seed(0)
    t0, t1, k = 5, 50, 10
    hit = torch.zeros(20_000, dtype=torch.bool)
    for m in range(k // 2):
        read = torch.randint(t1 - m, (20_000,), generator=g)
        hit |= (read >= t0) & (read < t0 + k // 2)
    assert float(hit.double().mean()) == pytest.approx(urmann_hit(t0, t1, k), abs=0.015)


def test_near_its_end_urmann_has_fewer_steps_to_hit() -> None:
    missed = (1 - 2 / 50) * (1 - 1 / 49)  # two steps to hit, then one, then none
    assert urmann_hit(48, 50, 10) == pytest.approx(1 - missed)


def test_half_of_the_reads_of_urmann_come_after_a_random_step_and_halve_the_path() -> None:
    g = torch.Generator().manual_seed(0)
    t1 = 1000
    t0 = torch.randint(t1, (100_000,), generator=g)
    read = torch.randint(t1, (100_000,), generator=g)
    after = read >= t0
    assert float(after.double().mean()) == pytest.approx(0.5, abs=0.01)
    shorter = (read - t0 + 1)[after].double() / (t1 - t0)[after]
    assert float(shorter.mean()) == pytest.approx(0.5, abs=0.01)


def test_a_landscape_puts_the_network_back() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    before = [p.clone() for p in model.parameters()]
    x = torch.randn(5, 3)
    directions = [
        filter_direction(model),
        filter_direction(model, torch.Generator().manual_seed(9)),
    ]
    found = landscape(
        lambda: model(x).square().mean(), model, directions, low=-1, high=2, samples=4
    )
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    W = before[0] + 2 * directions[0][0] + 0.0 * directions[1][0]
    expected = (x @ W.T + before[1]).square().mean().detach()
    assert float(found.loss[1, 3]) == pytest.approx(float(expected), rel=1e-5)
    assert found.y is not None


def test_the_plane_of_a_trajectory_holds_it() -> None:
    w = nn.Parameter(torch.zeros(3))
    way = torch.tensor([[3.0, 0.0, 1.0], [2.0, 1.0, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 1.0]])
    found = along_trajectory(lambda: (w**2).sum(), [w], way, samples=21)
    assert found.path is not None
    assert found.explained is not None
    assert sum(found.explained) == pytest.approx(1.0)
    low, high = found.path[:, 0].min(), found.path[:, 0].max()
    wide = along_trajectory(lambda: (w**2).sum(), [w], way, samples=21, margin=0.5)
    assert float(wide.x[0]) == pytest.approx(float(low - 0.5 * (high - low)), abs=1e-6)
    assert float(wide.x[-1]) == pytest.approx(float(high + 0.5 * (high - low)), abs=1e-6)
    torch.testing.assert_close(found.path.norm(dim=-1).float(), way[:, :2].norm(dim=-1))
    assert float(found.loss.min()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(w, torch.zeros(3))


def test_depth_and_widths_of_a_minimum() -> None:
    x = torch.linspace(-3, 3, 601, dtype=torch.float64)
    wide = minimum(Landscape(x, None, -torch.exp(-((x / 2) ** 4))))
    sharp = minimum(Landscape(x, None, -torch.exp(-((x / 0.5) ** 2))))
    assert wide.bottom > 3 * sharp.bottom
    assert sharp.mouth == pytest.approx(6.0)
    assert sharp.bottom == pytest.approx(2 * 0.5 * 0.1054**0.5, abs=0.03)
