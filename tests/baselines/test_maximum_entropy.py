from __future__ import annotations

import numpy as np
import pytest
from agreement import total_variation
from scipy import sparse

from onlooker import Demonstrations
from onlooker.baselines import MaximumEntropyIRL
from onlooker.baselines._soft_models import PathModel, _accuracy
from onlooker.baselines.maximum_entropy import _Continuing, _Episodic, _lbfgs
from onlooker.dynamics import TabularDynamics
from onlooker.planning import soft_value_iteration, state_visitation, value_iteration
from onlooker.planning.transitions import as_transitions
from onlooker.worlds import GridWorld

each_objective = pytest.mark.parametrize("objective", [_Continuing, _Episodic])
each_entropy = pytest.mark.parametrize("entropy", ["causal", "path"])

RAGGED = Demonstrations([[0, 1, 2, 2], [3, 4], [1, 0, 0, 3, 4, 2], [2, 2, 1]])
# Two states: action 0 stays, action 1 moves to the other.
STAY_OR_MOVE = TabularDynamics([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])


def small_world(seed: int = 0, n_states: int = 5, n_actions: int = 3):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions)), rng


@each_objective
@each_entropy
def test_the_derivative_is_the_derivative(objective, entropy):
    T, rng = small_world()
    f = objective(RAGGED, as_transitions(T), 0.8, entropy)
    reward = rng.normal(size=5)
    steps = 1e-4 * np.eye(5)
    central = [(f(reward + h)[0] - f(reward - h)[0]) / 2e-4 for h in steps]
    np.testing.assert_allclose(f(reward)[1], central, atol=1e-6)


@each_entropy
def test_a_constant_reward_changes_nothing(entropy):
    T, rng = small_world(1)
    reward = rng.normal(size=5)
    f = _Continuing(RAGGED, as_transitions(T), 0.8, entropy)
    (value, slope), (shifted, same) = f(reward), f(reward + 3.0)
    assert shifted == pytest.approx(value)
    np.testing.assert_allclose(same, slope, atol=1e-7)


@each_objective
@each_entropy
def test_sparse_tables_give_the_same_derivative(objective, entropy):
    T, rng = small_world(2)
    reward = rng.normal(size=5)
    dense = objective(RAGGED, as_transitions(T), 0.8, entropy)(reward)
    matrices = [sparse.csr_array(T[:, a]) for a in range(3)]
    thin = objective(RAGGED, as_transitions(matrices), 0.8, entropy)(reward)
    assert thin[0] == pytest.approx(dense[0])
    np.testing.assert_allclose(thin[1], dense[1], atol=1e-7)


@each_objective
def test_without_noise_the_two_entropies_are_one(objective):
    rng = np.random.default_rng(3)
    T = np.eye(5)[rng.integers(5, size=(5, 3))]
    reward = rng.normal(size=5)
    causal, path = (objective(RAGGED, as_transitions(T), 0.8, e) for e in ("causal", "path"))
    if objective is _Continuing:
        # The path form discounts the values but not the entropy of the future.
        causal.discount = path.discount = 0.0
    else:
        causal.discount = path.discount = 1.0
    (a, da), (b, db) = causal(reward), path(reward)
    assert a == pytest.approx(b)
    np.testing.assert_allclose(da, db, atol=1e-9)
    np.testing.assert_allclose(causal.policy(reward), path.policy(reward), atol=1e-9)


def test_the_path_value_sums_over_all_paths():
    T, rng = small_world(4, n_states=3, n_actions=2)
    reward = rng.normal(size=3)
    model = PathModel(as_transitions(T))
    values = reward
    for _ in range(2):
        values, _ = model.step(reward, 1.0, values)
    brute = np.zeros(3)
    for s in range(3):
        for t in range(3):
            for u in range(3):
                weight = T[s, :, t].sum() * T[t, :, u].sum()
                brute[s] += weight * np.exp(reward[s] + reward[t] + reward[u])
    np.testing.assert_allclose(values, np.log(brute))


def test_the_path_fixed_point_is_one():
    T, rng = small_world(5)
    reward = rng.normal(size=5)
    values, _ = PathModel(as_transitions(T)).solve(reward, 0.9, np.zeros(5))
    want = reward + np.log(np.einsum("sat,t->s", T, np.exp(0.9 * values)))
    np.testing.assert_allclose(values, want, atol=1e-7)


def test_two_states_are_solved_as_by_hand():
    # Of five trajectories from state 0, three move: so does the fitted expert, 3 times in 5.
    demos = [[0, 1], [0, 1], [0, 1], [0, 0], [0, 0]]
    model = MaximumEntropyIRL(
        STAY_OR_MOVE, discount=1.0, horizon="length", l2=0.0, tolerance=1e-7
    ).fit(demos)
    np.testing.assert_allclose(model.policy_[0], [0.4, 0.6], atol=1e-4)
    assert model.reward_[1] - model.reward_[0] == pytest.approx(np.log(1.5), abs=1e-4)


def test_trajectories_of_different_length_are_plans_of_their_own():
    T, rng = small_world(6)
    move = as_transitions(T)
    reward = rng.normal(size=5)
    whole = _Episodic(RAGGED, move, 0.9, "causal")(reward)[0]
    parts = [_Episodic(RAGGED[[i]], move, 0.9, "causal")(reward)[0] for i in range(len(RAGGED))]
    assert whole == pytest.approx(np.mean(parts))
    plan = soft_value_iteration(T, reward, 0.9, horizon=4)
    # The last state's action is not seen, so it is not counted: value r, not r + log A.
    want = reward[0] + 0.9 * reward[1] + 0.81 * reward[2] + 0.729 * reward[2]
    lag = 0.9 ** np.arange(4)
    assert parts[0] == pytest.approx(want - plan.values[0][0] + lag[3] * np.log(3))


