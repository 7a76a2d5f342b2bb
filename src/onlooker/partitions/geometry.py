"""Distances between nodes, and the sparse graph of similarities that the spatial priors use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onlooker import geography
from onlooker.blocks import slices_of
from onlooker.checks import Array, Setting, positive_integer, require_memory
from onlooker.partitions.decay import Decay
from onlooker.partitions.places import (
    ScaledAxes,
    check_coordinates,
    check_distances,
    in_space,
    refuse_beyond,
    refuse_overflow,
)
from onlooker.warnings import GeometryWarning, warn

Metric = str | ScaledAxes | Callable[[Array, Array], float] | Array

TOLERANCE = float(np.finfo(np.float64).eps)
"""Similarities below this share of their maximum are dropped: the default cut-off."""

_DATA_DEPENDENT = {"seuclidean", "se", "s", "mahalanobis", "mahal", "mi"}
_MINKOWSKI = {"euclidean": 2.0, "cityblock": 1.0, "manhattan": 1.0, "chebyshev": np.inf}
_ON_EARTH = ("haversine", "chord")  # straight lines through the globe: a tree can find them
_STORED = 12  # bytes of a pair: a node and a similarity
_SORTED = 64  # bytes of a pair whose distance is kept, to be sorted, and weighed at other scales
_SURE = 1 << 28  # bytes that every machine has
_CHUNK = 1 << 22  # distances held at a time
_SMALL = 5_000  # nodes up to which all distances may be computed just to be sure
_FADED = 0.01  # a similarity that counts for little
_ROWS = 10_000  # nodes at most whose neighbours a tree looks up at a time


@dataclass(frozen=True)
class Similarity:
    """Similarities of nodes: a sparse decaying part and a constant one.

    The similarity of nodes i and j is ``weights[p] + offset`` where ``indices[p] == j`` among
    ``p`` in ``indptr[i]:indptr[i + 1]``, and `offset` for all other pairs. A node is never its
    own neighbour.
    """

    indptr: Array
    indices: Array
    weights: Array
    offset: float

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @cached_property
    def row_sums(self) -> Array:
        """``Σ_{j ≠ i} f(d_ij)`` of every node."""
        sums = np.zeros(self.n_nodes)
        if len(self.weights):
            filled = np.flatnonzero(np.diff(self.indptr))
            sums[filled] = np.add.reduceat(self.weights, self.indptr[filled])
        return sums + self.offset * (self.n_nodes - 1)

    def toarray(self) -> Array:
        """All similarities as a dense ``(N, N)`` array with a diagonal of 0."""
        dense = np.full((self.n_nodes, self.n_nodes), self.offset)
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        dense[rows, self.indices] += self.weights
        np.fill_diagonal(dense, 0.0)
        return dense


class Geometry:
    """Where the nodes lie: distances among them and from any other state to them.

    Parameters
    ----------
    states
        The nodes' states, ``(N,)`` integers or ``(N, d)`` floats.
    coordinates
        ``(S, d)`` positions of the integer states; floats are their own coordinates, and integer
        states without coordinates lie on a line.
    metric
        ``"euclidean"``, ``"cityblock"``, ``"chebyshev"``, any name that SciPy's ``cdist`` knows
        (but for those whose distances change with the data), a callable of two vectors, or a
        matrix of distances: ``(S, S)`` between integer states, or ``(N, N)`` between nodes.
        Where a matrix could be either, its rows are states. On the Earth, for longitude and
        latitude in degrees: ``"haversine"``, the great circle in km; or ``"chord"``, the straight
        line in km (1 % shorter at 3100 km), which further columns may join at right angles: a
        difference of 1 in them counts as a kilometre. `ScaledAxes` weighs coordinates.
    """

    def __init__(self, states: Array, coordinates: Any = None, metric: Metric = "euclidean"):
        self.states = states
        self.table = None if coordinates is None else check_coordinates(coordinates, states)
        """``(S, d)``: positions of integer states, where they were given."""
        self.matrix: Array | None = None
        self.metric = metric
        if not isinstance(metric, str) and not callable(metric):
            self.matrix = check_distances(metric)
            by_state = states.ndim == 1 and len(self.matrix) > int(states.max())
            if not by_state and len(self.matrix) != len(states):
                raise ValueError(
                    f"metric is a {self.matrix.shape} matrix; it must have one row for each of "
                    f"the {len(states)} nodes, or for each integer state"
                )
        elif self._on_earth or isinstance(metric, ScaledAxes):
            self.coordinates(states)  # refuse what has no place
        elif self.norm is None:
            self._try_metric()

    def _try_metric(self) -> None:
        """Refuse a metric that is none, before much is computed with it."""
        if isinstance(self.metric, str) and self.metric.lower() in _DATA_DEPENDENT:
            raise ValueError(
                f"metric {self.metric!r} changes with the data; "
                "scale the coordinates and use 'euclidean' instead"
            )
        try:
            few = self._measured(self.states[:8], 8)
        except (ValueError, TypeError) as error:
            name = getattr(self.metric, "__name__", repr(self.metric))
            raise ValueError(f"metric {name} fails on these states: {error}") from error
        if not np.allclose(few, few.T):
            i, j = (int(x) for x in np.argwhere(~np.isclose(few, few.T))[0])
            raise ValueError(
                f"metric gives {few[i, j]:g} from node {i} to node {j}, but {few[j, i]:g} back; "
                "distances are symmetric"
            )

    def coordinates(self, states: Array) -> Array:
        """The positions of `states`; on the Earth, points in space."""
        if states.ndim == 2:
            refuse_overflow("states", states)
            places = states
        elif self.table is not None:
            refuse_beyond(states, len(self.table), "coordinates")
            places = self.table[states]
        else:
            places = states[:, None].astype(np.float64)
        if isinstance(self.metric, ScaledAxes):
            return self.metric(places)
        return in_space(places, str(self.metric)) if self._on_earth else places

    @cached_property
    def _nodes(self) -> Array:
        return self.coordinates(self.states)

    @property
    def _on_earth(self) -> bool:
        return isinstance(self.metric, str) and self.metric in _ON_EARTH

    @property
    def norm(self) -> float | None:
        """The p of the norm between `coordinates` that a tree works with; None: no tree can."""
        if self._on_earth or isinstance(self.metric, ScaledAxes):
            return 2.0
        if self.matrix is None and isinstance(self.metric, str):
            return _MINKOWSKI.get(self.metric)
        return None

    def from_norm(self, distance: Array) -> Array:
        """Distances by the metric, from those by `norm`."""
        return geography.arc_of(distance) if self.metric_is("haversine") else distance

    def to_norm(self, distance: float) -> float:
        """A distance by `norm`, from one by the metric."""
        return float(geography.chord_of(distance)) if self.metric_is("haversine") else distance

    def metric_is(self, name: str) -> bool:
        """Whether the metric goes by that name."""
        return isinstance(self.metric, str) and self.metric == name

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._nodes)

    @cached_property
    def near_order(self) -> Array:
        """The nodes in an order that keeps near ones together, which caches like."""
        if self.norm is None:
            return np.arange(len(self.states))
        return np.asarray(self._tree.indices).astype(np.int64)

    def _matrix_rows(self, states: Array) -> Array:
        """Rows of the distance matrix for `states`, columns for the nodes."""
        assert self.matrix is not None
        by_state = self.states.ndim == 1 and len(self.matrix) > int(self.states.max())
        if by_state and states.ndim == 1:
            refuse_beyond(states, len(self.matrix), "the distance matrix")
            return self.matrix[np.ix_(states, self.states)]
        if states is self.states:
            return self.matrix
        raise ValueError(
            "the metric is a matrix of distances between nodes, so it cannot place other states; "
            "make them nodes (nodes=...) or give a metric by name"
        )

    @cached_property
    def _among_nodes(self) -> Array:
        """The part of the distance matrix that is between nodes."""
        return self._matrix_rows(self.states)

    def distances(self, states: Array) -> Array:
        """Distances from `states` to all nodes, ``(n, N)``."""
        if self.matrix is not None:
            return self._matrix_rows(states)
        return self._measured(states, len(self.states))

    def _measured(self, states: Array, n: int) -> Array:
        """Distances from `states` to the first `n` nodes, by the metric."""
        from scipy.spatial.distance import cdist

        metric: Any = "cityblock" if self.metric_is("manhattan") else self.metric
        distances = np.asarray(
            cdist(
                self.coordinates(states),
                self._nodes[:n],
                metric="euclidean" if self.norm == 2.0 else metric,
            )
        )
        distances = self.from_norm(distances)
        good = (distances >= 0) & (distances < np.inf)
        if not good.all():
            i, j = (int(x) for x in np.argwhere(~good)[0])
            raise ValueError(
                f"metric gives {distances[i, j]} from {states[i]} to {self.states[j]}; "
                "distances are finite and not negative"
            )
        return distances

    def warn_if_doubtful(self, decay: Decay | None = None) -> None:
        """Warn of distances that are likely not meant: state numbers, or another unit.

        Without a decay, there is none to compare the unit with: it is inferred.
        """
        n = len(self.states)
        if self.matrix is None and self.states.ndim == 1 and self.table is None:
            warn(
                "integer states without coordinates: the distance of two states is that of their "
                "numbers; give coordinates=(S, d), or a matrix of distances as metric",
                GeometryWarning,
            )
        if decay is None or n == 1 or (self.norm is None and n > _SMALL):
            return
        typical = float(np.median(self.nearest(1)[1]))
        if decay.g(np.array(typical)) < _FADED:
            warn(
                f"the nearest other state is typically {typical:.3g} away, where a decay of scale "
                f"{decay.known_scale:g} has faded: hardly any two states are neighbours; give a "
                "decay in the units of your states, such as "
                f"decay=GaussianDecay({2 * typical:.2g}, {decay.known_offset:g})",
                GeometryWarning,
            )

    def _near(self, radius: float, bytes_each: int) -> Iterator[tuple[Array, Array, Array]]:
        """Triplets (row, column, distance) of distinct nodes within `radius`, in blocks of rows.

        Blocks follow each other, and within one the triplets are sorted by row and column.
        """
        n = len(self.states)
        self.require_room(radius, bytes_each)
        by_tree = self.norm is not None and np.isfinite(radius)
        block = self._rows_at_once(radius) if by_tree else max(1, _CHUNK // n)
        for start in range(0, n, block):
            stop = min(n, start + block)
            if by_tree:
                from scipy.spatial import cKDTree

                found = cKDTree(self._nodes[start:stop]).sparse_distance_matrix(
                    self._tree, self.to_norm(radius), p=self.norm, output_type="ndarray"
                )
                row, column = found["i"] + start, found["j"]
                distance = self.from_norm(found["v"])
            else:
                rows = self.rows(slice(start, stop))
                row, column = np.nonzero(rows <= radius)
                distance = rows[row, column]
                row = row + start
            keep = row != column
            row, column, distance = row[keep], column[keep], distance[keep]
            order = np.lexsort((column, row))
            yield row[order], column[order], distance[order]

    def require_room(self, radius: float, bytes_each: int = _SORTED) -> None:
        """Refuse a decay that reaches more pairs than fit into memory."""
        n = len(self.states)
        if n * n * bytes_each <= _SURE:
            return
        reached = n if np.isinf(radius) else float(self._reached(radius).mean())
        require_memory(
            reached * n * bytes_each,
            f"the decay reaches {100 * reached / n:.0f} % of the {n:,} nodes from one of them, and "
            f"its {reached * n:.1e} pairs",
            "give links to the nearest states only, by ",
            Setting("n_neighbors", (100,)),
            " or so, or a smaller scale",
        )

    def _reached(self, radius: float) -> Array:
        """Nodes within `radius` of a few of them."""
        n = len(self.states)
        if self.norm is None:
            return np.count_nonzero(self.rows(np.arange(0, n, max(1, n // 8))) <= radius, axis=1)
        few = self._nodes[:: max(1, n // 100)]
        return np.asarray(
            self._tree.query_ball_point(few, self.to_norm(radius), p=self.norm, return_length=True)
        )

    def _rows_at_once(self, radius: float) -> int:
        """So many nodes that the pairs within `radius` fit into memory, judged by a few of them."""
        return int(np.clip(_CHUNK // self._reached(radius).max(), 1, _ROWS))

    def rows(self, nodes: slice | Array) -> Array:
        """Distances from some nodes to all."""
        if self.matrix is not None:
            return np.asarray(self._among_nodes[nodes])
        return self.distances(self.states[nodes])

    def nearest(self, n_neighbors: int) -> tuple[Array, Array]:
        """The `n_neighbors` nearest other nodes of each node, ``(N, n)``, and their distances."""
        n = len(self.states)
        k = min(positive_integer("n_neighbors", n_neighbors), n - 1)
        if k == 0:
            return np.empty((n, 0), dtype=np.int64), np.empty((n, 0))
        if self.norm is not None:
            distance, index = self._tree.query(self._nodes, k=k + 1, p=self.norm)
            return _drop_self(index, self.from_norm(distance))
        indices, distances = [], []
        for block in slices_of(n, n, _CHUNK):
            rows = self.rows(block).copy()
            rows[np.arange(len(rows)), np.arange(n)[block]] = np.inf
            chosen = np.argsort(rows, axis=1, kind="stable")[:, :k]
            indices.append(chosen)
            distances.append(np.take_along_axis(rows, chosen, axis=1))
        return np.concatenate(indices), np.concatenate(distances)

    def nearest_nodes(self, states: Array, k: int) -> tuple[Array, Array]:
        """The `k` nearest nodes of each state, ``(n, k)``, nearest first, and their distances."""
        if self.norm is None:
            every = self.distances(states)
            index = np.argsort(every, axis=1, kind="stable")[:, :k]
            return index, np.take_along_axis(every, index, axis=1)
        found = self._tree.query(self.coordinates(states), k=[*range(1, k + 1)], p=self.norm)
        return found[1], self.from_norm(found[0])

    def near_distances(self, radius: float, n_neighbors: int | None = None) -> Similarity:
        """A graph whose weights are distances: all pairs within `radius`, or the nearest nodes."""
        if n_neighbors is not None:
            return self._to_nearest(n_neighbors, lambda distance: distance)
        return _assemble(len(self.states), self._near(radius, _SORTED), 0.0)

    def _to_nearest(self, n_neighbors: int, weight: Callable[[Array], Array]) -> Similarity:
        n_pairs = len(self.states) * min(n_neighbors, len(self.states))
        require_memory(
            n_pairs * _SORTED,
            f"links to the {n_neighbors:,} nearest states",
            "give fewer, such as ",
            Setting("n_neighbors", (100,)),
        )
        index, distance = self.nearest(n_neighbors)
        order = np.argsort(index, axis=1)
        index = np.take_along_axis(index, order, axis=1)
        distance = np.take_along_axis(distance, order, axis=1)
        n = len(self.states)
        rows = np.repeat(np.arange(n), index.shape[1])
        return _assemble(n, iter([(rows, index.ravel(), weight(distance).ravel())]), 0.0)

    def similarity(
        self, decay: Decay, n_neighbors: int | None = None, *, tolerance: float = TOLERANCE
    ) -> Similarity:
        """The similarity graph: all pairs, or to the nearest `n_neighbors` of each node.

        Over all pairs, the decaying part is stored only where ``g`` exceeds `tolerance`; the
        constant offset needs no storage. With `n_neighbors`, other nodes have similarity 0.
        """
        if n_neighbors is not None:
            return self._to_nearest(n_neighbors, decay)
        parts = (
            (row, column, decay.local(distance))
            for row, column, distance in self._near(decay.radius(tolerance), _STORED)
        )
        return _assemble(len(self.states), parts, decay.known_offset)


def symmetrised(graph: Similarity) -> Similarity:
    """``w_ij = ½ f(d_ij) (1[j ∈ N_i] + 1[i ∈ N_j])`` of a one-sided neighbourhood."""
    import scipy.sparse

    shape = (graph.n_nodes, graph.n_nodes)
    one_sided = scipy.sparse.csr_array((graph.weights, graph.indices, graph.indptr), shape=shape)
    both = scipy.sparse.csr_array((one_sided + one_sided.T) * 0.5)
    both.sort_indices()
    return Similarity(
        both.indptr.astype(np.int64), both.indices.astype(np.int32), both.data, graph.offset
    )


def _assemble(n: int, parts: Iterator[tuple[Array, Array, Array]], offset: float) -> Similarity:
    """Put sorted triplets together; the arrays grow in place, so that no second copy is made."""
    counts = np.zeros(n, dtype=np.int64)
    indices, weights = np.empty(0, dtype=np.int32), np.empty(0)
    filled = 0
    for row, column, weight in parts:
        counts += np.bincount(row, minlength=n)
        needed = filled + len(row)
        if needed > len(indices):
            room = max(needed, int(1.25 * len(indices)))
            indices.resize(room, refcheck=False)
            weights.resize(room, refcheck=False)
        indices[filled:needed] = column
        weights[filled:needed] = weight
        filled = needed
    indices.resize(filled, refcheck=False)
    weights.resize(filled, refcheck=False)
    return Similarity(np.concatenate([[0], np.cumsum(counts)]), indices, weights, offset)


def _drop_self(index: Array, distance: Array) -> tuple[Array, Array]:
    """Take each node itself out of its list of nearest nodes."""
    n, width = index.shape
    own = index == np.arange(n)[:, None]
    missing = ~own.any(axis=1)  # several nodes in one place: the list may lack the node itself
    own[missing, -1] = True
    keep = ~own
    return index[keep].reshape(n, width - 1), distance[keep].reshape(n, width - 1)


def distance_to(points: Array, states: Array) -> Array:
    """``(n,)``: how far each point is from the nearest of the states."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(states).query(points)[0])
