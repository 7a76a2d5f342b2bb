from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp

from onlooker.dynamics import TabularDynamics
from onlooker.planning import (
    goal_actions,
    greedy_policy,
    policy_iteration,
    soft_policy,
    soft_value_iteration,
    state_visitation,
    value_iteration,
)
from onlooker.planning.transitions import as_transitions
from onlooker.worlds.grid import grid_dynamics


def random_world(seed: int, n_states: int = 7, n_actions: int = 3):
    rng = np.random.default_rng(seed)
    T = rng.dirichlet(np.full(n_states, 0.3), size=(n_states, n_actions))
    return T, rng.normal(size=(n_states, n_actions)), rng


def as_sparse(T):
    return [sparse.csr_array(T[:, a]) for a in range(T.shape[1])]


FORMS = [lambda T: T, as_sparse, TabularDynamics, lambda T: TabularDynamics(as_sparse(T))]
each_form = pytest.mark.parametrize("form", FORMS, ids=["dense", "sparse", "tabular", "tab-sparse"])


def sparse_grid(side: int) -> list[sparse.csr_array]:
    """Four moves; a fifth of the time a random one happens instead."""
    x, y = np.divmod(np.arange(side * side), side)
    moves = []
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        target = np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1)
        moves.append(
            sparse.csr_array(
                (np.ones(side**2), (np.arange(side**2), target)), shape=(side**2, side**2)
            )
        )
    return [0.8 * move + 0.05 * sum(moves) for move in moves]


# Two states: action 0 stays, action 1 moves to the other; staying in state 1 pays 1.
STAY_OR_MOVE = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])


@pytest.mark.parametrize("planner", [value_iteration, policy_iteration])
@each_form
def test_the_two_state_world_is_solved_as_by_hand(planner, form):
    solution = planner(form(STAY_OR_MOVE), [0.0, 1.0], 0.9, tolerance=1e-9)
    np.testing.assert_allclose(solution.values, [9.0, 10.0], atol=1e-8)
    np.testing.assert_allclose(solution.q, [[8.1, 9.0], [10.0, 9.1]], atol=1e-8)
    np.testing.assert_array_equal(solution.policy, [[0, 1], [1, 0]])
    assert solution.converged


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_value_and_policy_iteration_solve_the_bellman_equation_within_their_bound(seed, discount):
    T, r, _ = random_world(seed)
    exact = policy_iteration(T, r, discount, tolerance=1e-11).values
    bellman = (r + discount * T @ exact).max(axis=1)
    np.testing.assert_allclose(exact, bellman, atol=1e-9)
    for form in (T, as_sparse(T)):
        solution = value_iteration(form, r, discount, tolerance=1e-4)
        assert solution.residual <= 1e-4
        assert np.abs(solution.values - exact).max() <= solution.residual + 1e-10


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 1.0, 7.0]))
def test_soft_planners_solve_the_soft_bellman_equation(seed, temperature):
    T, r, _ = random_world(seed)
    solution = soft_value_iteration(T, r, 0.9, temperature=temperature, tolerance=1e-10)
    soft_max = temperature * logsumexp((r + 0.9 * T @ solution.values) / temperature, axis=1)
    np.testing.assert_allclose(solution.values, soft_max, atol=1e-8)
    advantage = solution.q - solution.values[:, None]
    np.testing.assert_allclose(solution.policy, np.exp(advantage / temperature), atol=1e-7)
    newton = policy_iteration(as_sparse(T), r, 0.9, temperature=temperature, tolerance=1e-10)
    np.testing.assert_allclose(newton.values, solution.values, atol=1e-8)


def test_a_cold_soft_plan_is_the_hard_plan():
    T, r, _ = random_world(1)
    cold = soft_value_iteration(T, r, 0.9, temperature=1e-4)
    hard = value_iteration(T, r, 0.9)
    np.testing.assert_allclose(cold.values, hard.values, atol=2e-2)
    np.testing.assert_allclose(cold.policy, hard.policy, atol=1e-6)


def test_huge_rewards_overflow_nothing():
    T, r, _ = random_world(2)
    solution = soft_value_iteration(T, 1e6 * r, 0.9, tolerance=1e-3)
    assert np.isfinite(solution.values).all()
    np.testing.assert_allclose(solution.policy.sum(axis=1), 1.0)


