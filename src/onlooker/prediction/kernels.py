"""Kernels of prediction: which cluster a state takes in each draw, and what it does there.

Draws are flattened to ``B`` rows. The clusters of draw ``b`` own the rows ``first[b]`` to
``first[b + 1] - 1`` of counts and policies; the last of them stands for a cluster that is new, so
its counts are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.categorical import invert
from onlooker.gibbs.dirichlet import LOST
from onlooker.partitions.base import Weights

BLOCK = 128  # queries that stay in the cache while the draws go by


class Neighbours(NamedTuple):
    """The nodes near each query state, most similar first."""

    indptr: Array
    indices: Array
    g: Array
    """The decaying part of the similarity."""
    nearest: Array
    """The one nearest node, which decides where no weight does."""


@njit(cache=True, nogil=True)
def count_clusters(
    labels: Array, actions: Array, node_of: Array, first: Array, counts: Array, size: Array
) -> None:
    """``ξ`` and ``ζ`` of every draw: `counts` ``(rows, A)`` and `size` ``(rows,)``, zero before."""
    for b in range(len(labels)):
        start = first[b]
        for i in range(labels.shape[1]):
            size[start + labels[b, i]] += 1
        for t in range(len(node_of)):
            counts[start + labels[b, node_of[t]], actions[b, t]] += 1


@njit(cache=True, nogil=True)
def normalise(counts: Array, first: Array, alpha: Array, share: Array, policy: Array) -> None:
    """``(ξ + α share) / (ξ· + Aα)`` of every row; `share` ``(B, A)`` has a mean of 1."""
    n_actions = counts.shape[1]
    for b in range(len(alpha)):
        for row in range(first[b], first[b + 1]):
            total = 0
            for j in range(n_actions):
                total += counts[row, j]
            part = 1.0 / (total + n_actions * alpha[b])
            for j in range(n_actions):
                policy[row, j] = (counts[row, j] + alpha[b] * share[b, j]) * part


@njit(cache=True, nogil=True, error_model="numpy")
def draw_thetas(
    counts: Array,
    first: Array,
    alpha: Array,
    share: Array,
    theta: Array,
    rng: np.random.Generator,
) -> None:
    """``θ ~ Dir(ξ + α share)`` of every row.

    ``ln Gamma(a) = ln Gamma(a + 1) - E/a``; what E alone makes too small is not drawn any further.
    """
    n_actions = theta.shape[1]
    for b in range(len(alpha)):
        for row in range(first[b], first[b + 1]):
            out = theta[row]
            least = np.inf
            for j in range(n_actions):
                out[j] = rng.standard_exponential() / (counts[row, j] + alpha[b] * share[b, j])
                least = min(least, out[j])
            if least == np.inf:  # for so small an α one behaviour has it all, likely as its share
                chosen = 0
                for j in range(n_actions):
                    out[j] = rng.standard_exponential() / share[b, j]
                    chosen = j if out[j] < out[chosen] else chosen
                out[:] = 0.0
                out[chosen] = 1.0
                continue
            total, largest = 0.0, -np.inf
            for j in range(n_actions):
                if out[j] <= least + LOST:
                    shape = counts[row, j] + alpha[b] * share[b, j]
                    out[j] = np.log(rng.standard_gamma(shape + 1.0)) - out[j]
                    largest = max(largest, out[j])
                else:
                    out[j] = -np.inf
            for j in range(n_actions):
                out[j] = np.exp(out[j] - largest) if out[j] > -np.inf else 0.0
                total += out[j]
            for j in range(n_actions):
                out[j] /= total


@njit(cache=True, nogil=True)
def add_policies(clusters: Array, first: Array, policy: Array, out: Array) -> None:
    """Sum the policies of the chosen `clusters` ``(B, n)`` over the draws into `out` ``(n, A)``."""
    n_draws, n = clusters.shape
    for start in range(0, n, BLOCK):
        for b in range(n_draws):
            for q in range(start, min(n, start + BLOCK)):
                row = first[b] + clusters[b, q]
                for j in range(out.shape[1]):
                    out[q, j] += policy[row, j]


@njit(cache=True, nogil=True)
def _deciding(first: Array, near: Neighbours, weights: Weights, rest: Array) -> Array:
    """How many of a query's first neighbours decide on their own if they agree, in any draw.

    They do if their weight exceeds that of all the others by more than any cluster's size and a
    new cluster could make up for; 0: never. `rest` is filled with the sums of ``g`` from each
    neighbour on.
    """
    most = 0.0  # that a cluster without neighbours can score
    for b in range(len(weights.new)):
        most = max(most, weights.new[b])
        for row in range(first[b], first[b + 1] - 1):
            most = max(most, weights.mass[row])
    least_factor, most_factor = weights.factor.min(), weights.factor.max()
    least_plus, most_plus = weights.plus.min(), weights.plus.max()
    enough = np.zeros(len(near.nearest), dtype=np.int64)
    for q in range(len(enough)):
        start, stop = near.indptr[q], near.indptr[q + 1]
        total = 0.0
        for p in range(stop - 1, start - 1, -1):
            total += near.g[p]
            rest[p] = total
        own = 0.0
        for p in range(start, stop):
            own += least_factor * near.g[p] + least_plus
            others = most_plus * (stop - p - 1)
            if p + 1 < stop:
                others += most_factor * rest[p + 1]
            if own - others > most:
                enough[q] = p + 1 - start
                break
    return enough


@njit(cache=True, nogil=True)
def likely_clusters(
    labels: Array, first: Array, near: Neighbours, weights: Weights, out: Array
) -> None:
    """The most likely cluster of each query in each draw, into `out` ``(B, n)``.

    Neighbours come most similar first, and the search ends as soon as those that are left could
    not change its outcome; mostly at once, since near nodes agree.
    """
    n_queries = len(near.nearest)
    rest = np.zeros(len(near.g) + 1)
    enough = _deciding(first, near, weights, rest)
    score = np.zeros(labels.shape[1] + 1)
    for start in range(0, n_queries, BLOCK):
        for b in range(len(labels)):
            factor, plus = weights.factor[b], weights.plus[b]
            n_clusters = first[b + 1] - first[b] - 1
            top, highest, second = n_clusters, weights.new[b], -1.0
            for k in range(n_clusters):
                score[k] = weights.mass[first[b] + k]
                if score[k] > highest:
                    top, highest, second = k, score[k], highest
                elif score[k] > second:
                    second = score[k]
            for q in range(start, min(n_queries, start + BLOCK)):
                p, stop = near.indptr[q], near.indptr[q + 1]
                if enough[q] > 0:
                    k = labels[b, near.indices[p]]
                    differ = 0
                    for agreeing in range(p + 1, p + enough[q]):
                        differ += labels[b, near.indices[agreeing]] != k
                    if differ == 0:
                        out[b, q] = k
                        continue
                best, value, other = top, highest, second
                while p < stop:
                    k = labels[b, near.indices[p]]
                    score[k] += factor * near.g[p] + plus
                    if k == best:
                        value = score[k]
                    elif score[k] > value:
                        best, value, other = k, score[k], value
                    elif score[k] > other:
                        other = score[k]
                    p += 1
                    if p < stop and value - other > factor * rest[p] + plus * (stop - p):
                        break
                out[b, q] = best if value > 0.0 else labels[b, near.nearest[q]]
                for back in range(near.indptr[q], p):
                    k = labels[b, near.indices[back]]
                    score[k] = weights.mass[first[b] + k]


@njit(cache=True, nogil=True)
def _cluster_weights(
    b: int,
    q: int,
    labels: Array,
    first: Array,
    near: Neighbours,
    weights: Weights,
    out: Array,
) -> float:
    """Weights of all clusters of draw b for query q, the new one last; returns their sum."""
    n_clusters = first[b + 1] - first[b] - 1
    for k in range(n_clusters):
        out[k] = weights.mass[first[b] + k]
    for p in range(near.indptr[q], near.indptr[q + 1]):
        out[labels[b, near.indices[p]]] += weights.factor[b] * near.g[p] + weights.plus[b]
    out[n_clusters] = weights.new[b]
    if len(weights.beta) > 0:
        largest = 0.0
        for k in range(n_clusters):
            largest = max(largest, out[k])
        beta = weights.beta[b]
        for k in range(n_clusters):
            out[k] = np.exp(beta * (out[k] - largest))
        n_empty = weights.n_slots - n_clusters
        out[n_clusters] = n_empty * np.exp(-beta * largest)
    total = 0.0
    for k in range(n_clusters + 1):
        total += out[k]
    if total <= 0.0:
        out[labels[b, near.nearest[q]]] = 1.0
        total = 1.0
    return total


@njit(cache=True, nogil=True)
def add_mixtures(
    labels: Array,
    first: Array,
    policy: Array,
    near: Neighbours,
    weights: Weights,
    out: Array,
) -> None:
    """Sum over the draws of each query's mixture of policies, into `out` ``(n, A)``."""
    share = np.empty(labels.shape[1] + 1)
    for start in range(0, len(out), BLOCK):
        for b in range(len(labels)):
            for q in range(start, min(len(out), start + BLOCK)):
                total = _cluster_weights(b, q, labels, first, near, weights, share)
                for row in range(first[b], first[b + 1]):
                    weight = share[row - first[b]] / total
                    if weight > 0.0:
                        for j in range(out.shape[1]):
                            out[q, j] += weight * policy[row, j]


