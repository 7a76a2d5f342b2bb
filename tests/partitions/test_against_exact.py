"""Every prior × scheme against the enumerated posterior."""

import exact
import numpy as np
import pytest
import scipy.stats
from enumerated import (
    ALPHA,
    DISTANCE_DEPENDENT,
    DISTANCES,
    INFERRED,
    SWEEPS,
    decayed,
    posterior_of,
    run,
)

from onlooker.hyper import Exponential, LogUniform
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

FINITE = {
    "static": (Static(), lambda: posterior_of("static")),
    "uniform": (Uniform(3), lambda: posterior_of("uniform", n_clusters=3)),
    "mixing": (Mixing(3, 0.8), lambda: posterior_of("mixing", n_clusters=3, gamma=0.8)),
    "mixing-q": (
        Mixing(3, 0.8, collapsed=False),
        lambda: posterior_of("mixing", n_clusters=3, gamma=0.8),
    ),
    "potts-all-pairs": (
        Potts(3, beta=0.9, decay=GaussianDecay(1.2), n_neighbors=None),
        lambda: posterior_of(
            "potts",
            n_clusters=3,
            beta=0.9,
            weights=exact.weights_potts(DISTANCES, exact.gaussiandecayed(1.2)),
        ),
    ),
    "potts-offset": (
        Potts(3, beta=0.9, decay=GaussianDecay(0.6, offset=0.3), n_neighbors=None),
        lambda: posterior_of(
            "potts",
            n_clusters=3,
            beta=0.9,
            weights=exact.weights_potts(DISTANCES, exact.gaussiandecayed(0.6, 0.3)),
        ),
    ),
    "potts-neighbours": (
        Potts(3, beta=1.6, decay=GaussianDecay(1.2), n_neighbors=1),
        lambda: posterior_of(
            "potts",
            n_clusters=3,
            beta=1.6,
            weights=exact.weights_potts(DISTANCES, exact.gaussiandecayed(1.2), 1),
        ),
    ),
    "crp": (ChineseRestaurant(1.3), lambda: posterior_of("crp", gamma=1.3)),
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
    oracle = posterior_of("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=decayed(0.8, 0.5))
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


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("model", INFERRED)
def test_inferred_concentrations_match_the_enumerated_posterior(model, collapsed):
    prior, oracle = INFERRED[model]
    if prior.collapsed_only and not collapsed:
        return
    draws = run(prior, collapsed=collapsed, blocked=False, alpha=Exponential(0.8))
    assert exact.compare(draws, oracle(alpha=scipy.stats.expon(scale=0.8))) == []
