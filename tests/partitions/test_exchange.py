"""β of the Potts model: Swendsen–Wang sweeps and the exchange algorithm."""

import itertools
import math

import enumerated
import exact
import naive_exchange
import numpy as np
import pytest
import scipy.stats
from chains import make_chain
from scipy.special import logsumexp
from small_runs import assert_same_draws, plane_problem, quick

from onlooker import Posterior, Problem
from onlooker.hyper import Exponential, Gamma, LogUniform
from onlooker.partitions import GaussianDecay, Potts
from onlooker.partitions.geometry import Geometry, symmetrised
from onlooker.partitions.potts import bound as potts_bound
from onlooker.partitions.potts.exchange import Exchange, agreement, edges_of, swendsen_wang

K = 3
GRAPH = symmetrised(Geometry(enumerated.COORDINATES).similarity(GaussianDecay(1.2), 2))
WEIGHTS = GRAPH.toarray()
LABELINGS = np.array(list(itertools.product(range(K), repeat=enumerated.N)))
AGREEMENT = np.array([naive_exchange.agreement(z, WEIGHTS) for z in LABELINGS])


def random_graph(seed, n=25):
    states = np.random.default_rng(seed).uniform(0, 3, size=(n, 2))
    return symmetrised(Geometry(states).similarity(GaussianDecay(1.0), 4))


def moments(beta):
    """E[S] and sd of S at β, over all labelings."""
    weight = np.exp(beta * AGREEMENT)
    weight /= weight.sum()
    mean = weight @ AGREEMENT
    return mean, np.sqrt(weight @ (AGREEMENT - mean) ** 2)


# -- Swendsen–Wang ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_swendsen_wang_sweeps_equal_their_twin(seed):
    graph = random_graph(seed)
    weights = graph.toarray().tolist()
    labels = np.random.default_rng(seed).integers(4, size=25, dtype=np.int32)
    twin = labels.tolist()
    rng, twin_rng = np.random.default_rng(seed), np.random.default_rng(seed)
    for beta in (0.0, 0.4, 1.0, 3.0, 50.0):
        found = swendsen_wang(labels, edges_of(graph), beta, 4, 1, rng)
        twin = naive_exchange.swendsen_wang(twin, weights, beta, 4, twin_rng)
        assert labels.tolist() == twin
        assert found == pytest.approx(naive_exchange.agreement(twin, weights), rel=1e-12)
        assert found == agreement(labels, edges_of(graph))


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.5, 4.0])
def test_swendsen_wang_draws_have_the_agreement_of_all_labelings(beta):
    rng = np.random.default_rng(1)
    labels = np.zeros(enumerated.N, dtype=np.int32)
    edges = edges_of(GRAPH)
    found = np.array([swendsen_wang(labels, edges, beta, K, 1, rng) for _ in range(30_000)])
    mean, sd = moments(beta)
    batches = found.reshape(100, -1).mean(axis=1)
    assert abs(found.mean() - mean) < 5 * batches.std(ddof=1) / 10
    assert found.std() == pytest.approx(sd, rel=0.03)


def test_strong_bonds_join_a_whole_component_and_none_beyond():
    graph = symmetrised(
        Geometry(np.array([[0.0], [0.1], [0.2], [50.0]])).similarity(GaussianDecay(1.0), 1)
    )
    rng = np.random.default_rng(0)
    labels = np.zeros(4, dtype=np.int32)
    drawn = []
    for _ in range(200):
        swendsen_wang(labels, edges_of(graph), 1e6, 5, 1, rng)
        assert len(set(labels[:3].tolist())) == 1
        drawn.append(labels[3] == labels[0])
    assert 0.05 < np.mean(drawn) < 0.4  # one in five


# -- the exchange algorithm ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_beta_equal_their_twin(seed):
    graph = random_graph(seed)
    labels = np.random.default_rng(seed).integers(4, size=25, dtype=np.int32)
    prior = Gamma(2.0, 2.0)
    exchange = Exchange(graph, 4, prior, sweeps=3)
    exchange.rate = 1.0
    rng, twin_rng = np.random.default_rng(seed), np.random.default_rng(seed)
    beta = twin = 1.0
    weights, density = graph.toarray().tolist(), scipy.stats.gamma(2, scale=0.5).pdf
    found = set()
    for _ in range(30):
        twin_rng.random()  # whether there is a step at all
        beta = exchange.draw(beta, labels, rng)
        arguments = (labels.tolist(), weights, 4, density, 3, exchange.widths, twin_rng)
        twin = naive_exchange.exchange(twin, *arguments)
        assert beta == pytest.approx(twin, rel=1e-12)
        found.add(beta)
    assert 3 < len(found) < 31


