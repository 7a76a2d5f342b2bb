from __future__ import annotations

import numpy as np
import pytest

from onlooker.baselines import GlobalMarginal, UniformPolicy
from onlooker.dynamics import TabularDynamics
from onlooker.worlds import CircularMotion

# Action a leads to state a, whatever the state.
JUMPS = TabularDynamics(np.tile(np.eye(3), (3, 1, 1)))


def test_with_visible_actions_the_marginal_is_their_frequency():
    model = GlobalMarginal(JUMPS).fit([[0, 1, 1, 1, 2], [2, 1, 1, 2, 0, 1, 1]])
    np.testing.assert_allclose(model.action_probabilities_, [0.1, 0.7, 0.2], atol=1e-3)
    assert model.convergence_.converged


def test_the_marginal_has_no_better_neighbour():
    world = CircularMotion(n_actions=6, sigma=0.8)
    demos = world.rollout(5, 40, random_state=0)[0]
    model = GlobalMarginal(world.dynamics).fit(demos)
    best = model.score(demos)
    p = model.action_probabilities_
    for a in range(6):
        for b in range(6):
            moved = p.copy()
            shift = min(0.05, p[a])
            moved[a] -= shift
            moved[b] += shift
            model.action_probabilities_ = moved
            assert model.score(demos) <= best + 1e-5


def test_uniform_knows_the_number_of_actions_and_no_more():
    model = UniformPolicy(JUMPS).fit()
    np.testing.assert_array_equal(model.predict_proba([0, 2]), np.full((2, 3), 1 / 3))
    assert model.score([[0, 1, 2]]) == pytest.approx(np.log(1 / 3))