@pytest.mark.parametrize("planner", [value_iteration, soft_value_iteration, policy_iteration])
def test_a_constant_reward_shifts_values_and_leaves_the_policy(planner):
    T, r, _ = random_world(3)
    solution, shifted = (
        planner(T, r, 0.9, tolerance=1e-10),
        planner(T, r + 5.0, 0.9, tolerance=1e-10),
    )
    np.testing.assert_allclose(shifted.values, solution.values + 50.0, atol=1e-8)
    np.testing.assert_allclose(shifted.policy, solution.policy, atol=1e-8)


def test_a_finite_horizon_is_backward_induction_even_without_discount():
    T, r, _ = random_world(4)
    solution = value_iteration(T, r, 1.0, horizon=3)
    last = r.max(axis=1)
    middle = (r + T @ last).max(axis=1)
    first = (r + T @ middle).max(axis=1)
    np.testing.assert_allclose(solution.values, [first, middle, last])
    assert solution.policy.shape == (3, 7, 3)
    soft = soft_value_iteration(as_sparse(T), r, 1.0, horizon=2)
    want = logsumexp(r + T @ logsumexp(r, axis=1), axis=1)
    np.testing.assert_allclose(soft.values[0], want)


def test_with_a_horizon_of_one_step_only_the_reward_counts_and_none_is_refused():
    T, r, _ = random_world(4)
    np.testing.assert_array_equal(value_iteration(T, r, 1.0, horizon=1).q, r[None])
    for horizon in (0, 1.5):
        with pytest.raises(ValueError, match="horizon must be a positive integer"):
            value_iteration(T, r, 1.0, horizon=horizon)


def test_a_long_horizon_approaches_the_infinite_one():
    T, r, _ = random_world(5)
    finite = soft_value_iteration(T, r, 0.9, horizon=300)
    infinite = soft_value_iteration(T, r, 0.9, tolerance=1e-10)
    np.testing.assert_allclose(finite.values[0], infinite.values, atol=1e-8)


@each_form
def test_visits_balance_what_flows_in_and_what_starts(form):
    T, _, rng = random_world(7)
    policy, start = rng.dirichlet(np.ones(3), size=7), rng.dirichlet(np.ones(7))
    P = np.einsum("sa,sat->st", policy, T)
    visits = state_visitation(form(T), policy, start, 0.9)
    np.testing.assert_allclose(visits, start + 0.9 * P.T @ visits, atol=1e-8)
    assert visits.sum() == pytest.approx(10.0)


@each_form
def test_finite_visits_count_every_state_of_the_trajectory(form):
    T, _, rng = random_world(8)
    start = rng.dirichlet(np.ones(7))
    stages = rng.dirichlet(np.ones(3), size=(2, 7))
    one, two = (np.einsum("sa,sat->st", stage, T) for stage in stages)
    want = start + start @ one + start @ one @ two
    np.testing.assert_allclose(state_visitation(form(T), stages, start, horizon=3), want)
    same = state_visitation(form(T), stages[0], start, horizon=3)
    np.testing.assert_allclose(same, start + start @ one + start @ one @ one)


def test_the_value_of_the_best_policy_is_what_its_visits_collect():
    T, r, rng = random_world(9)
    start = rng.dirichlet(np.ones(7))
    solution = policy_iteration(T, r, 0.8, tolerance=1e-9)
    visits = state_visitation(T, solution.policy, start, 0.8)
    collected = (visits[:, None] * solution.policy * r).sum()
    assert collected == pytest.approx(start @ solution.values)


def test_a_hundred_thousand_states_are_solved():
    side = 317
    rng = np.random.default_rng(0)
    reward = np.where(rng.random(side**2) < 0.01, rng.normal(size=side**2), 0.0)
    T = sparse_grid(side)
    solution = policy_iteration(T, reward, 0.95)
    assert solution.converged
    backup = reward + 0.95 * np.max([move @ solution.values for move in T], axis=0)
    assert np.abs(backup - solution.values).max() < 2e-6


def test_running_out_of_iterations_is_reported():
    T, r, _ = random_world(10)
    for planner in (value_iteration, policy_iteration):
        solution = planner(T, r, 0.99, tolerance=1e-9, max_iter=1)
        assert not solution.converged
        assert solution.n_iter == 1
        assert solution.residual > 1e-9


def test_initial_values_at_the_solution_need_no_work():
    T, r, _ = random_world(11)
    solved = policy_iteration(T, r, 0.9, tolerance=1e-9)
    assert policy_iteration(T, r, 0.9, initial=solved.values).n_iter == 0
    assert value_iteration(T, r, 0.9, initial=solved.values).n_iter == 1


