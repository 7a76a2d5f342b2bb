"""Positions that were not seen, or seen through noise, drawn along with everything else."""

import itertools

import exact
import numpy as np
import pytest
import scipy.stats
from agreement import _discrepancies, _Group
from bare import bare_problem
from unseen_states import ALPHA, MODELS, run

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import LogUniform
from onlooker.missing.positions import draw_positions
from onlooker.partitions import DistanceDependent, GaussianDecay, Mixing

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")

# -- positions ------------------------------------------------------------------------------------

STEPS = np.array([[0.9], [-0.4]])
SIGMA = 0.5


def dense_positions(observed, drift, sigma, noise):
    """Mean and covariance of one trajectory's positions in one dimension, from all terms."""
    n = len(observed)
    precision, shift = np.zeros((n, n)), np.zeros(n)
    for i in range(n - 1):
        difference = np.zeros(n)
        difference[[i, i + 1]] = -1.0, 1.0
        precision += np.outer(difference, difference) / sigma**2
        shift += difference * drift[i] / sigma**2
    for i in np.flatnonzero(~np.isnan(observed)):
        precision[i, i] += 1 / noise**2
        shift[i] += observed[i] / noise**2
    covariance = np.linalg.inv(precision)
    return covariance @ shift, covariance


@pytest.mark.parametrize("noise", [0.3, 0.0])
def test_positions_have_the_mean_and_covariance_of_the_gaussian(noise):
    y = np.array([[np.nan], [0.3], [1.1], [np.nan], [np.nan], [0.4], [np.nan]])
    drift = np.random.default_rng(0).normal(size=(7, 1))
    mean, covariance = dense_positions(y[:, 0], drift[:, 0], 0.7, noise or 1e-5)
    rng, x, offsets = np.random.default_rng(1), np.zeros((7, 1)), np.array([0, 7])
    drawn = np.empty((40_000, 7))
    for draw in drawn:
        draw_positions(x, y, offsets, drift, 0.7, noise, rng)
        draw[:] = x[:, 0]
    error = np.sqrt(np.diag(covariance) / len(drawn)) + 1e-4
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * error).all()
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert (np.abs(np.cov(drawn.T) - covariance) < 0.03 * spread + 1e-4).all()
    if noise == 0.0:
        np.testing.assert_array_equal(drawn[:, [1, 2, 5]], np.tile([0.3, 1.1, 0.4], (40_000, 1)))


def test_the_kernel_of_positions_is_its_twin():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(9, 2))
    y[rng.random((9, 2)) < 0.4] = np.nan
    y[[1, 6]] = 0.5
    drift, offsets = rng.normal(size=(9, 2)), np.array([0, 4, 9])
    x = np.zeros((9, 2))
    draw_positions(x, y, offsets, drift, 0.7, 0.2, np.random.default_rng(3))
    normals = iter(np.random.default_rng(3).standard_normal(18))
    for start, stop in itertools.pairwise(offsets):
        for d in range(2):
            # backwards in time: each position given the next one and all that was seen before it
            for i in range(stop - 1, start - 1, -1):
                seen = np.where(np.arange(start, i + 1) <= i, y[start : i + 1, d], np.nan)
                following = () if i == stop - 1 else (x[i + 1, d] - drift[i, d],)
                m, v = given_past(seen, drift[start:i, d], following, 0.7, 0.2)
                assert x[i, d] == pytest.approx(m + np.sqrt(v) * next(normals))


def given_past(seen, drift, following, sigma, noise):
    """Mean and variance of the last position, given what was seen until then, and the next."""
    if np.isnan(seen).all():
        return following[0], sigma**2
    mean, covariance = dense_positions(seen, drift, sigma, noise)
    precision, shift = 1 / covariance[-1, -1], mean[-1] / covariance[-1, -1]
    for value in following:
        precision, shift = precision + 1 / sigma**2, shift + value / sigma**2
    return shift / precision, 1 / precision


def gap_oracle(grid, track, node_of, name, options, sigma=SIGMA):
    """One unseen position, integrated on a grid."""
    cases = []
    for x in grid:
        whole = np.where(np.isnan(track[:, 0]), x, track[:, 0])
        loglik = scipy.stats.norm(STEPS[:, 0], sigma).logpdf(np.diff(whole)[:, None])
        cases.append(getattr(exact, name)(node_of, loglik, len(track), ALPHA, **options))
    return exact.mix("x", grid, np.ones(len(grid)), cases)


@pytest.mark.parametrize("name", ["mixing", "ddcrp"])
def test_an_unseen_position_matches_the_enumerated_posterior(name):
    track = np.array([[0.0], [1.1], [np.nan], [1.6], [1.0]])
    demos = Demonstrations([track], missing="infer")
    problem = bare_problem(demos, DisplacementDynamics(STEPS, SIGMA))
    prior, _, options = MODELS[name]
    if name == "ddcrp":  # nodes lie on the straight line between those seen
        prior = DistanceDependent(0.4, GaussianDecay(0.8, 0.1))
        places = np.array([[0.0], [1.1], [1.35], [1.6], [1.0]])
        weights = exact.gaussian_decay(0.8, 0.1)(exact.pairwise_distances(places))
        options = {"nu": 0.4, "weights": weights}
    draws = run(problem, prior)
    draws.hyper = {"x": draws.unseen[..., 0, 0]}
    oracle = gap_oracle(np.linspace(-2.0, 4.5, 60), track, [0, 1, 2, 3], name, options)
    assert exact.compare(draws, oracle, alpha=ALPHA) == []


def test_unknown_noise_of_steps_and_of_sight_match_the_enumerated_posterior():
    """σ and the observation noise on a grid, positions integrated out."""
    track = np.array([[0.0], [1.2], [0.7], [1.9]])
    step, sight = LogUniform(0.2, 1.0), LogUniform(0.1, 1.0)
    dynamics = DisplacementDynamics(STEPS, step)
    problem = bare_problem([track], dynamics, observation_noise=sight)
    draws = run(problem, Mixing(2, 0.8), sweeps=8_000)
    x, w = np.polynomial.legendre.leggauss(16)

    def points(prior):
        middle, half = np.log(prior.low * prior.high) / 2, np.log(prior.high / prior.low) / 2
        return np.exp(middle + half * x)

    flat = exact.mixing([0, 1, 2], np.zeros((3, 2)), 4, ALPHA, 2, 0.8).table
    prior = flat.joint[0].sum(axis=0)  # of action sequences
    difference = np.diff(np.eye(4), axis=0)
    moves, total, sums = np.diff(track[:, 0]), 0.0, np.zeros(4)
    for (sigma, ws), (noise, wn) in itertools.product(
        zip(points(step), w, strict=True), zip(points(sight), w, strict=True)
    ):
        covariance = sigma**2 * np.eye(3) + noise**2 * difference @ difference.T
        density = scipy.stats.multivariate_normal(np.zeros(3), covariance)
        weight = ws * wn * (prior @ [density.pdf(moves - STEPS[a, 0]) for a in flat.sequences])
        total += weight
        sums += weight * np.array([sigma, noise, sigma**2, noise**2])
    mean, square = sums[:2] / total, sums[2:] / total
    group = _Group()
    for k, name in enumerate(("sigma", "observation_noise")):
        sd = float(np.sqrt(square[k] - mean[k] ** 2))
        group.add(f"E[{name}]", draws.hyper[name], mean[k], sd, scale=2 * sd)
    assert _discrepancies(group, 1e-4) == []
