"""Every prior × scheme against the enumerated posterior."""

from dataclasses import replace
from types import SimpleNamespace

import exact
import numpy as np
import pytest
import scipy.stats

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform
from onlooker.inference.chain import Chain
from onlooker.inference.metropolis import draw_candidates, log_proposal
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.partitions.links.kernels import Economy

ALPHA = 0.7
SWEEPS = 12_000
CHAINS = 2

NODE_OF, LOGLIK, N, COORDINATES = exact.small_problem(seed=3, n_nodes=5)
DISTANCES = exact.pairwise_distances(COORDINATES)


def run(
    prior,
    *,
    collapsed,
    blocked,
    alpha=ALPHA,
    sweeps=SWEEPS,
    seed=0,
    economy=None,
    problem=None,
):
    """Draws of a few chains, in the shape of a posterior."""
    problem = Problem(NODE_OF, LOGLIK, COORDINATES) if problem is None else problem
    sampler = prior.sampler(problem)
    if economy is not None:
        sampler.options = replace(sampler.options, economy=economy)
    labels, actions, hyper = [], [], []
    for stream in np.random.SeedSequence(seed).spawn(CHAINS):
        chain = Chain(
            problem,
            sampler,
            alpha=alpha,
            collapsed=collapsed,
            blocked=blocked,
            rng=np.random.default_rng(stream),
        )
        for _ in range(20):
            chain.sweep()
        for _ in range(sweeps):
            chain.sweep()
            labels.append(chain.labels)
            actions.append(chain.actions)
            hyper.append(dict(chain.state.hyper))
    names = hyper[0]
    return SimpleNamespace(
        labels=np.array(labels).reshape(CHAINS, sweeps, -1),
        actions=np.array(actions).reshape(CHAINS, sweeps, -1),
        hyper={n: np.array([h[n] for h in hyper]).reshape(CHAINS, sweeps) for n in names},
    )


def _exact(model, alpha=ALPHA, **parameters):
    return getattr(exact, model)(NODE_OF, LOGLIK, N, alpha, **parameters)


def _decay(scale, offset):
    return exact.gaussian_decay(scale, offset)(DISTANCES)


def _nearest(weights, k):
    """Keep each row's k nearest only."""
    kept = np.zeros_like(weights)
    for i in range(N):
        for j in sorted((j for j in range(N) if j != i), key=lambda j: DISTANCES[i, j])[:k]:
            kept[i, j] = weights[i, j]
    return kept


FINITE = {
    "static": (Static(), lambda: _exact("static")),
    "uniform": (Uniform(3), lambda: _exact("uniform", n_clusters=3)),
    "mixing": (Mixing(3, 0.8), lambda: _exact("mixing", n_clusters=3, gamma=0.8)),
    "mixing-q": (
        Mixing(3, 0.8, collapsed=False),
        lambda: _exact("mixing", n_clusters=3, gamma=0.8),
    ),
    "potts-all-pairs": (
        Potts(3, beta=0.9, decay=GaussianDecay(1.2), n_neighbors=None),
        lambda: _exact(
            "potts",
            n_clusters=3,
            beta=0.9,
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(1.2)),
        ),
    ),
    "potts-offset": (
        Potts(3, beta=0.9, decay=GaussianDecay(0.6, offset=0.3), n_neighbors=None),
        lambda: _exact(
            "potts",
            n_clusters=3,
            beta=0.9,
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(0.6, 0.3)),
        ),
    ),
    "potts-neighbours": (
        Potts(3, beta=1.6, decay=GaussianDecay(1.2), n_neighbors=1),
        lambda: _exact(
            "potts",
            n_clusters=3,
            beta=1.6,
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(1.2), 1),
        ),
    ),
    "crp": (ChineseRestaurant(1.3), lambda: _exact("crp", gamma=1.3)),
}

