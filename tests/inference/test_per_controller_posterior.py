"""What a run with a concentration for each controller gives: priors, predictions, files."""

import math

import exact
import numpy as np
import pytest
from small_runs import assert_same_draws, plane_problem, quick

from onlooker import Posterior
from onlooker.hyper import (
    DirichletMixture,
    Exponential,
    Gamma,
    LogUniform,
    PerController,
    check_hyper,
    mixture_of,
)
from onlooker.inference.runner import Plan
from onlooker.partitions import ChineseRestaurant, DistanceDependent, Mixing
from onlooker.runs.codec import decode, encode

PROBLEM = plane_problem()
ALPHAS = PerController(LogUniform(0.02, 10.0), n=4)
ORACLE = exact.Mixture(ALPHAS.mixture.alphas, ALPHAS.mixture.weights)


@pytest.fixture(scope="module")
def posterior():
    return quick(PROBLEM, DistanceDependent(), concentration=ALPHAS, draws=20)


# -- priors -------------------------------------------------------------------------------------


def test_a_log_uniform_prior_gives_equal_weights_between_its_bounds():
    mixture = PerController(LogUniform(0.01, 10.0), n=4).mixture
    np.testing.assert_allclose(mixture.alphas, [0.01, 0.1, 1.0, 10.0])
    np.testing.assert_allclose(mixture.weights, 0.25)


@pytest.mark.parametrize("prior", [Exponential(0.3), Gamma(2.0, 4.0), Gamma(0.5, 0.1)], ids=str)
def test_the_grid_of_another_prior_has_nearly_its_mean_and_spread(prior):
    mixture = PerController(prior, n=60).mixture
    draws = np.array([prior.sample(rng) for rng in [np.random.default_rng(0)] for _ in range(9000)])
    mean = np.dot(mixture.weights, mixture.alphas)
    spread = math.sqrt(np.dot(mixture.weights, np.square(mixture.alphas)) - mean**2)
    assert mean == pytest.approx(prior.mean, rel=0.05)
    assert spread == pytest.approx(draws.std(), rel=0.1)
    ratios = np.diff(np.log(mixture.alphas))
    np.testing.assert_allclose(ratios, ratios[0])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DirichletMixture((1.0,)), ValueError, "alphas must hold 2 to 100 .*got 1; a num"),
        (lambda: DirichletMixture((1.0, -1.0)), ValueError, r"alphas\[1\] must be .* above 0"),
        (
            lambda: DirichletMixture((1.0, 2.0), (1.0,)),
            ValueError,
            "many as alphas, got 1 and 2",
        ),
        (lambda: DirichletMixture((1.0, 2.0), (1.0, 0.0)), ValueError, r"weights\[1\]"),
        (lambda: DirichletMixture((1.0, math.nan)), ValueError, "alphas holds nan at index"),
        (lambda: PerController(1.0), TypeError, "prior must be a prior .*use DirichletMixture"),
        (lambda: PerController(Gamma), TypeError, "prior must be a prior"),
        (lambda: PerController(n=1), ValueError, "n must be at least 2"),
        (lambda: PerController(n=101), ValueError, "n must be at most 100"),
        (lambda: PerController(Exponential(1e-20)).mixture, ValueError, "does not spread over"),
        (lambda: PerController(Gamma(1e9, 1e9)).mixture, ValueError, "does not spread over"),
        (lambda: check_hyper("gamma", PerController()), TypeError, "gamma must be a number or a"),
    ],
)
def test_what_is_no_mixture_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_run_refuses_concentrations_that_drown_counts():
    with pytest.raises(ValueError, match="concentration must be at most 1e"):
        Plan(PROBLEM, Mixing(3), DirichletMixture((1.0, 1e12)), True, 5, 5, 1, 1, 0)


@pytest.mark.parametrize("given", [ALPHAS, DirichletMixture((0.1, 3.0), (1.0, 3.0))], ids=repr)
def test_it_is_stored_and_read_back(given):
    arrays = {}
    read = decode(encode(given, "concentration", arrays), arrays)
    assert read == given
    assert mixture_of(read) == mixture_of(given)


