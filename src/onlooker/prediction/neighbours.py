"""The nodes near any state."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.partitions.decay import Decay
from onlooker.partitions.geometry import Geometry
from onlooker.prediction.kernels import Neighbours


class _Rows(NamedTuple):
    """The neighbours of some states at any decay that reaches no farther."""

    states: Array
    radius: float
    indptr: Array
    node: Array
    distance: Array
    nearest: Array


class NeighbourSearch:
    """Finds the nodes near query states, by a tree where the metric allows."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._p = geometry.norm
        self._n_nodes = len(geometry.states)
        self._found: _Rows | None = None

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._geometry.coordinates(self._geometry.states))

    def find(
        self, states: Array, decay: Decay, n_neighbors: int | None, tolerance: float
    ) -> Neighbours:
        """The neighbours of `states`: the nearest `n_neighbors` nodes, or all that matter."""
        if n_neighbors is not None:
            index, distance = self._nearest(states, min(n_neighbors, self._n_nodes))
            n, k = index.shape
            indptr = np.arange(0, n * k + 1, k)
            return _neighbours(indptr, index.ravel(), decay.g(distance.ravel()), index[:, 0])
        radius = decay.radius(tolerance)
        found = self._found  # one look: another thread may replace it
        if found is None or found.states is not states or radius > found.radius:
            found = self._found = self._sorted(states, radius)
        keep = found.distance <= radius
        indptr = np.concatenate([[0], np.cumsum(keep)])[found.indptr]
        return _neighbours(indptr, found.node[keep], decay.g(found.distance[keep]), found.nearest)

    def _sorted(self, states: Array, radius: float) -> _Rows:
        """All nodes within `radius` of each state, nearest first."""
        row, column, distance = self._within(states, radius)
        order = np.lexsort([distance, row])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(states)))])
        nearest = self._nearest(states, 1)[0][:, 0]
        return _Rows(states, radius, indptr, column[order], distance[order], nearest)

    def _nearest(self, states: Array, k: int) -> tuple[Array, Array]:
        """The `k` nearest nodes of each state, ``(n, k)``, nearest first, and their distances."""
        if self._p is None:
            every = self._geometry.distances(states)
            index = np.argsort(every, axis=1, kind="stable")[:, :k]
            return index, np.take_along_axis(every, index, axis=1)
        found = self._tree.query(
            self._geometry.coordinates(states), k=[*range(1, k + 1)], p=self._p
        )
        return found[1], self._geometry.from_norm(found[0])

    def _within(self, states: Array, radius: float) -> tuple[Array, Array, Array]:
        """Triplets (state, node, distance) within `radius`."""
        if self._p is None or not np.isfinite(radius):
            every = self._geometry.distances(states)
            row, column = np.nonzero(every <= radius)
            return row, column, every[row, column]
        from scipy.spatial import cKDTree

        found = cKDTree(self._geometry.coordinates(states)).sparse_distance_matrix(
            self._tree, self._geometry.to_norm(radius), p=self._p, output_type="ndarray"
        )
        row, column, distance = (np.ascontiguousarray(found[name]) for name in "ijv")
        return row, column, self._geometry.from_norm(distance)


def _neighbours(indptr: Array, indices: Array, g: Array, nearest: Array) -> Neighbours:
    """With the one set of types that the kernels are compiled for."""
    return Neighbours(
        indptr.astype(np.int64),
        indices.astype(np.int32),
        np.ascontiguousarray(g, dtype=np.float64),
        nearest.astype(np.int64),
    )


def no_neighbours(n: int) -> Neighbours:
    """For priors that ignore location."""
    return _neighbours(np.zeros(n + 1), np.zeros(0), np.zeros(0), np.zeros(n))


def smooth(near: Neighbours, values: Array) -> Array:
    """``Σ_j g_j values_j / Σ_j g_j`` over each state's neighbours; the nearest if all g are 0."""
    from scipy.sparse import csr_array

    weights = csr_array((near.g, near.indices, near.indptr), shape=(len(near.nearest), len(values)))
    total = weights.sum(axis=1)
    lonely = total <= 0
    smoothed = np.asarray(weights @ values) / np.where(lonely, 1.0, total)[:, None]
    smoothed[lonely] = values[near.nearest[lonely]]
    return smoothed
