"""Priors of hyper-parameters, and the two steps that draw them."""

import math

import numpy as np
import pytest
import scipy.stats

from onlooker.gibbs.slices import metropolis_from_prior, slice_sample_log
from onlooker.hyper import (
    Beta,
    Exponential,
    Gamma,
    LogUniform,
    Prior,
    TotalMass,
    check_hyper,
    closed_form,
)

PAIRS = [
    (Exponential(0.1), scipy.stats.expon(scale=0.1)),
    (Exponential(7.0), scipy.stats.expon(scale=7.0)),
    (Gamma(2.5, 4.0), scipy.stats.gamma(2.5, scale=1 / 4.0)),
    (Gamma(0.3, 0.5), scipy.stats.gamma(0.3, scale=1 / 0.5)),
    (LogUniform(0.01, 30.0), scipy.stats.loguniform(0.01, 30.0)),
    (TotalMass(Gamma(2.5, 4.0)).over(5), scipy.stats.gamma(2.5, scale=1 / 20.0)),
    (Beta(2.5, 4.0), scipy.stats.beta(2.5, 4.0)),
    (Beta(0.7, 0.4), scipy.stats.beta(0.7, 0.4)),
]
pairs = pytest.mark.parametrize(("prior", "reference"), PAIRS, ids=[str(p) for p, _ in PAIRS])


@pairs
def test_densities_and_means_are_those_of_scipy(prior, reference):
    values = np.geomspace(1e-3, 50, 40)
    found = [prior.logpdf(float(v)) for v in values]
    np.testing.assert_allclose(found, reference.logpdf(values), rtol=1e-12, atol=1e-12)
    assert prior.mean == pytest.approx(reference.mean())
    assert prior.logpdf(-1.0) == -math.inf
    assert isinstance(prior, Prior)


@pytest.mark.parametrize(
    ("prior", "inside", "outside"),
    [
        (Exponential(7.0), [0.0], [-5e-324]),
        (Gamma(2.5, 4.0), [5e-324], [0.0]),
        (LogUniform(0.01, 30.0), [0.01, 30.0], [0.01 - 1e-15, 30.0 + 1e-13]),
        (Beta(2.5, 4.0), [5e-324, 1 - 1e-15], [0.0, 1.0, 1.5]),
    ],
)
def test_the_support_ends_where_it_should(prior, inside, outside):
    assert all(prior.logpdf(value) > -math.inf for value in inside)
    assert all(prior.logpdf(value) == -math.inf for value in outside)


@pairs
def test_draws_follow_the_density(prior, reference):
    rng = np.random.default_rng(0)
    draws = [prior.sample(rng) for _ in range(4000)]
    assert scipy.stats.kstest(draws, reference.cdf).pvalue > 1e-3
    assert all(isinstance(draw, float) for draw in draws)


def test_draws_between_bounds_never_leave_the_support():
    rng = np.random.default_rng(0)
    for low in (0.1, 0.3, 7.0, 1e5):
        prior = LogUniform(low, low * (1 + 1e-15))  # as wide as rounding errors
        assert all(prior.logpdf(prior.sample(rng)) > -math.inf for _ in range(50))


def test_bounds_as_wide_as_floats_have_a_mean():
    assert LogUniform(1e-300, 1e300).mean == pytest.approx(1e300 / (600 * math.log(10)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Exponential(0.0), ValueError, "mean must be finite and above 0, got 0.0"),
        (lambda: Exponential(-1.0), ValueError, "mean must be"),
        (lambda: Exponential("a"), TypeError, "mean must be a number"),
        (lambda: Gamma(0.0, 1.0), ValueError, "shape must be"),
        (lambda: Gamma(1.0, math.inf), ValueError, "rate must be"),
        (lambda: Beta(0.0, 1.0), ValueError, "a must be"),
        (lambda: Beta(1.0, -1.0), ValueError, "b must be"),
        (lambda: Gamma(1.0, None), TypeError, "rate must be a number"),
        (lambda: LogUniform(0.0, 1.0), ValueError, "low must be"),
        (lambda: LogUniform(2.0, 1.0), ValueError, "low must be below high, got 2.0 and 1.0"),
        (lambda: LogUniform(1.0, 1.0), ValueError, "low must be below high"),
        (lambda: LogUniform(1.0, math.nan), ValueError, "high must be"),
        (lambda: TotalMass(Exponential), TypeError, "takes a prior such as"),
        (lambda: TotalMass(3.0), TypeError, "takes a prior such as .* got 3.0; a number is given"),
        (lambda: check_hyper("nu", Gamma), TypeError, "nu must be a number or a prior .*Gamma$"),
        (
            lambda: check_hyper("nu", scipy.stats.expon()),
            TypeError,
            "nu must be a number or a prior",
        ),
        (lambda: check_hyper("nu", True), TypeError, "nu must be a number"),
        (lambda: check_hyper("nu", 0.0), ValueError, "nu must be finite and above 0"),
    ],
)
def test_bad_priors_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_numbers_of_numpy_are_numbers():
    check_hyper("nu", np.float32(0.5))
    check_hyper("nu", np.int64(3))
    check_hyper("beta", 0, zero_ok=True)
    check_hyper("nu", Gamma(2.0, 1.0))