class NoAuxiliaryDraw(Exchange):
    """As if the normaliser did not depend on β."""

    def log_likelihood_ratio(self, beta, candidate, labels, rng):
        at_random = self.edges.weight.sum() / self.n_clusters
        return (candidate - beta) * (agreement(labels, self.edges) - at_random)


class SignOfTheExchangeWrong(Exchange):
    def log_likelihood_ratio(self, *arguments):
        return -super().log_likelihood_ratio(*arguments)


class AuxiliaryAtTheOldBeta(Exchange):
    def log_likelihood_ratio(self, beta, candidate, labels, rng):
        drawn = swendsen_wang(labels.copy(), self.edges, beta, self.n_clusters, self.sweeps, rng)
        return (candidate - beta) * (agreement(labels, self.edges) - drawn)


class AuxiliaryNotMoved(Exchange):
    """The chain of auxiliary labelings is too short to leave its start."""

    def log_likelihood_ratio(self, beta, candidate, labels, rng):
        return 0.0


class JacobianForgotten(Exchange):
    def log_likelihood_ratio(self, beta, candidate, labels, rng):
        return super().log_likelihood_ratio(beta, candidate, labels, rng) - math.log(
            candidate / beta
        )


BROKEN = [
    NoAuxiliaryDraw,
    SignOfTheExchangeWrong,
    AuxiliaryAtTheOldBeta,
    AuxiliaryNotMoved,
    JacobianForgotten,
]
BETA = Gamma(2.0, 1.0)
BETA_PDF = scipy.stats.gamma(2.0, scale=1.0)


def given_labels(kind, labels, steps=12_000):
    """How many standard errors the mean of β, given labels, is off the enumerated one."""
    states = np.random.default_rng(2).uniform(0, 2, size=(len(labels), 2))
    graph = Geometry(states).similarity(GaussianDecay(3.0))
    exchange = kind(graph, K, BETA, 20)
    exchange.rate = 1.0
    labels, rng, beta = np.array(labels, dtype=np.int32), np.random.default_rng(0), 1.0
    found = np.empty(steps)
    for s in range(steps):
        beta = min(exchange.draw(beta, labels, rng), 40.0)  # a broken one runs away
        found[s] = beta
    values, weights = exact.grid(BETA_PDF)
    every = itertools.product(range(K), repeat=len(labels))
    log_z = logsumexp([values * agreement(np.array(z), exchange.edges) for z in every], axis=0)
    log_p = np.log(weights) + values * agreement(labels, exchange.edges) - log_z
    p = np.exp(log_p - logsumexp(log_p))
    batches = found.reshape(60, -1).mean(axis=1)
    return abs(found.mean() - p @ values) / (batches.std(ddof=1) / np.sqrt(60))


LABELINGS_GIVEN = [(0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1, 1), (0, 0, 0, 1, 1, 2, 2)]


def worst_given_labels(kind):
    return max(given_labels(kind, labels) for labels in LABELINGS_GIVEN)


def test_beta_given_labels_matches_the_enumerated_posterior():
    assert worst_given_labels(Exchange) < 4.5


@pytest.mark.parametrize("broken", BROKEN)
def test_a_wrong_step_for_beta_given_labels_is_caught(broken):
    assert worst_given_labels(broken) > 4.5


def beta_problems(monkeypatch, kind, sweeps=4_000, auxiliary=10):
    """What the draws of β and of everything else get wrong."""

    def make(*arguments):
        exchange = kind(*arguments)
        exchange.rate = 1.0
        return exchange

    monkeypatch.setattr(potts_bound, "Exchange", make)
    node_of, loglik, n_nodes, coordinates = exact.sharp_problem()
    potts = Potts(
        K, beta=BETA, decay=GaussianDecay(3.0), n_neighbors=None, auxiliary_sweeps=auxiliary
    )
    problem = Problem(node_of, loglik, coordinates)
    draws = enumerated.run(potts, problem=problem, alpha=0.1, sweeps=sweeps)
    distances = exact.pairwise_distances(coordinates)
    weights = exact.weights_potts(distances, exact.gaussian_decay(3.0))
    oracle = exact.potts(node_of, loglik, n_nodes, 0.1, K, BETA_PDF, weights)
    return exact.compare(draws, oracle, alpha=0.1)


