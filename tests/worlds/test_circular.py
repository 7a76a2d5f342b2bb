from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from onlooker.worlds import CircularMotion, GridWorld, circular_expert


def polar(radius: float, degrees: float) -> list[list[float]]:
    angle = np.deg2rad(degrees)
    return [[radius * np.cos(angle), radius * np.sin(angle)]]


@pytest.mark.parametrize("sector", range(8))
@pytest.mark.parametrize("off_centre", [-20.0, 0.0, 20.0])
def test_the_expert_turns_left_inside_the_radius_and_right_outside(sector, off_centre):
    world = CircularMotion()
    for radius, turn in ((4.9, 90), (5.1, -90)):
        policy = world.policy(polar(radius, 45 * sector + off_centre))[0]
        best = round((45 * sector + turn) / 15) % 24
        want = np.zeros(24)
        want[[(best - 1) % 24, best, (best + 1) % 24]] = 1 / 3
        np.testing.assert_allclose(policy, want)


def test_the_radius_itself_is_inside():
    world = CircularMotion()
    np.testing.assert_array_equal(world.regions([[3.0, 4.0], [5.0, 0.0], [5.01, 0.0]]), [1, 0, 8])


def test_the_world_of_the_paper_is_the_default():
    world = CircularMotion()
    angles = np.deg2rad(15 * np.arange(24))
    np.testing.assert_allclose(world.dynamics.steps, np.c_[np.cos(angles), np.sin(angles)])
    assert (world.dynamics.sigma, world.n_sectors, world.radius, world.spread) == (0.2, 8, 5.0, 1)
    np.testing.assert_array_equal(
        world.policy([[4.0, 0.0]]), circular_expert([[4.0, 0.0]], n_actions=24)
    )
    grid = GridWorld()
    assert (grid.n_states, grid.n_actions) == (21**2, 8)
    same = GridWorld(21, 8, step=1.0, sigma=1.0, radius=5.0, n_sectors=8)
    np.testing.assert_array_equal(grid.dynamics.toarray(), same.dynamics.toarray())
    np.testing.assert_array_equal(grid.policy(), same.policy())


def test_a_policy_is_judged_at_every_whole_point_within_ten_of_the_origin():
    points = {tuple(point) for point in CircularMotion().coordinates.tolist()}
    assert points == {(x, y) for x in range(-10, 11) for y in range(-10, 11)}


def test_sixteen_regions_have_sixteen_or_fewer_policies():
    world = CircularMotion()
    regions = world.regions(world.coordinates)
    assert set(regions) == set(range(16))
    policy = world.policy(world.coordinates)
    for region in range(16):
        assert len(np.unique(policy[regions == region], axis=0)) == 1


def test_any_number_of_actions_and_sectors_takes_the_nearest_direction():
    world = CircularMotion(n_actions=5, n_sectors=3, spread=0)
    # Wanted 90° in the first sector; the actions are at 0°, 72°, 144°, ...
    np.testing.assert_array_equal(world.policy([[1.0, 0.0]]), [[0, 1, 0, 0, 0]])
    # Wanted 45°, halfway between 0° and 90°: the first of the two, whatever rounding does.
    world = CircularMotion(n_actions=4, n_sectors=8, spread=0)
    np.testing.assert_array_equal(world.policy(polar(1.0, -45)), [[1, 0, 0, 0]])
    np.testing.assert_array_equal(world.policy(polar(1.0, 135)), [[0, 0, 1, 0]])


def test_rollout_gives_states_and_apart_from_them_the_actions():
    world = CircularMotion()
    demos, actions = world.rollout(4, 30, random_state=0)
    assert len(demos) == len(actions) == 4
    assert demos[2].shape == (30, 2)
    assert actions[2].shape == (29,)
    assert actions[2].dtype.kind == "i"
    np.testing.assert_allclose(np.hypot(*np.array([t[0] for t in demos]).T), 1.0)


def test_rollout_takes_actions_of_the_policy_and_steps_of_the_dynamics():
    world = CircularMotion()
    demos, actions = world.rollout(200, 50, random_state=1)
    states, following = demos.transitions()
    taken = np.concatenate(actions)
    chosen = world.policy(states)[np.arange(len(taken)), taken]
    np.testing.assert_allclose(chosen, 1 / 3)
    # The three choices are equally likely: 9800 draws, five standard deviations.
    best = world.policy(states).argmax(axis=1)
    first = np.mean(taken == best)
    assert abs(first - 1 / 3) < 5 * np.sqrt(2 / 9 / len(taken))
    noise = following - states - world.dynamics.steps[taken]
    assert abs(noise.mean()) < 5 * 0.2 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.2, rel=5 / np.sqrt(2 * noise.size))


def test_the_same_seed_gives_the_same_trajectories():
    world = CircularMotion()
    one, two = world.rollout(3, 20, random_state=7), world.rollout(3, 20, random_state=7)
    assert one[0] == two[0]
    assert all(np.array_equal(a, b) for a, b in zip(one[1], two[1], strict=True))
    assert one[0] != world.rollout(3, 20, random_state=8)[0]


def test_rollout_starts_where_it_is_told():
    demos, _ = CircularMotion().rollout(2, 5, random_state=0, start=[[9.0, 0.0], [0, -3]])
    np.testing.assert_array_equal([t[0] for t in demos], [[9, 0], [0, -3]])


def test_bad_worlds_are_refused_by_name():
    with pytest.raises(ValueError, match="spread=2 needs at least 5 actions"):
        CircularMotion(n_actions=4, spread=2)
    with pytest.raises(ValueError, match=r"n_sectors must be at most 2\*\*52"):
        CircularMotion(n_sectors=10**400)
    with pytest.raises(ValueError, match="radius"):
        CircularMotion(radius=-1.0)
    with pytest.raises(ValueError, match="states must be"):
        CircularMotion().policy([1.0, 2.0])
    with pytest.raises(ValueError, match=r"nan.* at index 1"):
        circular_expert([[0.0, 0.0], [np.nan, 0.0]], n_actions=8)
    with pytest.raises(ValueError, match="length"):
        CircularMotion().rollout(1, 1)
    with pytest.raises(ValueError, match="start has 1 states for 2"):
        CircularMotion().rollout(2, 5, start=[[0.0, 0.0]])


def test_worlds_load_without_the_heavy_libraries():
    code = (
        "import sys, onlooker.worlds; "
        "print([m for m in ('numba', 'sklearn', 'pandas', 'ot', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_opposite_sectors_inside_and_outside_share_a_controller():
    world = CircularMotion()
    inside, outside = np.array([[2.0, 0.1]]), np.array([[-8.0, -0.1]])
    assert world.controllers(inside) == world.controllers(outside)
    assert world.controllers(inside) != world.controllers(-inside)
    assert len(np.unique(world.controllers(world.coordinates))) == 8