SCHEMES = {
    "collapsed": {"collapsed": True, "blocked": False},
    "ordinary": {"collapsed": False, "blocked": False},
    "blocked": {"collapsed": True, "blocked": True},
    "blocked-ordinary": {"collapsed": False, "blocked": True},
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("model", FINITE)
def test_sampler_matches_the_enumerated_posterior(model, scheme):
    prior, oracle = FINITE[model]
    draws = run(prior, **SCHEMES[scheme])
    assert exact.compare(draws, oracle(), alpha=ALPHA) == []


DISTANCE_DEPENDENT = {
    "all-pairs": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1)),
        lambda: _exact("ddcrp", nu=0.4, weights=_decay(0.8, 0.1)),
    ),
    "no-offset": (
        DistanceDependent(0.4, GaussianDecay(0.8)),
        lambda: _exact("ddcrp", nu=0.4, weights=_decay(0.8, 0.0)),
    ),
    "neighbours": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), n_neighbors=2),
        lambda: _exact("ddcrp", nu=0.4, weights=_nearest(_decay(0.8, 0.1), 2)),
    ),
    "metropolis": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), method="metropolis"),
        lambda: _exact("ddcrp", nu=0.4, weights=_decay(0.8, 0.1)),
    ),
    "metropolis-nu": (
        DistanceDependent(Exponential(0.5), GaussianDecay(0.8), method="metropolis"),
        lambda: _exact("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=_decay(0.8, 0.0)),
    ),
    "nu-slice": (
        DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.1)),
        lambda: _exact("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=_decay(0.8, 0.1)),
    ),
    "nu-metropolis": (
        DistanceDependent(
            Exponential(0.5), GaussianDecay(0.8, 0.1), self_link_step="metropolis", start="self"
        ),
        lambda: _exact("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=_decay(0.8, 0.1)),
    ),
}


@pytest.mark.parametrize("case", DISTANCE_DEPENDENT)
def test_link_sampler_matches_the_enumerated_posterior(case):
    prior, oracle = DISTANCE_DEPENDENT[case]
    draws = run(prior, collapsed=True, blocked=False)
    assert exact.compare(draws, oracle(), alpha=ALPHA) == []


@pytest.mark.parametrize(
    "economy",
    [Economy(0, 1, 1 << 62), Economy(1, 1, 1 << 62), Economy(2, 1, 1), Economy(100, 1, 1)],
    ids=["one-candidate", "from-two-clusters", "from-three-and-short-walks", "short-walks"],
)
@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
def test_short_cuts_leave_the_posterior_as_it_is(method, economy):
    if method == "metropolis" and economy.longest > 1:
        return  # only the walks matter there
    prior = DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.5), method=method)
    oracle = _exact("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=_decay(0.8, 0.5))
    draws = run(prior, collapsed=True, blocked=False, sweeps=2 * SWEEPS, economy=economy)
    assert exact.compare(draws, oracle, alpha=ALPHA) == []


def test_candidates_come_with_the_probability_that_is_claimed():
    rng = np.random.default_rng(0)
    for n_nodes in (1, 2, 3, 4, 7):
        drawn = draw_candidates(n_nodes, 60_000, rng)
        for i in range(n_nodes):
            share = np.bincount(drawn[i], minlength=n_nodes) / 60_000
            table = np.tile(np.arange(n_nodes), (n_nodes, 1))
            claimed = np.exp(log_proposal(table))[i]
            assert claimed.sum() == pytest.approx(1.0)
            assert np.abs(share - claimed).max() < 5 * np.sqrt(0.25 / 60_000)


def test_a_prior_that_excludes_the_usual_start_of_nu_is_sampled_all_the_same():
    prior = DistanceDependent(LogUniform(0.01, 0.3), GaussianDecay(0.8, 0.1))
    draws = run(prior, collapsed=True, blocked=False, sweeps=200)
    assert draws.hyper["nu"].min() >= 0.01
    assert draws.hyper["nu"].max() <= 0.3


GAMMA = scipy.stats.gamma(2, scale=0.5)

INFERRED = {
    "mixing, gamma": (
        Mixing(3, Gamma(2.0, 2.0)),
        lambda **more: _exact(
            "mixing", n_clusters=3, gamma=scipy.stats.gamma(2, scale=0.5), **more
        ),
    ),
    "mixing-q, gamma": (
        Mixing(3, Gamma(2.0, 2.0), collapsed=False),
        lambda **more: _exact(
            "mixing", n_clusters=3, gamma=scipy.stats.gamma(2, scale=0.5), **more
        ),
    ),
    "crp, gamma": (
        ChineseRestaurant(Gamma(2.0, 2.0)),
        lambda **more: _exact("crp", gamma=GAMMA, **more),
    ),
    "ddcrp, nu": (
        DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.1)),
        lambda **more: _exact(
            "ddcrp", nu=scipy.stats.expon(scale=0.5), weights=_decay(0.8, 0.1), **more
        ),
    ),
    "static": (Static(), lambda **more: _exact("static", **more)),
}


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("model", INFERRED)
def test_inferred_concentrations_match_the_enumerated_posterior(model, collapsed):
    prior, oracle = INFERRED[model]
    if prior.collapsed_only and not collapsed:
        return
    draws = run(prior, collapsed=collapsed, blocked=False, alpha=Exponential(0.8))
    assert exact.compare(draws, oracle(alpha=scipy.stats.expon(scale=0.8))) == []
