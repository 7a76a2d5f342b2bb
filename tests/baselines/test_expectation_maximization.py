from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from onlooker.baselines import ExpectationMaximization
from onlooker.baselines.expectation_maximization import _colour_classes, _MeanField
from onlooker.dynamics import DisplacementDynamics
from onlooker.worlds import CircularMotion, GridWorld


def random_field(seed: int, n: int = 12, n_actions: int = 3, beta: float = 0.7):
    rng = np.random.default_rng(seed)
    loglik = rng.normal(scale=2.0, size=(n, n_actions))
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), k=1)
    return _MeanField(loglik, sparse.csr_array(weights + weights.T), beta), rng


@pytest.mark.parametrize("seed", range(10))
def test_neither_step_ever_lowers_the_bound(seed):
    field, rng = random_field(seed)
    theta = rng.integers(3, size=4)
    q = rng.dirichlet(np.ones(4), size=12)
    bound = field.bound(q, theta)
    for _ in range(15):
        field.expect(q, theta)
        after = field.bound(q, theta)
        assert after >= bound - 1e-10
        theta = field.maximise(q, theta)
        bound = field.bound(q, theta)
        assert bound >= after - 1e-10


def test_the_fit_ends_at_a_fixed_point_of_both_steps():
    field, rng = random_field(3)
    _, theta, q, _, change = field.run(np.arange(3), 1e-10, 1000, rng)
    assert change <= 1e-10
    energy = field.loglik[:, theta] + field.beta * (field.coupling @ q)
    want = np.exp(energy - logsumexp(energy, axis=1, keepdims=True))
    np.testing.assert_allclose(q, want, atol=1e-8)
    np.testing.assert_array_equal(theta, (q.T @ field.loglik).argmax(axis=1))


def test_the_bound_is_below_the_log_likelihood_and_touches_it_without_coupling():
    field, _ = random_field(4, n=5)
    theta = np.array([0, 1, 2])
    weights = field.coupling.toarray()

    def log_sum(beta):
        terms = []
        for z in product(range(3), repeat=5):
            same = np.equal.outer(z, z)
            fit = sum(field.loglik[i, theta[k]] for i, k in enumerate(z))
            terms.append(fit + 0.5 * beta * (weights * same).sum())
        return logsumexp(terms)

    q = np.full((5, 3), 1 / 3)
    for _ in range(200):
        field.expect(q, theta)
    assert field.bound(q, theta) < log_sum(field.beta)
    free = _MeanField(field.loglik, field.coupling, 0.0)
    free.expect(q, theta)
    assert free.bound(q, theta) == pytest.approx(log_sum(0.0))


def test_states_of_one_colour_do_not_touch():
    field, _ = random_field(5, n=40)
    classes = _colour_classes(field.coupling.indptr, field.coupling.indices)
    np.testing.assert_array_equal(np.sort(np.concatenate(classes)), np.arange(40))
    dense = field.coupling.toarray()
    for nodes in classes:
        assert not dense[np.ix_(nodes, nodes)].any()


def test_two_halves_of_a_grid_are_told_apart():
    world = GridWorld(6, 4, sigma=0.5)
    left = world.coordinates[:, 0] < 0
    expert = np.eye(4)[np.where(left, 1, 3)]
    world = GridWorld(6, 4, sigma=0.5, expert=expert)
    demos, _ = world.rollout(60, 8, random_state=0)
    model = ExpectationMaximization(
        world.dynamics, 2, coordinates=world.coordinates, random_state=0, n_starts=5
    )
    with pytest.warns(UserWarning, match="equally likely under every action"):
        model.fit(demos)
    np.testing.assert_array_equal(np.sort(model.controllers_), [1, 3])
    assert np.mean(model.predict(np.arange(36)) == np.where(left, 1, 3)) > 0.9


def test_without_coupling_each_state_takes_its_own_best_action():
    world = GridWorld()
    demos, _ = world.rollout(2000, 10, random_state=0)
    model = ExpectationMaximization(world.dynamics, 8, 0.0, coordinates=world.coordinates)
    model.fit(demos)
    states, following = demos.transitions()
    loglik = np.zeros((441, 8))
    np.add.at(loglik, states, world.dynamics.log_likelihood(states, following))
    # Of the actions that are somebody's: EM may give up some of the eight.
    used = np.unique(model.controllers_)
    best = used[loglik[:, used].argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(np.arange(441)), best)


def test_the_paper_grid_is_learned_up_to_the_experts_randomness():
    from onlooker.metrics import circular_emd

    world = GridWorld()
    demos, _ = world.rollout(1000, 10, random_state=0)
    model = ExpectationMaximization(world.dynamics, coordinates=world.coordinates, random_state=0)
    model.fit(demos)
    error = circular_emd(world.policy(), model.predict_proba(np.arange(441))).mean()
    # Measured .556 ± .006; no deterministic policy gets below π/6 = .524.
    assert 0.52 < error < 0.59


def test_more_controllers_than_actions_do_not_stay_twins():
    field, rng = random_field(6, beta=0.0)
    _, theta, q, _, _ = field.run(np.array([0, 1, 2, 0]), 1e-8, 500, rng)
    assert len(theta) == 4
    assert np.isfinite(q).all()


def test_a_point_off_the_trajectories_follows_its_neighbours():
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    model = ExpectationMaximization(world.dynamics, 8, random_state=0, n_starts=5).fit(demos)
    nodes, _ = demos.distinct()
    np.testing.assert_array_equal(model.predict(nodes), model.controllers_[model.labels_])
    point = np.array([2.0, 1.5])
    distance = np.linalg.norm(nodes - point, axis=1)
    near = np.argsort(distance)[:8]
    pull = np.exp(-(distance[near] ** 2)) @ model.label_probabilities_[near]
    assert model.predict(point[None])[0] == model.controllers_[pull.argmax()]
    far = model.predict_proba([[1e6, 0.0]])
    assert far.sum() == 1.0


def test_restarts_keep_the_best_bound():
    world = CircularMotion()
    demos, _ = world.rollout(4, 60, random_state=0)
    one = ExpectationMaximization(world.dynamics, 4, random_state=0).fit(demos)
    many = ExpectationMaximization(world.dynamics, 4, random_state=0, n_starts=8).fit(demos)
    assert many.bound_ >= one.bound_


def test_an_action_that_cannot_be_is_never_chosen():
    # Without noise to speak of, wrong actions have log-likelihoods of minus 10⁵ and less.
    dynamics = DisplacementDynamics.compass(4, sigma=1e-3)
    walk = np.cumsum(np.tile([[1.0, 0.0]], (9, 1)), axis=0)
    model = ExpectationMaximization(dynamics, 4, random_state=0).fit([walk])
    np.testing.assert_array_equal(model.predict(walk[:-1]), 0)


def test_bad_arguments_are_named():
    world = GridWorld(3, 4)
    demos, _ = world.rollout(5, 4, random_state=0)
    with pytest.raises(ValueError, match="n_controllers"):
        ExpectationMaximization(world.dynamics, 0).fit(demos)
    with pytest.raises(ValueError, match="beta"):
        ExpectationMaximization(world.dynamics, 2, -1.0).fit(demos)
