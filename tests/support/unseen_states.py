"""Priors and draws that the tests of unseen states share."""

import exact
import numpy as np
from chains import draws_of

from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing

ALPHA = 0.7

COORDINATES = np.array([[0.0, 0.0], [0.7, 0.3], [1.5, -0.2]])


def _mean_policy(chain):
    cluster = chain.state.counts.cluster[chain.labels] + chain.state.hyper["alpha"]
    return cluster / cluster.sum(axis=1, keepdims=True)


WEIGHTS = exact.gaussian_decay(0.8, 0.1)(exact.pairwise_distances(COORDINATES))

MODELS = {
    "mixing": (Mixing(2, 0.8), "mixing", {"n_clusters": 2, "gamma": 0.8}),
    "crp": (ChineseRestaurant(1.3), "crp", {"gamma": 1.3}),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), coordinates=COORDINATES),
        "ddcrp",
        {"nu": 0.4, "weights": WEIGHTS},
    ),
    "ddcrp, reassigned": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), coordinates=COORDINATES, reassign=2),
        "ddcrp",
        {"nu": 0.4, "weights": WEIGHTS},
    ),
}


def run(problem, prior, *, sweeps=3_000, alpha=ALPHA, **options):
    """Draws of two chains, policies and unseen states included."""
    more = {"policy": _mean_policy, "unseen": _unseen}
    return draws_of(problem, prior, sweeps=sweeps, alpha=alpha, more=more, **options)


def _unseen(chain):
    return np.zeros(0) if chain.imputed is None else chain.imputed.copy()