def soft_expert(discount: float = 0.9) -> tuple[GridWorld, np.ndarray, np.ndarray]:
    reward = np.zeros(25)
    reward[[4, 20]] = 3.0, 2.0
    world = GridWorld(5, 4, sigma=0.5)
    policy = soft_value_iteration(world.dynamics, reward, discount).policy
    return GridWorld(5, 4, sigma=0.5, expert=policy), policy, reward


def test_a_soft_expert_is_recovered():
    world, policy, _ = soft_expert()
    demos, _ = world.rollout(20_000, 10, random_state=0)
    model = MaximumEntropyIRL(world.dynamics, l2=1e-5).fit(demos)
    assert model.convergence_.converged
    assert total_variation(policy, model.policy_).mean() < 0.03
    assert total_variation(policy, np.full((25, 4), 0.25)).mean() > 0.2


def test_the_penalised_objective_converges_on_the_papers_grid():
    world = GridWorld.with_reward(0)
    demos, _ = world.rollout(1000, 10, random_state=0)
    model = MaximumEntropyIRL(world.dynamics).fit(demos)
    assert model.convergence_.converged
    assert model.convergence_.residual < 1e-3
    # The penalty accounts for the whole difference between seen and expected features.
    assert model.feature_residual_ == pytest.approx(4e-3 * np.abs(model.weights_).max(), rel=1e-2)


def test_feasible_features_are_matched_on_the_papers_grid_without_a_penalty():
    world = GridWorld.with_reward(1)
    expert = soft_value_iteration(world.dynamics, 5.0 * world.reward, 0.9).policy
    move = as_transitions(world.dynamics)
    objective = _Continuing(world.rollout(1, 2, random_state=0)[0], move, 0.9, "causal")
    # What infinitely many trajectories of ten states would show.
    objective.left = state_visitation(move, expert, np.full(441, 1 / 441), horizon=9)
    objective.arrived = move.push(objective.left[:, None] * expert)

    def loss(reward):
        value, slope = objective(reward)
        return -value, -slope

    result = _lbfgs(loss, 441, 1e-6, 1000, lambda done, note: None)
    assert np.abs(result.jac).max() < 1e-3
    assert total_variation(expert, objective.policy(result.x)).max() < 0.01


def test_greedy_prediction_is_optimal_for_the_learned_reward():
    world, _, _ = soft_expert()
    demos, _ = world.rollout(100, 10, random_state=0)
    model = MaximumEntropyIRL(world.dynamics, policy="greedy").fit(demos)
    plan = value_iteration(world.dynamics, model.reward_, 0.9)
    np.testing.assert_array_equal(model.policy_, plan.policy)
    finite = MaximumEntropyIRL(world.dynamics, policy="greedy", horizon="length").fit(demos)
    assert set(np.unique(finite.policy_)) == {0.0, 1.0}


@each_entropy
def test_many_states_and_large_rewards_overflow_nothing(entropy):
    n = 400
    right = np.minimum(np.arange(n) + 1, n - 1)
    left = np.maximum(np.arange(n) - 1, 0)
    T = np.stack([np.eye(n)[right], np.eye(n)[left]], axis=1)
    demos = Demonstrations([np.arange(n)])
    f = _Episodic(demos, as_transitions(T), 1.0, entropy)
    value, slope = f(np.linspace(0.0, 1000.0, n))
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
    model = MaximumEntropyIRL(TabularDynamics(T), entropy=entropy, l2=0.1).fit(demos)
    assert np.isfinite(model.policy_).all()
    assert (model.policy_[:-1, 0] > 0.5).all()


def test_features_restrict_the_reward():
    world, policy, reward = soft_expert()
    demos, _ = world.rollout(3000, 10, random_state=0)
    features = np.column_stack([reward, np.ones(25)])
    model = MaximumEntropyIRL(world.dynamics, features, l2=1e-6).fit(demos)
    assert model.weights_[0] == pytest.approx(1.0, abs=0.1)
    assert total_variation(policy, model.policy_).mean() < 0.03
    thin = MaximumEntropyIRL(world.dynamics, sparse.csr_array(features), l2=1e-6).fit(demos)
    np.testing.assert_allclose(thin.policy_, model.policy_, atol=1e-4)


def test_bad_arguments_are_named():
    demos = [[0, 1]]
    with pytest.raises(ValueError, match="entropy must be one of"):
        MaximumEntropyIRL(STAY_OR_MOVE, entropy="none").fit(demos)
    with pytest.raises(ValueError, match="horizon must be None or 'length'"):
        MaximumEntropyIRL(STAY_OR_MOVE, horizon=10).fit(demos)
    with pytest.raises(ValueError, match="features must be"):
        MaximumEntropyIRL(STAY_OR_MOVE, np.ones((3, 1))).fit(demos)
    with pytest.raises(ValueError, match="discount must be in"):
        MaximumEntropyIRL(STAY_OR_MOVE, discount=1.0).fit(demos)
    with pytest.raises(ValueError, match="discount must be in"):
        MaximumEntropyIRL(STAY_OR_MOVE, discount=1.5, horizon="length").fit(demos)


@pytest.mark.parametrize(
    ("reward", "discount", "accuracy"),
    [(0.01, 0.5, 1e-12), (-1000.0, 0.5, 2e-9), (0.0001, 0.999, 1e-11), (10.0, 0.999, 1e-7)],
)
def test_values_are_solved_for_as_well_as_rounding_lets_them_be_known(reward, discount, accuracy):
    found = _accuracy(np.array([0.0, reward]), discount)
    assert found == pytest.approx(accuracy, rel=1e-9)
