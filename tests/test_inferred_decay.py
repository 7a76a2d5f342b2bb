"""A ddCRP whose decay is unknown, against the enumerated posterior."""

import numpy as np
import pytest
import scipy.stats

import exact
from onlooker import Problem
from onlooker.hyper import Exponential, Gamma, LogUniform
from onlooker.inference.inferred_decay import DecayLinkSampler, ScaleGrid, log_links
from onlooker.inference.link_sampler import LinkOptions
from onlooker.partitions import DistanceDependent, GaussianDecay, Potts
from onlooker.partitions.geometry import TOLERANCE, Geometry
from test_against_exact import ALPHA, COORDINATES, DISTANCES, LOGLIK, NODE_OF, N, _nearest, run

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


def posterior(scale, offset, nu=0.4, n_neighbors=None):
    weights = exact.gaussian_decay(scale, offset)(DISTANCES)
    if n_neighbors is not None:
        weights = _nearest(weights, n_neighbors)
    return exact.ddcrp(NODE_OF, LOGLIK, N, ALPHA, nu, weights)


def oracle_of_scale(offset, **more):
    values, p = scales_of(SCALE)
    return exact.mix("scale", values, p, [posterior(value, offset, **more) for value in values])


def oracle_of_offset(scale, **more):
    values, p = offsets_of(OFFSET)
    return exact.mix("offset", values, p, [posterior(scale, value, **more) for value in values])


def both():
    values, p = offsets_of(OFFSET, n=5)
    return exact.mix("offset", values, p, [oracle_of_scale(value) for value in values])


CASES = {
    "scale": (
        DistanceDependent(0.4, GaussianDecay(SCALE, 0.1)),
        lambda: oracle_of_scale(0.1),
    ),
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


@pytest.mark.parametrize("case", CASES)
def test_inferred_decays_match_the_enumerated_posterior(case):
    prior, oracle = CASES[case]
    draws = run(prior, collapsed=True, blocked=False)
    if prior.decay.offset is not OFFSET:
        del draws.hyper["offset"]
    if prior.decay.scale is not SCALE:
        del draws.hyper["scale"]
    assert exact.compare(draws, oracle(), alpha=ALPHA) == []


class NormaliserForgotten(DecayLinkSampler):
    """A prior whose row sums do not follow the scale."""

    def _draw_scale(self, state, links, own, prior):
        local = self.scales.local
        self.scales.local = lambda index: local(index)._replace(sums=local(0).sums)
        super()._draw_scale(state, links, own, prior)
        self.scales.local = local


class JacobianForgotten(DecayLinkSampler):
    """An offset whose row sums leave it out."""

    def _n_far(self, local):
        return np.zeros(self.n_slots)


@pytest.mark.parametrize(
    ("broken", "case"), [(NormaliserForgotten, "scale"), (JacobianForgotten, "offset")]
)
def test_a_wrong_step_for_the_decay_is_caught(broken, case, monkeypatch):
    monkeypatch.setattr("onlooker.inference.inferred_decay.DecayLinkSampler", broken)
    prior, oracle = CASES[case]
    draws = run(prior, collapsed=True, blocked=False)
    del draws.hyper["offset" if case == "scale" else "scale"]
    assert exact.compare(draws, oracle(), alpha=ALPHA)