def test_beta_matches_the_enumerated_posterior(monkeypatch):
    assert beta_problems(monkeypatch, Exchange, sweeps=8_000) == []


@pytest.mark.parametrize("broken", [SignOfTheExchangeWrong, AuxiliaryNotMoved, JacobianForgotten])
def test_a_wrong_step_for_beta_is_caught_in_the_joint_posterior(broken, monkeypatch):
    assert beta_problems(monkeypatch, broken)


def test_steps_are_rarer_the_longer_the_auxiliary_chains():
    rates = [Exchange(GRAPH, K, BETA, sweeps).rate for sweeps in (1, 2, 10, 50)]
    assert rates == [1.0, 1.0, 0.2, 0.04]


@pytest.mark.parametrize("prior", [LogUniform(1e-300, 1e300), Gamma(1e-3, 1e-3), Exponential(1e3)])
def test_extreme_priors_give_finite_draws_within_their_support(prior):
    exchange = Exchange(GRAPH, K, prior, sweeps=2)
    exchange.widths = (4.0, 5.0)  # leaps
    exchange.rate = 1.0
    rng = np.random.default_rng(0)
    labels = np.zeros(enumerated.N, dtype=np.int32)
    beta, found = prior.mean, set()
    for _ in range(300):
        beta = exchange.draw(beta, labels, rng)
        assert 0 < beta < math.inf
        assert prior.logpdf(beta) > -math.inf
        found.add(beta)
    assert len(found) > 2


def test_beta_moves_towards_the_labels():
    """All nodes in one cluster speak for a large β, all apart for a small one."""
    exchange = Exchange(GRAPH, K, Gamma(1.0, 0.2), sweeps=5)
    exchange.rate = 1.0
    means = []
    for labels in (np.zeros(enumerated.N), np.arange(enumerated.N) % K):
        rng, beta, found = np.random.default_rng(0), 1.0, []
        for _ in range(800):
            beta = exchange.draw(beta, labels.astype(np.int32), rng)
            found.append(beta)
        means.append(np.mean(found))
    assert means[0] > 3 * means[1]


# -- as a user meets it -------------------------------------------------------------------------


def test_a_constant_attraction_of_all_pairs_is_refused_while_beta_is_inferred():
    problem = plane_problem()
    decay = GaussianDecay(1.0, offset=0.1)
    with pytest.raises(ValueError, match="offset to 0, or n_neighbors to a number, or fix beta"):
        Potts(3, beta=BETA, decay=decay, n_neighbors=None).bind(problem)
    Potts(3, beta=BETA, decay=decay, n_neighbors=4).bind(problem)
    Potts(3, beta=1.0, decay=decay, n_neighbors=None).bind(problem)


def test_draws_of_beta_are_kept_stored_and_gone_on_with(tmp_path):
    prior = Potts(3, beta=BETA, n_neighbors=4, auxiliary_sweeps=4)
    problem = plane_problem()
    quick(problem, prior, draws=6, store=tmp_path)
    more = quick(problem, prior, draws=30, store=tmp_path, resume=True)
    whole = quick(problem, prior, draws=30)
    assert_same_draws(more, whole)
    loaded = Posterior.load(tmp_path)
    assert_same_draws(loaded, whole)
    assert len(np.unique(loaded.hyper["beta"])) > 5
    for name in ("beta", "auxiliary_sweeps"):
        assert getattr(loaded.prior, name) == getattr(prior, name)


def test_a_fixed_beta_is_reported_and_stays():
    posterior = quick(plane_problem(), Potts(3, beta=0.7, n_neighbors=4))
    assert set(posterior.hyper["beta"].ravel()) == {0.7}


def test_an_inferred_beta_enters_the_log_joint_and_the_indicators(monkeypatch):
    problem = Problem(enumerated.NODE_OF, enumerated.LOGLIK, enumerated.COORDINATES)
    chain = make_chain(problem, Potts(K, beta=BETA, n_neighbors=2), rng=np.random.default_rng(0))
    chain.sweep()
    before = chain.log_joint()
    chain.state.labels[:] = 0
    chain.state.hyper["beta"] += 1.0
    s = agreement(chain.state.labels, chain.bound.exchange.edges)
    beta = chain.state.hyper["beta"]
    assert chain.bound.log_prior(chain.state) == pytest.approx(beta * s)
    assert np.isfinite(before)
    seen = []
    monkeypatch.setattr(potts_bound, "draw_indicators", lambda _, prior: seen.append(prior) or 0.0)
    chain.update("indicators")(chain.state)
    assert seen[0].beta == beta
