from __future__ import annotations

import numpy as np
import pytest

from onlooker.metrics import circular_emd
from onlooker.planning import value_iteration
from onlooker.worlds import GridWorld, circular_expert, grid_dynamics


@pytest.fixture(scope="module")
def world() -> GridWorld:
    return GridWorld()


def naive_transition(size: int, state: int, angle: float, step: float, sigma: float) -> np.ndarray:
    """Density at the points of a much larger grid, each point then moved to the nearest state."""
    axis = np.arange(size) - (size - 1) / 2
    x, y = axis[state // size], axis[state % size]
    mean = np.array([x + step * np.cos(angle), y + step * np.sin(angle)])
    wide = np.arange(-size, 2 * size) - (size - 1) / 2
    probabilities = np.zeros((size, size))
    total = 0.0
    for px in wide:
        for py in wide:
            density = np.exp(-((px - mean[0]) ** 2 + (py - mean[1]) ** 2) / (2 * sigma**2))
            nearest_x = int(np.abs(axis - px).argmin())
            nearest_y = int(np.abs(axis - py).argmin())
            probabilities[nearest_x, nearest_y] += density
            total += density
    return probabilities.ravel() / total


def test_coordinates_run_from_minus_ten_to_ten(world):
    assert world.coordinates.shape == (441, 2)
    np.testing.assert_array_equal(world.coordinates[0], [-10, -10])
    np.testing.assert_array_equal(world.coordinates[1], [-10, -9])
    np.testing.assert_array_equal(world.coordinates[21], [-9, -10])
    np.testing.assert_array_equal(world.coordinates[440], [10, 10])


@pytest.mark.parametrize(("state", "action"), [(220, 0), (0, 5), (20, 3), (230, 6), (440, 1)])
def test_transitions_are_the_density_with_the_outside_moved_to_the_border(world, state, action):
    want = naive_transition(21, state, world.angles[action], 1.0, 1.0)
    got = world.dynamics.toarray()[state, action]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.7, 1.5])
def test_large_grids_are_sparse_and_equal_the_dense_table_up_to_the_tail(monkeypatch, sigma):
    dense = grid_dynamics(9, 4, sigma=sigma)
    monkeypatch.setattr("onlooker.worlds.grid._DENSE_ENTRIES", 0)
    cut = grid_dynamics(9, 4, sigma=sigma)
    assert cut.is_sparse
    assert not dense.is_sparse
    np.testing.assert_allclose(cut.toarray(), dense.toarray(), atol=1e-8)


def test_the_circling_expert_is_the_continuous_one_at_the_grid_points(world):
    want = circular_expert(world.coordinates, n_actions=8)
    np.testing.assert_array_equal(world.policy(), want)
    np.testing.assert_array_equal(world.policy([3, 3, 400]), want[[3, 3, 400]])
    np.testing.assert_array_equal((world.policy() > 0).sum(axis=1), 3)


def test_the_uniform_policy_scores_as_in_the_papers_second_example(world):
    assert circular_emd(world.policy(), np.full(8, 1 / 8)).mean() == pytest.approx(1.047, abs=5e-4)


def test_a_rewarded_worlds_expert_is_optimal():
    world = GridWorld.with_reward(0)
    assert 0 < np.count_nonzero(world.reward) < 20
    plan = value_iteration(world.dynamics, world.reward, 0.9, tolerance=1e-9)
    chosen = (world.policy() * plan.q).sum(axis=1)
    np.testing.assert_allclose(chosen, plan.q.max(axis=1), atol=1e-6)
    assert set(np.unique(world.policy())) == {0.0, 1.0}


def test_rewards_appear_with_their_chance_and_never_not_at_all():
    counts = [
        np.count_nonzero(GridWorld.with_reward(s, size=6, chance=0.02).reward) for s in range(80)
    ]
    assert min(counts) >= 1
    # Binomial(36, 0.02) without its zeros has mean 1.39 and standard deviation 0.65.
    assert abs(np.mean(counts) - 1.39) < 5 * 0.65 / np.sqrt(80)


def test_given_rewards_pull_the_expert_towards_them():
    reward = np.zeros(25)
    reward[24] = 1.0
    world = GridWorld.with_reward(size=5, sigma=0.3, reward=reward)
    middle = world.policy([12])[0].argmax()
    assert world.angles[middle] == pytest.approx(np.pi / 4)


def test_rollout_gives_states_and_apart_from_them_the_actions(world):
    demos, actions = world.rollout(6, 10, random_state=0)
    assert demos.is_discrete
    assert [len(t) for t in demos] == [10] * 6
    assert [len(a) for a in actions] == [9] * 6
    assert demos == world.rollout(6, 10, random_state=0)[0]


def test_rollout_follows_policy_and_transitions(world):
    demos, actions = world.rollout(20_000, 2, random_state=1, start=np.full(20_000, 220))
    taken = np.concatenate(actions)
    frequency = np.bincount(taken, minlength=8) / 20_000
    want = world.policy([220])[0]
    assert np.all(frequency[want == 0] == 0)
    assert np.abs(frequency - want).max() < 5 * np.sqrt(2 / 9 / 20_000)
    arrived = np.bincount(demos.transitions()[1], minlength=441) / 20_000
    expected = world.dynamics.next_state_probabilities([220], world.policy([220]))[0]
    assert np.abs(arrived - expected).max() < 5 * np.sqrt(expected.max() / 20_000)


def test_starts_are_spread_over_all_states(world):
    demos, _ = world.rollout(20_000, 2, random_state=2)
    counts = np.bincount([t[0] for t in demos], minlength=441)
    chi2 = ((counts - 20_000 / 441) ** 2 / (20_000 / 441)).sum()
    assert abs(chi2 - 440) < 6 * np.sqrt(2 * 440)


def test_bad_worlds_and_states_are_refused_by_name(world):
    with pytest.raises(ValueError, match="holds 441 at index 1"):
        world.policy([0, 441])
    with pytest.raises(TypeError, match="integers"):
        world.policy([0.5])
    for chance in (0.0, 1.01):
        with pytest.raises(ValueError, match="chance"):
            GridWorld.with_reward(0, chance=chance)
    with pytest.raises(ValueError, match="expert must be"):
        GridWorld(3, 4, expert=np.ones((9, 3)) / 3)
    with pytest.raises(ValueError, match=r"expert\[0\] sums to 4"):
        GridWorld(3, 4, expert=np.ones((9, 4)))
    with pytest.raises(ValueError, match="sigma"):
        grid_dynamics(5, 4, sigma=0.0)


def test_a_world_says_which_expert_it_has():
    assert repr(GridWorld(4, 2)) == "GridWorld(4×4, n_actions=2, circling expert)"
    rewarded = GridWorld.with_reward(0, size=4, n_actions=2, chance=1.0)
    assert repr(rewarded) == "GridWorld(4×4, n_actions=2, optimal expert)"
    assert np.count_nonzero(rewarded.reward) == 16
