"""Numba kernels on many partitions of the same nodes: numbering, overlaps, pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlooker.compiled import njit

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class PartitionDraws(NamedTuple):
    """Distinct draws, each cluster a slice of ``members``.

    Cluster l of draw b has the number c = offset[b] + l and holds the nodes
    ``members[start[c]:start[c + 1]]``.
    """

    members: Ints32
    start: Ints
    offset: Ints
    weights: Floats


@njit(cache=True, nogil=True)
def rank_descending(values: Ints, n: int, most: int, rank: Ints) -> None:
    """The rank of each of the first `n` values, from 0 to `most` each; the largest is first.

    Equal ones keep their order. Counting takes less time than sorting, and far less to compile.
    """
    below = np.zeros(most + 2, np.int64)
    for k in range(n):
        below[most - values[k] + 1] += 1
    for value in range(most):
        below[value + 1] += below[value]
    for k in range(n):
        rank[k] = below[most - values[k]]
        below[most - values[k]] += 1


@njit(cache=True, nogil=True)
def canonical_rows(draws: Ints, n_values: int) -> Ints32:
    """Number each row's clusters by decreasing size, ties by first appearance."""
    n_draws, n = draws.shape
    out = np.empty((n_draws, n), np.int32)
    number = np.empty(n_values, np.int64)
    for value in range(n_values):
        number[value] = -1
    place = np.empty(n, np.int64)
    for b in range(n_draws):
        size = np.zeros(n, np.int64)
        found = 0
        for i in range(n):
            value = draws[b, i]
            if number[value] < 0:
                number[value] = found
                found += 1
            out[b, i] = number[value]
            size[number[value]] += 1
        for i in range(n):
            number[draws[b, i]] = -1
        rank_descending(size, found, n, place)
        for i in range(n):
            out[b, i] = place[out[b, i]]
    return out


@njit(cache=True, nogil=True)
def index_draws(labels: Ints32) -> tuple[Ints32, Ints, Ints]:
    """Members, starts and offsets of `PartitionDraws` by counting sort; labels are canonical."""
    n_draws, n = labels.shape
    offset = np.zeros(n_draws + 1, np.int64)
    for b in range(n_draws):
        highest = 0
        for i in range(n):
            highest = max(highest, labels[b, i])
        offset[b + 1] = offset[b] + highest + 1
    start = np.zeros(offset[-1] + 1, np.int64)
    for b in range(n_draws):
        for i in range(n):
            start[offset[b] + labels[b, i] + 1] += 1
    for c in range(start.size - 1):
        start[c + 1] += start[c]
    fill = start.copy()
    members = np.empty(n_draws * n, np.int32)
    for b in range(n_draws):
        for i in range(n):
            c = offset[b] + labels[b, i]
            members[fill[c]] = i
            fill[c] += 1
    return members, start, offset


@njit(cache=True, nogil=True)
def overlaps(labels: Ints32, draws: PartitionDraws, f: Floats) -> Floats:
    """Σ_kl f(n_kl) against each draw; labels are canonical."""
    n_draws = draws.offset.size - 1
    out = np.zeros(n_draws)
    count = np.zeros(labels.size, np.int64)
    for b in range(n_draws):
        total = 0.0
        for c in range(draws.offset[b], draws.offset[b + 1]):
            nodes = draws.members[draws.start[c] : draws.start[c + 1]]
            for j in nodes:
                count[labels[j]] += 1
            for j in nodes:
                total += f[count[labels[j]]]
                count[labels[j]] = 0
        out[b] = total
    return out


@njit(cache=True, nogil=True)
def companions(labels: Ints32, draws: PartitionDraws) -> tuple[Floats, Floats]:
    """Per node, in the mean over draws: companions from its own cluster; being alone."""
    n = labels.size
    together = np.zeros(n)
    alone = np.zeros(n)
    count = np.zeros(n, np.int64)
    for b in range(draws.weights.size):
        weight = draws.weights[b]
        for c in range(draws.offset[b], draws.offset[b + 1]):
            nodes = draws.members[draws.start[c] : draws.start[c + 1]]
            if nodes.size == 1:
                alone[nodes[0]] += weight
            for j in nodes:
                count[labels[j]] += 1
            for j in nodes:
                together[j] += weight * (count[labels[j]] - 1)
            for j in nodes:
                count[labels[j]] = 0
    return together, alone


@njit(cache=True, nogil=True)
def count_pairs(nodes_by_draws: Ints) -> Ints32:
    """The number of draws in which i and j are together; in blocks that stay in the cache."""
    n, n_draws = nodes_by_draws.shape
    out = np.empty((n, n), np.int32)
    block = 64
    for first in range(0, n, block):
        for second in range(first, n, block):
            for i in range(first, min(first + block, n)):
                mine = nodes_by_draws[i]
                for j in range(max(i, second), min(second + block, n)):
                    other = nodes_by_draws[j]
                    together = np.int32(0)
                    for b in range(n_draws):
                        together += np.int32(mine[b] == other[b])
                    out[i, j] = together
                    out[j, i] = together
    return out
