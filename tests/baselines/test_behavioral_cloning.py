from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from onlooker.baselines import BehavioralCloning
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.metrics import circular_emd
from onlooker.worlds import CircularMotion

# Action a leads to state a, whatever the state.
JUMPS = TabularDynamics(np.tile(np.eye(3), (3, 1, 1)))


def test_without_noise_cloning_sees_the_true_actions():
    world = CircularMotion(sigma=1e-3)
    demos, actions = world.rollout(5, 50, random_state=0)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    learned = BehavioralCloning(world.dynamics, tree).fit(demos)
    states, _ = demos.transitions()
    tree.fit(states, np.concatenate(actions))
    want = np.zeros((len(states), 24))
    want[:, tree.classes_] = tree.predict_proba(states)
    np.testing.assert_allclose(learned.predict_proba(states), want)


def test_states_without_coordinates_are_categories():
    demos = [[0, 1, 0, 1, 0, 2], [1, 2, 1, 2, 1, 2]]
    tree = DecisionTreeClassifier(random_state=0)
    policy = BehavioralCloning(JUMPS, tree).fit(demos).predict_proba([0, 1, 2])
    np.testing.assert_allclose(policy[0], [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(policy[1], [2 / 5, 0, 3 / 5])


def test_actions_never_imputed_have_probability_zero():
    policy = BehavioralCloning(JUMPS, random_state=0).fit([[0, 0, 0, 2, 2]]).predict_proba([0, 1])
    np.testing.assert_array_equal(policy[:, 1], 0.0)
    np.testing.assert_allclose(policy.sum(axis=1), 1.0)


def test_weights_are_the_posterior_under_a_flat_policy():
    class Spy(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            Spy.seen = np.asarray(X), np.asarray(y), np.asarray(sample_weight)
            return super().fit(X, y, sample_weight=sample_weight)

    dynamics = DisplacementDynamics.compass(4, sigma=1.0)
    BehavioralCloning(dynamics, Spy()).fit([[[0.0, 0.0], [0.5, 0.2]]])
    _, actions, weights = Spy.seen
    likelihood = np.exp(dynamics.log_likelihood(np.zeros((1, 2)), np.array([[0.5, 0.2]])))[0]
    np.testing.assert_array_equal(actions, np.arange(4))
    np.testing.assert_allclose(weights, likelihood / likelihood.sum())


def test_more_rounds_sharpen_the_policy():
    world = CircularMotion(n_actions=8, sigma=0.7)
    demos, _ = world.rollout(20, 100, random_state=0)
    states, _ = demos.transitions()
    errors = []
    for rounds in (1, 4):
        model = BehavioralCloning(world.dynamics, rounds=rounds, random_state=0).fit(demos)
        assert model.convergence_.n_iter == rounds
        errors.append(circular_emd(world.policy(states), model.predict_proba(states)).mean())
    assert errors[1] < errors[0] - 0.05


@pytest.mark.parametrize(
    "classifier",
    [RandomForestClassifier(10, random_state=0), LogisticRegression(), DecisionTreeClassifier()],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier_with_weights_will_do(classifier):
    world = CircularMotion(n_actions=8)
    demos, _ = world.rollout(5, 40, random_state=0)
    model = BehavioralCloning(world.dynamics, classifier).fit(demos)
    assert type(model.classifier_) is type(classifier)
    assert not hasattr(classifier, "classes_")
    np.testing.assert_allclose(model.predict_proba(demos.states).sum(axis=1), 1.0)


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="KNeighborsClassifier takes no sample_weight"):
        BehavioralCloning(JUMPS, KNeighborsClassifier()).fit([[0, 1, 2]])
    with pytest.raises(ValueError, match="coordinates has 2 rows"):
        BehavioralCloning(JUMPS, coordinates=np.zeros((2, 1))).fit([[0, 1, 2, 2]])
    model = BehavioralCloning(JUMPS, DecisionTreeClassifier()).fit([[0, 1, 2]])
    with pytest.raises(ValueError, match="states holds 3; there are 3 states"):
        model.predict_proba([3])
