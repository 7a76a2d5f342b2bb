"""The nodes near any state."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.partitions.continuation import Continuation
from onlooker.partitions.decay import Decay
from onlooker.partitions.geometry import Geometry
from onlooker.prediction.kernels import Neighbours

_EIGHTH = 8  # nearest node, whose distance tells how far apart they lie here


class _Rows(NamedTuple):
    """The neighbours of some states at any decay that reaches no farther."""

    states: Array
    radius: float
    indptr: Array
    node: Array
    distance: Array
    nearest: Array


class NeighbourSearch:
    """Finds the nodes near query states, by a tree where the metric allows.

    Parameters
    ----------
    geometry
        Where the nodes lie.
    continuation
        How nodes count beyond the decay.
    landmarks
        The problem's nodes that these are, where they stand for others: distances then count in
        units of how far apart they lie at the place of each, as with a `continuation` that says so.
    """

    def __init__(
        self,
        geometry: Geometry,
        continuation: Continuation | None = None,
        landmarks: Array | None = None,
    ) -> None:
        self._geometry = geometry
        self._p = geometry.norm
        self._n_nodes = len(geometry.states)
        self._found: _Rows | None = None
        self._apart: tuple[Array, int | None, Array, Array | None] | None = None
        self._rule = continuation or Continuation()
        self._landmarks = landmarks

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._geometry.coordinates(self._geometry.states))

    @property
    def nodes(self) -> Array:
        """Their numbers in the problem."""
        return np.arange(self._n_nodes) if self._landmarks is None else self._landmarks

    @cached_property
    def spacing(self) -> Array:
        """How far apart nodes lie around each, with a median of 1; or 1 for all."""
        local = self._landmarks is not None or self._rule.local
        if not local or self._n_nodes == 1:
            return np.ones(self._n_nodes)
        eighth = self._geometry.nearest(_EIGHTH)[1][:, -1]
        typical = np.median(eighth)
        return eighth / typical if 0 < typical < np.inf else np.ones(self._n_nodes)

    def find(
        self, states: Array, decay: Decay, n_neighbors: int | None, tolerance: float
    ) -> Neighbours:
        """The neighbours of `states`: the nearest `n_neighbors` nodes, or all that matter."""
        if self._landmarks is not None or not self._rule.is_model:
            near = self._continued(states, decay, n_neighbors, tolerance)
            return near if self._landmarks is None else _renumbered(near, self._landmarks)
        if n_neighbors is not None:
            index, distance = self._geometry.nearest_nodes(states, min(n_neighbors, self._n_nodes))
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

    def apart(
        self, states: Array, decay: Decay, n_neighbors: int | None
    ) -> tuple[Array, Array | None]:
        """``u_j = -ln g(d_j)`` of the nodes that count, ``(n, k)``, and which these are; None: all.

        The nearest ones are the same at any scale.
        """
        known = self._apart  # one look: another thread may replace it
        if known is None or known[0] is not states or known[1] != n_neighbors:
            distance = self._geometry.distances(states) / np.maximum(self.spacing, 1e-6)
            node = None
            if n_neighbors is not None and n_neighbors < self._n_nodes:
                node = np.argpartition(distance, n_neighbors - 1, axis=1)[:, :n_neighbors]
                node.sort(axis=1)
                distance = np.take_along_axis(distance, node, axis=1)
            known = self._apart = (states, n_neighbors, distance, node)
        return np.asarray(-decay.log_g(known[2])), known[3]

    def _continued(
        self, states: Array, decay: Decay, n_neighbors: int | None, tolerance: float
    ) -> Neighbours:
        """Weights ``Σ_j exp(-τ₀ u_j)`` in all, shared out ``∝ exp(-τ u_j)``, τ and τ₀ by the rule.

        Together with ν for a region of its own they make the rule of `Continuation`.
        """
        u, node = self.apart(states, decay, n_neighbors)
        least = u.min(axis=1, keepdims=True)
        reached = np.exp(-self._rule.reach * u)
        total = np.where(reached >= tolerance, reached, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore"):  # where a decay ends, all may be infinitely far
            above = u - least
            above = above * self._rule.sharpness_at(above)
        row, column = np.nonzero(above <= -np.log(tolerance))
        above = above[row, column]
        order = np.lexsort([above, row])
        row, g = row[order], np.exp(-above[order])
        sums = np.bincount(row, g, minlength=len(states))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(states)))])
        column, nearest = column[order], u.argmin(axis=1)
        if node is not None:
            column, nearest = node[row, column], node[np.arange(len(node)), nearest]
        return _neighbours(indptr, column, g * (total / sums)[row], nearest)

    def _sorted(self, states: Array, radius: float) -> _Rows:
        """All nodes within `radius` of each state, nearest first."""
        row, column, distance = self._within(states, radius)
        order = np.lexsort([distance, row])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(states)))])
        nearest = self._geometry.nearest_nodes(states, 1)[0][:, 0]
        return _Rows(states, radius, indptr, column[order], distance[order], nearest)

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


def _renumbered(near: Neighbours, nodes: Array) -> Neighbours:
    """The same with other numbers of the nodes."""
    return near._replace(
        indices=nodes[near.indices].astype(np.int32), nearest=nodes[near.nearest].astype(np.int64)
    )


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