def test_greedy_policy_shares_ties_only_when_asked():
    q = [[1.0, 1.0, 0.0]]
    np.testing.assert_array_equal(greedy_policy(q), [[1, 0, 0]])
    np.testing.assert_array_equal(greedy_policy(q, tolerance=1e-9), [[0.5, 0.5, 0]])


def test_soft_policy_ignores_a_common_shift():
    q = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(soft_policy(q + 1e4), soft_policy(q))
    np.testing.assert_allclose(soft_policy(q, 2.0), np.exp(q / 2) / np.exp(q / 2).sum())


def test_planners_name_what_is_wrong():
    T, r, _ = random_world(12)
    with pytest.raises(ValueError, match="give a horizon"):
        value_iteration(T, r, 1.0)
    broken = T.copy()
    broken[3, 1] *= 0.5
    for form in (broken, as_sparse(broken)):
        with pytest.raises(ValueError, match=r"state 3 and action 1 sums to 0\.5"):
            value_iteration(form, r, 0.9)
    with pytest.raises(ValueError, match="reward must have shape"):
        value_iteration(T, r[:4], 0.9)
    with pytest.raises(ValueError, match="reward is not finite"):
        value_iteration(T, np.full(7, np.nan), 0.9)
    with pytest.raises(ValueError, match="T must have shape"):
        value_iteration(T[:4], r, 0.9)
    with pytest.raises(ValueError, match="temperature"):
        soft_value_iteration(T, r, 0.9, temperature=0.0)
    with pytest.raises(ValueError, match=r"policy must be \(7, 3\)"):
        state_visitation(T, np.ones((7, 2)), np.full(7, 1 / 7), 0.9)
    with pytest.raises(ValueError, match=r"policy\[0\] sums to 3"):
        state_visitation(T, np.ones((7, 3)), np.full(7, 1 / 7), 0.9)
    with pytest.raises(ValueError, match="start must be a distribution"):
        state_visitation(T, np.full((7, 3), 1 / 3), np.ones(7), 0.9)
    with pytest.raises(ValueError, match="2 steps, but 4 states need 3"):
        state_visitation(T, np.full((2, 7, 3), 1 / 3), np.full(7, 1 / 7), horizon=4)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_goals_solved_together_have_the_greedy_actions_of_each_by_itself(is_sparse):
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.full(12, 0.1), size=(12, 3))
    T = as_sparse(table) if is_sparse else table
    best = goal_actions(T, np.array([7, 2]), 0.9)
    for goal, found in zip((7, 2), best, strict=True):
        q = policy_iteration(table, np.eye(12)[goal], 0.9, tolerance=1e-12).q
        top = q.max(axis=1, keepdims=True)
        np.testing.assert_array_equal(found, q >= top - 1e-7 * top)


def test_what_is_next_to_impossible_is_left_out_of_sparse_tables_and_changes_no_best_action():
    dynamics = grid_dynamics(33, 8)
    assert dynamics.is_sparse
    whole = as_transitions(dynamics)
    short = whole.without_tails()
    assert short.work < 0.5 * whole.work
    np.testing.assert_allclose(short.expect(np.ones(33 * 33)), 1.0)
    goals = np.array([0, 500])
    np.testing.assert_array_equal(goal_actions(short, goals, 0.9), goal_actions(whole, goals, 0.9))


def test_a_dense_table_of_few_entries_is_planned_in_as_a_sparse_one():
    half = as_transitions(np.full((2, 1, 2), 0.5))
    assert half.without_tails() is half
    ring = as_transitions(np.stack([np.roll(np.eye(40), k, axis=1) for k in (1, -1)], axis=1))
    assert ring.without_tails().work == 80
    goals = np.array([3, 30])
    np.testing.assert_array_equal(
        goal_actions(ring.without_tails(), goals, 0.9), goal_actions(ring, goals, 0.9)
    )


def test_a_state_that_a_goal_is_out_of_reach_of_has_no_best_action():
    stay, swap = np.eye(4), np.eye(4)[[1, 0, 2, 3]]
    best = goal_actions(np.stack([stay, swap], axis=1), np.array([1]), 0.9)[0]
    np.testing.assert_array_equal(best, [[0, 1], [1, 0], [1, 1], [1, 1]])