class Visits(NamedTuple):
    """The transitions at each node."""

    indptr: Array
    transition: Array
    """Their numbers, node after node."""
    behaviours: Array
    """``(B, M)``: what was done in each transition in each draw."""


@njit(cache=True, nogil=True)
def add_own_policies(
    labels: Array, first: Array, policy: Array, visits: Visits, kappa: float, out: Array
) -> None:
    """Sum ``(φ_j + κ θ_k) / (n_j + κ)`` of every node over the draws, into `out` ``(N, A)``."""
    for j in range(labels.shape[1]):
        start, stop = visits.indptr[j], visits.indptr[j + 1]
        own = 1.0 / (stop - start + kappa)
        for b in range(len(labels)):
            row = first[b] + labels[b, j]
            for v in range(start, stop):
                out[j, visits.behaviours[b, visits.transition[v]]] += own
            for a in range(out.shape[1]):
                out[j, a] += kappa * own * policy[row, a]


@njit(cache=True, nogil=True)
def add_own_mixtures(
    labels: Array,
    first: Array,
    policy: Array,
    near: Neighbours,
    weights: Weights,
    visits: Visits,
    kappa: float,
    out: Array,
) -> None:
    """As `add_mixtures`, where each neighbour has ``(φ_j + κ θ_k) / (n_j + κ)``."""
    share = np.empty(labels.shape[1] + 1)
    for start in range(0, len(out), BLOCK):
        for b in range(len(labels)):
            for q in range(start, min(len(out), start + BLOCK)):
                total = _cluster_weights(b, q, labels, first, near, weights, share)
                for p in range(near.indptr[q], near.indptr[q + 1]):
                    j = near.indices[p]
                    n = visits.indptr[j + 1] - visits.indptr[j]
                    own = (weights.factor[b] * near.g[p] + weights.plus[b]) / (n + kappa)
                    if n == 0 or own <= 0.0:
                        continue
                    share[labels[b, j]] -= n * own
                    for v in range(visits.indptr[j], visits.indptr[j + 1]):
                        out[q, visits.behaviours[b, visits.transition[v]]] += own / total
                for row in range(first[b], first[b + 1]):
                    weight = share[row - first[b]] / total
                    if weight > 0.0:
                        for j in range(out.shape[1]):
                            out[q, j] += weight * policy[row, j]


