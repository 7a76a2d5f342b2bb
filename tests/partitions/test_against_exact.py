"""Every prior × scheme against the enumerated posterior."""

import exact
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
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.partitions.links.kernels import Shortcuts

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
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(1.2)),
        ),
    ),
    "potts-offset": (
        Potts(3, beta=0.9, decay=GaussianDecay(0.6, offset=0.3), n_neighbors=None),
        lambda: posterior_of(
            "potts",
            n_clusters=3,
            beta=0.9,
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(0.6, 0.3)),
        ),
    ),
    "potts-neighbours": (
        Potts(3, beta=1.6, decay=GaussianDecay(1.2), n_neighbors=1),
        lambda: posterior_of(
            "potts",
            n_clusters=3,
            beta=1.6,
            weights=exact.weights_potts(DISTANCES, exact.gaussian_decay(1.2), 1),
        ),
    ),
    "crp": (ChineseRestaurant(1.3), lambda: posterior_of("crp", gamma=1.3)),
}


def sweeps_of(model):
    """Half as many for other weights of a kernel that another model tries."""
    variants = ("potts-offset", "potts-neighbours", "no-offset", "neighbours")
    return SWEEPS // 2 if model in variants else SWEEPS


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("model", FINITE)
def test_sampler_matches_the_enumerated_posterior(model, collapsed):
    prior, oracle = FINITE[model]
    draws = run(prior, collapsed=collapsed, sweeps=sweeps_of(model))
    assert exact.compare(draws, oracle(), alpha=ALPHA) == []


@pytest.mark.parametrize("case", DISTANCE_DEPENDENT)
def test_link_sampler_matches_the_enumerated_posterior(case):
    prior, oracle = DISTANCE_DEPENDENT[case]
    draws = run(prior, sweeps=sweeps_of(case))
    assert exact.compare(draws, oracle(), alpha=ALPHA) == []


@pytest.mark.parametrize(
    "shortcuts",
    [Shortcuts(0, 1, 1 << 62), Shortcuts(1, 1, 1 << 62), Shortcuts(2, 1, 1), Shortcuts(100, 1, 1)],
    ids=["one-candidate", "from-two-clusters", "from-three-and-short-walks", "short-walks"],
)
def test_short_cuts_leave_the_posterior_as_it_is(shortcuts):
    prior = DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.5))
    oracle = posterior_of("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=decayed(0.8, 0.5))
    draws = run(prior, shortcuts=shortcuts)
    assert exact.compare(draws, oracle, alpha=ALPHA) == []


def test_a_prior_that_excludes_the_usual_start_of_nu_is_sampled_all_the_same():
    prior = DistanceDependent(LogUniform(0.01, 0.3), GaussianDecay(0.8, 0.1))
    draws = run(prior, sweeps=200)
    assert draws.hyper["nu"].min() >= 0.01
    assert draws.hyper["nu"].max() <= 0.3


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
@pytest.mark.parametrize("model", INFERRED)
def test_inferred_concentrations_match_the_enumerated_posterior(model, collapsed):
    prior, oracle = INFERRED[model]
    if prior.collapsed_only and not collapsed:
        return
    draws = run(prior, collapsed=collapsed, alpha=Exponential(0.8))
    assert exact.compare(draws, oracle(alpha=scipy.stats.expon(scale=0.8))) == []
