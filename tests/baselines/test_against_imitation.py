"""Against the reference library, where it is installed (``pip install imitation``)."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from agreement import total_variation

from onlooker.baselines.maximum_entropy import _Episodic, _lbfgs
from onlooker.planning import soft_value_iteration, state_visitation
from onlooker.planning.transitions import as_transitions
from onlooker.worlds import GridWorld

pytestmark = pytest.mark.filterwarnings("ignore")
HORIZON = 6
WORLD = GridWorld(5, 4, sigma=0.5)


def load(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            pytest.skip(f"{name} is not installed")


def reference_env(reward, starts):
    return load("seals.base_envs").TabularModelPOMDP(
        transition_matrix=WORLD.dynamics.toarray(),
        observation_matrix=np.eye(25, dtype=np.float32),
        reward_matrix=reward,
        horizon=HORIZON,
        initial_state_dist=starts,
    )


def test_soft_plans_and_visits_are_those_of_the_reference_library():
    mce = load("imitation.algorithms.mce_irl")
    rng = np.random.default_rng(0)
    reward, starts = 3.0 * rng.normal(size=25), rng.dirichlet(np.ones(25))
    env = reference_env(reward, starts)
    values, q, policy = mce.mce_partition_fh(env)
    ours = soft_value_iteration(WORLD.dynamics, reward, 1.0, horizon=HORIZON)
    np.testing.assert_allclose(ours.values, values)
    np.testing.assert_allclose(ours.q, q)
    np.testing.assert_allclose(ours.policy, policy)
    _, visits = mce.mce_occupancy_measures(env, pi=policy)
    got = state_visitation(WORLD.dynamics, ours.policy, starts, horizon=HORIZON + 1)
    np.testing.assert_allclose(got, visits)


def test_the_same_visits_lead_to_the_same_policy():
    mce = load("imitation.algorithms.mce_irl")
    reward_nets = load("imitation.rewards.reward_nets")
    torch = load("torch")
    torch.manual_seed(0)
    reward = np.zeros(25)
    reward[[4, 20]] = 3.0, 2.0
    starts = np.full(25, 1 / 25)
    expert = soft_value_iteration(WORLD.dynamics, reward, 1.0, horizon=HORIZON, initial=reward)
    visits = state_visitation(WORLD.dynamics, expert.policy, starts, horizon=HORIZON + 1)
    env = reference_env(reward, starts)
    net = reward_nets.BasicRewardNet(
        env.observation_space,
        env.action_space,
        hid_sizes=[],
        use_action=False,
        use_done=False,
        use_next_state=False,
    )
    learner = mce.MCEIRL(visits, env, net, np.random.default_rng(0), log_interval=None)
    learner.train(max_iter=1000)
    theirs = learner.policy.pi[0]

    demos = WORLD.rollout(1, HORIZON + 1, random_state=0)[0]
    objective = _Episodic(demos, as_transitions(WORLD.dynamics), 1.0, "causal")
    objective.seen, objective.starts = visits, {HORIZON + 1: starts}

    def loss(weights):
        value, slope = objective(weights)
        return -value, -slope

    result = _lbfgs(loss, 25, 1e-6, 1000, lambda done, note: None)
    ours = objective.policy(result.x)
    truth = expert.policy[0]
    assert total_variation(truth, ours).max() < 1e-3
    assert total_variation(truth, ours).mean() <= total_variation(truth, theirs).mean()
    assert total_variation(ours, theirs).mean() < 0.1
