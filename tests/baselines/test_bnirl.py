from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp

from onlooker.baselines import BayesianNonparametricIRL
from onlooker.baselines.bnirl import _Chain, _goal_values, _split_rhat
from onlooker.dynamics import TabularDynamics
from onlooker.planning import value_iteration
from onlooker.planning.transitions import as_transitions
from onlooker.worlds import GridWorld


def naive_sweep(loglik, log_marginal, concentration, labels, goals, rng):
    """The plain twin of the kernels: labels and goals as lists, counted afresh each time."""

    def draw(weights):
        left = rng.random() * sum(weights)
        last = None
        for k, weight in enumerate(weights):
            if weight > 0:
                last = k
                left -= weight
                if left < 0:
                    break
        return last

    for t in range(len(loglik)):
        k = labels[t]
        labels[t] = -1
        if k >= 0 and k not in labels:
            last = len(goals) - 1
            goals[k] = goals[last]
            goals.pop()
            labels[:] = [k if label == last else label for label in labels]
        log_weights = [np.log(labels.count(k)) + loglik[t, g] for k, g in enumerate(goals)]
        log_weights.append(np.log(concentration) + log_marginal[t])
        k = draw(np.exp(np.array(log_weights) - max(log_weights)))
        if k == len(goals):
            goals.append(draw(np.exp(loglik[t] - loglik[t].max())))
        labels[t] = k
    for k in range(len(goals)):
        total = np.zeros(loglik.shape[1])
        for t in range(len(loglik)):
            if labels[t] == k:
                total += loglik[t]
        goals[k] = draw(np.exp(total - total.max()))


def test_kernels_equal_their_plain_twin_draw_for_draw():
    rng = np.random.default_rng(0)
    loglik = rng.normal(scale=2.0, size=(30, 6))
    chain = _Chain.start(loglik, 1.5)
    labels, goals = [-1] * 30, []
    fast, slow = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(20):
        chain.sweep(fast)
        naive_sweep(loglik, chain.log_marginal, 1.5, labels, goals, slow)
        assert chain.labels.tolist() == labels
        assert chain.goals[: chain.n_used].tolist() == goals
        np.testing.assert_array_equal(
            chain.sizes[: chain.n_used], np.bincount(labels, minlength=chain.n_used)
        )


def partitions(n):
    """Restricted growth strings: every partition of n once."""
    for labels in product(range(n), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield labels


def test_the_chain_samples_the_enumerated_posterior():
    rng = np.random.default_rng(2)
    loglik = rng.normal(scale=1.5, size=(4, 3))
    gamma = 0.8
    log_weight = {}
    for z in partitions(4):
        k = max(z) + 1
        sizes = np.bincount(z)
        prior = k * np.log(gamma) + gammaln(sizes).sum() + gammaln(gamma) - gammaln(gamma + 4)
        fit = sum(
            logsumexp(loglik[[t for t in range(4) if z[t] == j]].sum(axis=0)) - np.log(3)
            for j in range(k)
        )
        log_weight[z] = prior + fit
    total = logsumexp(list(log_weight.values()))
    want = {z: np.exp(w - total) for z, w in log_weight.items()}
    chain = _Chain.start(loglik, gamma)
    stream = np.random.default_rng(3)
    seen = dict.fromkeys(want, 0)
    n = 40_000
    for _ in range(n):
        chain.sweep(stream)
        order = {}
        seen[tuple(order.setdefault(int(k), len(order)) for k in chain.labels)] += 1
    for z, p in want.items():
        # Successive draws are nearly independent here; six standard deviations.
        assert abs(seen[z] / n - p) < 6 * np.sqrt(2 * p * (1 - p) / n) + 1e-4


def path(n):
    """Up or down a path, of which half of the tries fail: values spread slowly."""
    table = np.zeros((n, 2, n))
    for state in range(n):
        for action, step in enumerate((1, -1)):
            table[state, action, state] += 0.5
            table[state, action, min(max(state + step, 0), n - 1)] += 0.5
    return TabularDynamics(table)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("dynamics", [GridWorld(4, 4, sigma=0.5).dynamics, path(16)])
def test_goals_are_planned_for_as_by_value_iteration(thin, tolerance, dynamics):
    table = dynamics.toarray()
    T = [sparse.csr_array(table[:, action]) for action in range(table.shape[1])] if thin else table
    goals = np.array([0, 5, 15])
    got = _goal_values(as_transitions(T), goals, 0.9, tolerance)
    for g, goal in enumerate(goals):
        plan = value_iteration(dynamics, np.eye(16)[goal], 0.9, tolerance=1e-10)
        # Only differences between the actions of a state matter.
        want = (plan.q - plan.q[:, :1]) / plan.values.max()
        np.testing.assert_allclose(got[g] - got[g][:, :1], want, rtol=0, atol=tolerance)


def test_the_subgoal_of_a_purposeful_expert_is_found():
    reward = np.zeros(25)
    reward[24] = 1.0
    world = GridWorld.with_reward(size=5, n_actions=4, sigma=0.4, reward=reward)
    demos, _ = world.rollout(40, 10, random_state=0)
    model = BayesianNonparametricIRL(
        world.dynamics, confidence=20.0, draws=500, tune=500, random_state=0
    ).fit(demos)
    assert model.convergence_.converged
    assert model.goals_[model.goal_probabilities_.argmax()] == 24
    assert model.goal_probabilities_.max() > 0.9
    agreement = np.mean(model.predict(np.arange(25)) == world.policy().argmax(axis=1))
    assert agreement > 0.6


def test_unseen_states_follow_the_posterior_over_subgoals():
    reward = np.zeros(25)
    reward[24] = 1.0
    world = GridWorld.with_reward(size=5, n_actions=4, sigma=0.3, reward=reward)
    demos, _ = world.rollout(30, 8, random_state=1, start=np.full(30, 12))
    unseen = np.setdiff1d(np.arange(25), demos.states)
    assert unseen.size
    model = BayesianNonparametricIRL(
        world.dynamics, confidence=20.0, draws=500, tune=500, random_state=0
    ).fit(demos)
    learned, expert = model.predict_proba(unseen), world.policy(unseen)
    assert (learned * expert).sum(axis=1).mean() > 0.35


def test_split_rhat_tells_agreement_from_drift():
    rng = np.random.default_rng(5)
    same = rng.normal(size=(2, 400))
    assert _split_rhat(same) < 1.02
    assert _split_rhat(same + np.array([[0.0], [3.0]])) > 1.3
    assert _split_rhat(same + np.linspace(0, 6, 400)) > 1.3
    assert _split_rhat(np.ones((2, 10))) == 1.0
