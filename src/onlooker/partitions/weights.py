"""With which weight a state that is no node joins each cluster, for every prior.

The mixing prior's weights ``q`` are integrated out even where they were drawn: ``E[q_k | z]`` is
``(ζ_k + γ/K) / (N + γ)``, the same prediction with less noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from onlooker.checks import Array
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.partitions.base import PartitionPrior
from onlooker.prediction.kernels import Weights

Strategy = Literal["map", "local", "average"]
Hyper = Callable[[str, Any], Array]
"""Gives the draws of a hyper-parameter, ``(B,)``, or a constant where it is fixed."""


def is_spatial(prior: PartitionPrior) -> bool:
    """Whether near states tend to share a cluster."""
    return isinstance(prior, Potts | DistanceDependent)


def check_strategy(prior: PartitionPrior, wanted: Strategy | None) -> Strategy:
    """What to do about a state that is no node."""
    if wanted is None:
        return "map" if is_spatial(prior) else "average"
    if wanted not in get_args(Strategy):
        raise ValueError(f"extrapolate must be one of {get_args(Strategy)}, got {wanted!r}")
    if wanted == "local" and not is_spatial(prior):
        raise ValueError(
            f"extrapolate='local' needs a spatial prior; {type(prior).__name__} knows no "
            "neighbours: use 'average'"
        )
    return wanted


def weights_of(
    prior: PartitionPrior,
    hyper: Hyper,
    n_used: Array,
    strategy: Strategy,
    n_neighbors: int | None,
) -> Weights:
    """The weights by `prior` of draws with `n_used` clusters each."""
    zero, one = np.zeros(len(n_used)), np.ones(len(n_used))
    if strategy == "local":
        return _weights(factor=one)
    if isinstance(prior, Potts | DistanceDependent):
        offset = hyper("offset", prior.decay.offset)
        far = n_neighbors is None  # else only neighbours count, each with the whole of f(d)
        score = _weights(
            factor=1 - offset, base=offset if far else zero, plus=zero if far else offset
        )
        if isinstance(prior, DistanceDependent):
            return score._replace(new=hyper("nu", prior.self_link))
        if strategy == "map":  # β does not matter; an empty cluster's score is 0: never likeliest
            return score
        return score._replace(beta=hyper("beta", prior.beta), n_slots=prior.n_clusters)
    if isinstance(prior, ChineseRestaurant):
        return _weights(base=one, new=hyper("gamma", prior.concentration))
    if isinstance(prior, Static):
        return _weights(new=one)
    if isinstance(prior, Uniform):
        if strategy == "map":  # all are as likely; let the largest stand for them
            return _weights(base=one)
        return _weights(each=one, new=prior.n_clusters - n_used.astype(np.float64))
    if isinstance(prior, Mixing):
        share = hyper("gamma", prior.concentration) / prior.n_clusters
        n_empty = prior.n_clusters - n_used
        empty = np.minimum(n_empty, 1) if strategy == "map" else n_empty
        return _weights(base=one, each=share, new=share * empty)
    raise TypeError(
        f"{type(prior).__name__} has no rule for states that are no nodes; make them nodes "
        "(nodes=...) instead, or, if it was loaded, give prior= to Posterior.load"
    )


def _weights(**score: Array) -> Weights:
    zero = np.zeros(len(next(iter(score.values()))))
    nothing = Weights(zero, zero, zero, zero, zero, beta=np.zeros(0), n_slots=0)
    return nothing._replace(**score)  # type: ignore[arg-type]
