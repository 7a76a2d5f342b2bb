"""A problem small enough to enumerate: samplers' draws of it, and its posteriors."""

import exact
import numpy as np
import scipy.stats
from chains import draws_of

from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing, Static
from onlooker.partitions.geometry import TOLERANCE, Geometry
from onlooker.partitions.links.scales import ScaleGrid

ALPHA = 0.7

SWEEPS = 12_000

NODE_OF, LOGLIK, N, COORDINATES = exact.small_problem(seed=3, n_nodes=5)

DISTANCES = exact.pairwise_distances(COORDINATES)


def run(prior, *, sweeps=SWEEPS, shortcuts=None, problem=None, alpha=ALPHA, **options):
    """Draws of two chains, in the shape of a posterior."""
    problem = Problem(NODE_OF, LOGLIK, COORDINATES) if problem is None else problem
    bound = prior.bind(problem)
    if shortcuts is not None:
        bound.shortcuts = shortcuts
    return draws_of(problem, prior, bound=bound, sweeps=sweeps, alpha=alpha, **options)


def posterior_of(model, alpha=ALPHA, **parameters):
    return getattr(exact, model)(NODE_OF, LOGLIK, N, alpha, **parameters)


def decayed(scale, offset):
    return exact.gaussian_decay(scale, offset)(DISTANCES)


def nearest(weights, k):
    """Keep each row's k nearest only."""
    kept = np.zeros_like(weights)
    for i in range(N):
        for j in sorted((j for j in range(N) if j != i), key=lambda j: DISTANCES[i, j])[:k]:
            kept[i, j] = weights[i, j]
    return kept


DISTANCE_DEPENDENT = {
    "all-pairs": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1)),
        lambda: posterior_of("ddcrp", nu=0.4, weights=decayed(0.8, 0.1)),
    ),
    "no-offset": (
        DistanceDependent(0.4, GaussianDecay(0.8)),
        lambda: posterior_of("ddcrp", nu=0.4, weights=decayed(0.8, 0.0)),
    ),
    "neighbours": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), n_neighbors=2),
        lambda: posterior_of("ddcrp", nu=0.4, weights=nearest(decayed(0.8, 0.1), 2)),
    ),
    "nu-slice": (
        DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.1)),
        lambda: posterior_of("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=decayed(0.8, 0.1)),
    ),
    "nu-metropolis": (
        DistanceDependent(
            Exponential(0.5), GaussianDecay(0.8, 0.1), self_link_step="metropolis", start="self"
        ),
        lambda: posterior_of("ddcrp", nu=scipy.stats.expon(scale=0.5), weights=decayed(0.8, 0.1)),
    ),
}

GAMMA = scipy.stats.gamma(2, scale=0.5)

INFERRED = {
    "mixing, gamma": (
        Mixing(3, Gamma(2.0, 2.0)),
        lambda **more: posterior_of(
            "mixing", n_clusters=3, gamma=scipy.stats.gamma(2, scale=0.5), **more
        ),
    ),
    "mixing-q, gamma": (
        Mixing(3, Gamma(2.0, 2.0), collapsed=False),
        lambda **more: posterior_of(
            "mixing", n_clusters=3, gamma=scipy.stats.gamma(2, scale=0.5), **more
        ),
    ),
    "crp, gamma": (
        ChineseRestaurant(Gamma(2.0, 2.0)),
        lambda **more: posterior_of("crp", gamma=GAMMA, **more),
    ),
    "ddcrp, nu": (
        DistanceDependent(Exponential(0.5), GaussianDecay(0.8, 0.1)),
        lambda **more: posterior_of(
            "ddcrp", nu=scipy.stats.expon(scale=0.5), weights=decayed(0.8, 0.1), **more
        ),
    ),
    "static": (Static(), lambda **more: posterior_of("static", **more)),
}


# -- the decay inferred

SCALE, OFFSET = LogUniform(0.4, 1.6), LogUniform(0.02, 0.8)


def scales_of(prior):
    """The grid of scales and its probabilities."""
    grid = ScaleGrid(Geometry(COORDINATES), GaussianDecay(prior), None, TOLERANCE)
    values = np.array([grid.scale(k) for k in range(-40, 41)])
    log_p = np.array([prior.logpdf(value) + np.log(value) for value in values])
    keep = log_p > -np.inf
    return values[keep], np.exp(log_p[keep]) / np.exp(log_p[keep]).sum()


def offsets_of(prior, n=9):
    """Gauss–Legendre points in the logarithm."""
    x, weight = np.polynomial.legendre.leggauss(n)
    low, high = np.log(prior.low), np.log(prior.high)
    return np.exp(low + (high - low) * (x + 1) / 2), weight / 2


def decay_posterior(scale, offset, nu=0.4, n_neighbors=None):
    weights = exact.gaussian_decay(scale, offset)(DISTANCES)
    if n_neighbors is not None:
        weights = nearest(weights, n_neighbors)
    return exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, nu, weights)


def oracle_of_scale(offset, **more):
    values, p = scales_of(SCALE)
    return exact.mix(
        "scale", values, p, [decay_posterior(value, offset, **more) for value in values]
    )


def oracle_of_offset(scale, **more):
    values, p = offsets_of(OFFSET)
    return exact.mix(
        "offset", values, p, [decay_posterior(scale, value, **more) for value in values]
    )


def both():
    values, p = offsets_of(OFFSET, n=5)
    return exact.mix("offset", values, p, [oracle_of_scale(value) for value in values])


INFERRED_DECAYS = {
    "scale, nu": (
        DistanceDependent(Exponential(0.5), GaussianDecay(SCALE, 0.1)),
        lambda: oracle_of_scale(0.1, nu=scipy.stats.expon(scale=0.5)),
    ),
    "scale, neighbours": (
        DistanceDependent(0.4, GaussianDecay(SCALE, 0.1), n_neighbors=2),
        lambda: oracle_of_scale(0.1, n_neighbors=2),
    ),
    "offset": (
        DistanceDependent(0.4, GaussianDecay(0.8, OFFSET)),
        lambda: oracle_of_offset(0.8),
    ),
    "offset, neighbours": (
        DistanceDependent(0.4, GaussianDecay(0.8, OFFSET), n_neighbors=2),
        lambda: oracle_of_offset(0.8, n_neighbors=2),
    ),
    "both": (DistanceDependent(0.4, GaussianDecay(SCALE, OFFSET)), both),
}