@njit(cache=True, nogil=True)
def draw_clusters(
    labels: Array,
    first: Array,
    near: Neighbours,
    weights: Weights,
    uniforms: Array,
    out: Array,
) -> None:
    """Draw a cluster of each query in each draw by its weights, into `out` ``(B, n)``."""
    share = np.empty(labels.shape[1] + 1)
    for b in range(len(labels)):
        n = first[b + 1] - first[b]
        for q in range(out.shape[1]):
            _cluster_weights(b, q, labels, first, near, weights, share)
            for k in range(1, n):
                share[k] += share[k - 1]
            out[b, q] = invert(share, n, uniforms[b, q])


@njit(cache=True, nogil=True)
def draw_own_clusters(
    labels: Array,
    first: Array,
    near: Neighbours,
    weights: Weights,
    draw: Array,
    uniforms: Array,
    likeliest: bool,
    out: Array,
) -> None:
    """A cluster of each query in a draw of its own, drawn by its weights or the likeliest."""
    share = np.empty(labels.shape[1] + 1)
    for q in range(len(out)):
        b = draw[q]
        n = first[b + 1] - first[b]
        _cluster_weights(b, q, labels, first, near, weights, share)
        if likeliest:
            out[q] = np.argmax(share[:n])
            continue
        for k in range(1, n):
            share[k] += share[k - 1]
        out[q] = invert(share, n, uniforms[q])
