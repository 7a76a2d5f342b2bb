"""Starts of link graphs that have little in common: where chains that agree come from anywhere."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.partitions.links.arrays import Graph
from onlooker.partitions.links.kernels import most_similar

NEAREST, ALONE, RANDOM, SPANNING = range(4)
"""What the first four chains start with."""
_SELF = 0.1  # share of self-links among random links


def scattered_links(chain: int, graph: Graph, rng: np.random.Generator) -> Array:
    """The links that a chain starts with; they follow positive weights, the offset aside.

    By the number of the chain, again and again: each node to its most similar neighbour; each to
    itself; a tenth to themselves, the others to a neighbour drawn by its similarity; trees that
    span all that hangs together.
    """
    return (_nearest, _alone, _random, _spanning)[chain % 4](graph, rng)


def _nearest(graph: Graph, rng: np.random.Generator) -> Array:
    links = _alone(graph, rng)
    most_similar(links, graph)
    return links


def _alone(graph: Graph, rng: np.random.Generator) -> Array:
    return np.arange(len(graph.indptr) - 1)


def _random(graph: Graph, rng: np.random.Generator) -> Array:
    # the largest w/E, E exponential, is each of the neighbours with a probability ∝ w
    race = graph.weights / rng.standard_exponential(len(graph.weights))
    links = _nearest(graph._replace(weights=race), rng)
    return np.where(rng.random(len(links)) < _SELF, np.arange(len(links)), links)


def _spanning(graph: Graph, rng: np.random.Generator) -> Array:
    n = len(graph.indptr) - 1
    backward = csr_array((graph.weights > 0, graph.indices, graph.indptr), shape=(n, n)).tocsc()
    backward.eliminate_zeros()
    into = (backward.indptr, backward.indices)
    rank = np.empty(n, dtype=np.int32)
    # Neighbours need not be mutual. A root that another one leads to is found by going back.
    roots = _breadth_first(*into, rng.permutation(n), rank)
    _breadth_first(*into, roots[::-1].copy(), rank)
    earlier = rank[graph.indices] < np.repeat(rank, np.diff(graph.indptr))
    return _nearest(graph._replace(weights=np.where(earlier, graph.weights, 0.0)), rng)


@njit(cache=True, nogil=True)
def _breadth_first(indptr: Array, indices: Array, order: Array, rank: Array) -> Array:
    """Rank all nodes so that each but the roots of trees has a neighbour before it.

    Row j of the graph holds the nodes that may link to j. The roots are the first nodes in `order`
    that no tree has reached; they are returned.
    """
    queue = np.empty_like(rank)
    roots = np.empty_like(order)
    n_roots = head = tail = 0
    rank[:] = -1
    for root in order:
        if rank[root] >= 0:
            continue
        roots[n_roots] = root
        n_roots += 1
        rank[root], queue[tail] = tail, root
        tail += 1
        while head < tail:
            j = queue[head]
            head += 1
            for q in range(indptr[j], indptr[j + 1]):
                i = indices[q]
                if rank[i] < 0:
                    rank[i], queue[tail] = tail, i
                    tail += 1
    return roots[:n_roots]
