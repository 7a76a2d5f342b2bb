"""Steps with noise."""

import numpy as np
import pytest
import scipy.stats

from onlooker.dynamics import (
    DisplacementDynamics,
)

# -- steps with noise ------------------------------------------------------------------------------


def test_displacements_have_gaussian_log_densities():
    rng = np.random.default_rng(0)
    steps, sigma = rng.normal(size=(5, 3)), 0.7
    states, next_states = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    found = DisplacementDynamics(steps, sigma).log_likelihood(states, next_states)
    for a, step in enumerate(steps):
        expected = scipy.stats.norm(states + step, sigma).logpdf(next_states).sum(axis=1)
        np.testing.assert_allclose(found[:, a], expected, rtol=1e-12)


NOISES = [0.3, [0.3, 1.0], [[0.3, 0.1], [2.0, 1.0]], [[0.3, 5.0]]]


def noise_of(sigma, action, dim):
    """By hand: a number, one per action, one per action and dimension, or one per dimension."""
    if np.ndim(sigma) == 0:
        return sigma
    if np.ndim(sigma) == 1:
        return sigma[action]
    return sigma[action % len(sigma)][dim]


@pytest.mark.parametrize("sigma", NOISES)
def test_each_action_may_have_noise_of_its_own(sigma):
    dynamics = DisplacementDynamics([[1.0, -2.0], [0.0, 0.5]], sigma)
    move = np.array([0.4, -0.3])
    found = dynamics.log_likelihood([[7.0, 7.0]], [7.0 + move])[0]
    for a, step in enumerate(dynamics.steps):
        expected = sum(
            scipy.stats.norm(step[dim], noise_of(sigma, a, dim)).logpdf(move[dim]) for dim in (0, 1)
        )
        assert found[a] == pytest.approx(expected)


def test_the_misfit_is_in_the_noise_of_the_nearest_action():
    dynamics = DisplacementDynamics([[0.0], [10.0]], [0.1, 2.0])
    loglik = dynamics.log_likelihood(np.zeros((4, 1)), [[0.0], [0.3], [6.0], [-0.2]])
    assert dynamics.misfit(loglik) == pytest.approx([0.0, 3.0, 2.0, 2.0])
    assert "sigma=0.1 to 2" in repr(dynamics)


@pytest.mark.parametrize("sigma", NOISES)
def test_displaced_draws_have_the_step_as_mean_and_sigma_as_spread(sigma):
    dynamics = DisplacementDynamics([[1.0, -2.0], [0.0, 0.5]], sigma)
    states, actions = np.full((20_000, 2), 4.0), np.tile([0, 1], 10_000)
    drawn = dynamics.sample(states, actions, np.random.default_rng(0))
    scores = drawn - states - dynamics.steps[actions]
    for a in (0, 1):
        scores[actions == a] /= [noise_of(sigma, a, dim) for dim in (0, 1)]
    for a in (0, 1):
        for dim in (0, 1):
            assert scipy.stats.kstest(scores[actions == a, dim], "norm").pvalue > 1e-3


def test_the_compass_points_where_it_should():
    compass = DisplacementDynamics.compass(4, step=2.0, stay=True)
    expected = [[2, 0], [0, 2], [-2, 0], [0, -2], [0, 0]]
    np.testing.assert_allclose(compass.steps, expected, atol=1e-12)
    assert DisplacementDynamics.compass().n_actions == 24


@pytest.mark.parametrize("sigma", [5e-324, 1e-200, 1e-8, 1.0, 1e200, 1e308])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e20, 1e200, 1.7e308])
def test_log_likelihoods_are_never_nan(sigma, far):
    dynamics = DisplacementDynamics.compass(4, sigma=sigma, stay=True)
    moves = np.array([[1.0, 0.0], [0.0, far], [far, -far], [-far, 1.0]])
    for states in (np.zeros((4, 2)), -moves):
        found = dynamics.log_likelihood(states, moves)
        assert not np.isnan(found).any()
        assert (found < np.inf).all()


def test_tiny_noise_still_knows_the_action_that_fits():
    dynamics = DisplacementDynamics.compass(4, sigma=1e-200)
    found = dynamics.log_likelihood([[0.0, 0.0]], [[1.0, 0.0]])[0]
    assert np.isfinite(found[0])
    assert (found[1:] == -np.inf).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DisplacementDynamics([1.0, 2.0], 1.0), ValueError, "steps must have 2 dim"),
        (
            lambda: DisplacementDynamics([[1.0], [np.nan]], 1.0),
            ValueError,
            r"steps holds nan at index \(1, 0\)",
        ),
        (lambda: DisplacementDynamics([[1.0], [1.0, 2.0]], 1.0), ValueError, "steps is ragged"),
        (lambda: DisplacementDynamics("north", 1.0), TypeError, "steps must hold numbers"),
        (
            lambda: DisplacementDynamics(np.zeros((0, 2)), 1.0),
            ValueError,
            r"steps must be \(A, d\)",
        ),
        (
            lambda: DisplacementDynamics([[1.0]], 0.0),
            ValueError,
            "sigma must be finite and above 0",
        ),
        (lambda: DisplacementDynamics([[1.0]], -1.0), ValueError, "sigma must .* got -1.0"),
        (lambda: DisplacementDynamics([[1.0]], np.nan), ValueError, "sigma must .* got nan"),
        (lambda: DisplacementDynamics([[1.0]], "wide"), TypeError, "sigma must be a number"),
        (
            lambda: DisplacementDynamics([[1.0]], [0.1, 0.2]),
            ValueError,
            r"sigma must be a number, \(1,\) one per action, or \(1, 1\).*got shape \(2,\)",
        ),
        (
            lambda: DisplacementDynamics([[1.0], [2.0]], [0.1, 0.0]),
            ValueError,
            r"sigma holds 0.0 at index \(1,\)",
        ),
        (
            lambda: DisplacementDynamics([[1.0]], [np.nan]),
            ValueError,
            r"sigma holds nan at index \(0,\)",
        ),
        (lambda: DisplacementDynamics.compass(0), ValueError, "n_directions must be at least 1"),
        (lambda: DisplacementDynamics.compass(4.0), TypeError, "n_directions must be an integer"),
        (lambda: DisplacementDynamics.compass(4, step=-1), ValueError, "step must be"),
    ],
)
def test_bad_steps_and_noise_are_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("states", "next_states", "error", "message"),
    [
        (np.zeros((1, 2)), np.zeros((3, 2)), ValueError, "1 states but 3 next_states"),
        (np.zeros((2, 3)), np.zeros((2, 3)), ValueError, r"states must be \(n, 2\).*\(2, 3\)"),
        (np.zeros(2), np.zeros(2), ValueError, r"states must be \(n, 2\)"),
        (np.zeros((2, 2)), [[0, 0], [0, np.nan]], ValueError, r"next_states holds .* at index 1"),
        ([["a", "b"]], [["a", "b"]], TypeError, "states must hold numbers"),
    ],
)
def test_states_that_do_not_fit_the_steps_are_refused(states, next_states, error, message):
    with pytest.raises(error, match=message):
        DisplacementDynamics.compass(4).log_likelihood(states, next_states)


def test_the_steps_are_a_copy():
    steps = np.ones((2, 2))
    dynamics = DisplacementDynamics(steps, 1.0)
    steps[:] = 5
    assert (dynamics.steps == 1).all()