# -- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"collapsed": False}], ids=str)
@pytest.mark.parametrize("prior", [Mixing(3), ChineseRestaurant()], ids=repr)
def test_extending_a_finished_run_gives_the_bits_of_one_run(prior, options, tmp_path):
    options = {"concentration": ALPHAS, **options}
    quick(PROBLEM, prior, draws=5, store=tmp_path / "s", **options)
    more = quick(PROBLEM, prior, draws=12, store=tmp_path / "s", resume=True, **options)
    whole = quick(PROBLEM, prior, draws=12, **options)
    assert_same_draws(more, whole)
    loaded = Posterior.load(tmp_path / "s")
    assert loaded.plan.concentration == ALPHAS
    np.testing.assert_array_equal(loaded.policy(), whole.policy())


def test_links_and_their_hyper_parameters_go_on_as_well(tmp_path):
    prior = DistanceDependent.inferred()
    quick(PROBLEM, prior, draws=5, store=tmp_path, concentration=ALPHAS)
    more = quick(PROBLEM, prior, draws=9, store=tmp_path, concentration=ALPHAS, resume=True)
    assert_same_draws(more, quick(PROBLEM, prior, draws=9, concentration=ALPHAS))
    assert "alpha" not in more.hyper
    assert set(more.hyper) >= {"nu", "scale", "offset"}


# -- predictions --------------------------------------------------------------------------------


def counts_of(posterior, chain, draw):
    """(N, A): the counts of each node's cluster."""
    labels, actions = posterior.labels[chain, draw], posterior.actions[chain, draw]
    xi = np.zeros((labels.max() + 1, PROBLEM.n_actions))
    np.add.at(xi, (labels[PROBLEM.node_of], actions), 1)
    return xi[labels]


def over_draws(posterior, value):
    every = np.ndindex(posterior.labels.shape[:2])
    return np.array([value(counts_of(posterior, *index)) for index in every])


def test_policies_integrate_the_concentrations_out(posterior):
    expected = over_draws(posterior, ORACLE.policy).mean(axis=0)
    np.testing.assert_allclose(posterior.policy(), expected)


def test_the_concentration_of_a_node_is_the_mean_over_draws(posterior):
    expected = over_draws(posterior, lambda xi: ORACLE.shares(xi) @ ORACLE.alphas).mean(axis=0)
    np.testing.assert_allclose(posterior.concentration(), expected)
    assert posterior.concentration().shape == (PROBLEM.n_nodes,)


def test_with_one_alpha_the_concentration_is_its_mean():
    posterior = quick(PROBLEM, Mixing(3), concentration=Gamma(2.0, 2.0), draws=20)
    np.testing.assert_allclose(posterior.concentration(), posterior.hyper["alpha"].mean())


def test_a_place_far_from_everything_has_the_uniform_policy(posterior):
    """The mean of every component is uniform, so a new controller's is."""
    alone = quick(PROBLEM, ChineseRestaurant(1e6), concentration=ALPHAS, draws=5)
    policy = alone.policy([[50.0, 50.0]], extrapolate="average")
    np.testing.assert_allclose(policy, 1 / PROBLEM.n_actions, atol=1e-3)


def test_drawn_controllers_have_the_moments_that_are_claimed(posterior):
    clusters = next(posterior.predictor.blocks())
    rng = np.random.default_rng(0)
    draws = np.array([clusters.thetas(rng) for _ in range(4000)])
    error = draws.std(axis=0) / math.sqrt(4000)
    assert (np.abs(draws.mean(axis=0) - clusters.policy) < 6 * error + 1e-4).all()
    squares = draws**2
    error = squares.std(axis=0) / math.sqrt(4000)
    assert (np.abs(squares.mean(axis=0) - clusters.square) < 6 * error + 1e-4).all()
    few = clusters.take(np.array([3, 1]))
    np.testing.assert_array_equal(few.policy[0], clusters.policy[clusters.first[3]])


def test_intervals_and_diagnostics_work_without_an_alpha(posterior):
    found = posterior.policy(interval=0.9)
    assert ((found.low <= found.mean) & (found.mean <= found.high)).mean() > 0.95
    assert not any("alpha" in str(name) for name in posterior.summary().index)
    before = posterior.policy()
    kept = replace_predictor(posterior)
    np.testing.assert_array_equal(kept.policy(), before)


def replace_predictor(posterior):
    """A posterior whose predictor is the one of the explorer."""
    made = Posterior.__new__(Posterior)
    made.__dict__.update({k: v for k, v in posterior.__dict__.items() if k != "_at_nodes"})
    made.predictor.keep_counts = True
    return made
