"""Mixtures of policies whose weights are sums over nodes: no need to go through the draws."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.prediction import kernels
from onlooker.prediction.kernels import Neighbours, Weights

_LARGEST_RATIO = 0.25
_PRECISION = 1e-17


def add_linear_mixtures(
    labels: Array,
    first: Array,
    policy: Array,
    near: Neighbours,
    weights: Weights,
    out: Array,
) -> Array:
    """Add each query's mixture, summed over the draws, to `out`; returns the queries left over.

    With weights ``w_j`` of nodes that are the same in every draw, and ``ν_b`` of a new cluster,
    the mixture is ``Σ_b (Σ_j w_j π_bj + ν_b / A) / (S + ν_b)`` with ``S = Σ_j w_j``. With
    ``ν_b = ν + δ_b``,

        1 / (S + ν_b) = Σ_m (-δ_b)^m / (S + ν)^(m + 1),

    so the draws can be summed first, once for each power. Queries for which the series does not
    fall quickly are left over, and all of them if weights differ from draw to draw.
    """
    n, n_actions = out.shape
    if len(near.g) == 0 or any(np.ptp(x) > 0 for x in (weights.factor, weights.plus, weights.base)):
        return np.arange(n)
    from scipy.sparse import csr_array

    data = weights.factor[0] * near.g + weights.plus[0]
    similar = csr_array((data, near.indices, near.indptr), shape=(n, labels.shape[1]))
    base, new = weights.base[0], weights.new.mean()
    delta = weights.new - new
    scale = similar.sum(axis=1) + base * labels.shape[1] + new
    with np.errstate(divide="ignore"):
        ratio = np.abs(delta).max() / scale
    quick = np.flatnonzero(ratio < _LARGEST_RATIO)
    if len(quick) == 0:
        return np.arange(n)
    largest = max(ratio[quick].max(), _PRECISION)
    power = np.ones(len(delta))
    factor = 1.0 / scale[quick, None]
    for _ in range(max(1, int(np.ceil(np.log(_PRECISION) / np.log(largest))))):
        nodes = np.zeros((labels.shape[1], n_actions))
        kernels.add_weighted_policies(labels, first, policy, power, nodes)
        term = similar[quick] @ nodes + base * nodes.sum(axis=0)
        term += (power * weights.new).sum() / n_actions
        out[quick] += factor * term
        power *= -delta
        factor /= scale[quick, None]
    return np.flatnonzero(ratio >= _LARGEST_RATIO)