# -- invariance: starting in the target, any number of steps must stay in it -----------------------


def stays_in(step, target, n=1500, n_steps=12, seed=0):
    """p-value of `n` independent chains, started from the target, after some steps."""
    rng = np.random.default_rng(seed)
    values = target.rvs(size=n, random_state=rng)
    for i in range(n):
        value = float(values[i])
        for _ in range(n_steps):
            value = step(value, rng)
        values[i] = value
    return scipy.stats.kstest(values, target.cdf).pvalue


TARGETS = [(prior, reference) for prior, reference in PAIRS if prior != Exponential(7.0)]
targets = pytest.mark.parametrize(("prior", "target"), TARGETS, ids=[str(p) for p, _ in TARGETS])


@targets
@pytest.mark.parametrize("width", [1.0, 0.2])
def test_slice_sampling_leaves_a_known_density_invariant(prior, target, width):
    assert stays_in(lambda v, rng: slice_sample_log(prior.logpdf, v, rng, width), target) > 1e-3


@pytest.mark.parametrize("prior", [Gamma(2.5, 4.0), LogUniform(0.01, 30.0)], ids=str)
def test_a_forgotten_jacobian_is_caught_by_the_same_check(prior):
    def forgetful(value, rng):
        return slice_sample_log(lambda v: prior.logpdf(v) - math.log(v), value, rng)

    assert stays_in(forgetful, dict(PAIRS)[prior]) < 1e-6


def likelihood(value):
    """Three Poisson counts; with a gamma prior the posterior is gamma again."""
    return 9 * math.log(value) - 3 * value


POSTERIOR = scipy.stats.gamma(2.0 + 9, scale=1 / (1.5 + 3))


def test_metropolis_with_the_prior_as_proposal_leaves_the_posterior_invariant():
    prior = Gamma(2.0, 1.5)
    step = lambda v, rng: metropolis_from_prior(likelihood, v, prior, rng)  # noqa: E731
    assert stays_in(step, POSTERIOR, n_steps=40) > 1e-3


def test_a_prior_counted_twice_is_caught_by_the_same_check():
    prior = Gamma(2.0, 1.5)

    def twice(value, rng):
        return metropolis_from_prior(lambda v: likelihood(v) + prior.logpdf(v), value, prior, rng)

    assert stays_in(twice, POSTERIOR, n_steps=40) < 1e-6


def test_both_steps_reach_the_posterior_from_a_bad_start():
    prior = Gamma(2.0, 1.5)
    steps = {
        "slice": lambda v, rng: slice_sample_log(lambda x: likelihood(x) + prior.logpdf(x), v, rng),
        "metropolis": lambda v, rng: metropolis_from_prior(likelihood, v, prior, rng),
    }
    for step in steps.values():
        rng, value, kept = np.random.default_rng(4), 1e-6, []
        for i in range(20_500):
            value = step(value, rng)
            if i >= 500 and i % 20 == 0:  # thinned, so that draws are nearly independent
                kept.append(value)
        assert scipy.stats.kstest(kept, POSTERIOR.cdf).pvalue > 1e-3


def test_a_proposal_of_zero_is_never_taken():
    class Zero:
        mean = 1.0

        def logpdf(self, value):
            return 0.0

        def sample(self, rng):
            return 0.0

    rng = np.random.default_rng(0)
    assert metropolis_from_prior(likelihood, 0.7, Zero(), rng) == 0.7


@pytest.mark.parametrize(
    "prior",
    [Exponential(0.3), Gamma(2.5, 4.0), LogUniform(0.2, 3.0), TotalMass(Gamma(2.0, 1.5)).over(8)],
    ids=str,
)
def test_a_closed_form_is_the_density_but_for_a_constant(prior):
    power, rate, low, high = closed_form(prior)
    values = np.array([0.21, 0.3, 1.0, 2.9])
    logs = np.array([prior.logpdf(value) for value in values])
    np.testing.assert_allclose(np.ptp(logs - power * np.log(values) + rate * values), 0, atol=1e-12)
    for value in (0.19, 3.1):
        assert (prior.logpdf(value) > -np.inf) == (low <= value <= high)


@pytest.mark.parametrize("prior", [Beta(2.0, 3.0), TotalMass(Beta(2.0, 3.0)).over(4)], ids=str)
def test_other_priors_have_no_closed_form(prior):
    assert closed_form(prior) is None
