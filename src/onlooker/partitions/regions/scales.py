"""Similarities at every scale that is tried: rows of neighbours, nearest first."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from threading import RLock
from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.hyper import Prior
from onlooker.partitions.decay import Decay
from onlooker.partitions.geometry import Geometry
from onlooker.partitions.links.arrays import Graph
from onlooker.partitions.regions.kernels import Reached

TOLERANCE = 1e-4
"""Similarities below are zero: so the model is, and so are predictions."""
STEP = 0.025
"""Of the grid of ln scale: 90 points from half a typical distance to five."""
_REACH = 1.25  # how much farther than needed neighbours are looked up
_MAX_BYTES = 1 << 28  # of similarities kept
_ROWS = 1 << 22  # distances sorted at a time


class Point(NamedTuple):
    """A point of the grid of scales."""

    scale: float
    log_prior: float
    """``ln p(k)``, ``∝ p(σ) σ``."""
    decay: Decay
    radius: float
    """How far links reach."""


class Scales:
    """The grid of scales, ``anchor · e^(STEP · k)``; one point where the scale is known.

    Rows are sorted by distance, so that at any scale a row is the beginning of a longer one, and
    what was looked up farther than needed changes nothing.
    """

    def __init__(self, geometry: Geometry, decay: Decay, n_neighbors: int | None) -> None:
        self.geometry = geometry
        self.decay = decay
        self.n_neighbors = n_neighbors
        scale = decay.scale
        self.prior = scale if isinstance(scale, Prior) else None
        self.anchor = scale.mean if isinstance(scale, Prior) else float(scale)
        self._known: Reached | None = None
        self._radius = 0.0
        self._points: dict[int, Point] = {}
        self._sums: dict[int, Array] = {}
        self._totals: dict[int, float] = {}
        self._graphs: OrderedDict[int, Reached] = OrderedDict()
        self._bytes = 0
        self._lock = RLock()
        if n_neighbors is None:
            geometry.require_room(self.at(0).radius)

    def index(self, scale: float) -> int:
        """Where on the grid a scale lies."""
        return round(math.log(scale / self.anchor) / STEP)

    def at(self, index: int) -> Point:
        """A point of the grid."""
        if index not in self._points:
            scale = self.anchor * math.exp(index * STEP)
            log_prior = 0.0
            if self.prior is not None:
                log_prior = self.prior.logpdf(scale) + math.log(scale)
            decay = self.decay.at(scale, 0.0)
            self._points[index] = Point(scale, log_prior, decay, decay.radius(TOLERANCE))
        return self._points[index]

    def graph(self, index: int) -> Reached:
        """Similarities; chains in several threads share them."""
        with self._lock:
            graph = self._graphs.pop(index, None)
            if graph is None:
                while len(self._graphs) > 1 and self._bytes > _MAX_BYTES:  # before there is another
                    self._bytes -= self._graphs.popitem(last=False)[1].weights.nbytes
                graph = self._make(self.at(index))
                self._bytes += graph.weights.nbytes
            self._graphs[index] = graph  # the last used is the last to go
            return graph

    def apart(self, index: int) -> Graph:
        """The same with indices of its own."""
        with self._lock:
            graph, known, radius = self.graph(index), self.distances(index), self.at(index).radius
            indices = known.indices[known.weights <= radius]
            return Graph(graph.indptr, indices, graph.weights, 0.0)

    def sums(self, index: int) -> Array:
        """``F_i = Σ_{j≠i} g_ij``."""
        with self._lock:
            if index not in self._sums:
                graph = self._graphs.get(index) or self._make(self.at(index))
                sums = self._sums[index] = _row_sums(graph.indptr, graph.weights)
                # ν follows it from scale to scale: never 0, also where no node has a neighbour
                self._totals[index] = max(float(sums.sum()), TOLERANCE)
            return self._sums[index]

    def total(self, index: int) -> float:
        """``Σ_i F_i``."""
        self.sums(index)
        return self._totals[index]

    def distances(self, index: int) -> Reached:
        """Rows of distances that reach at least as far as a scale does."""
        with self._lock:
            return self._within(self.at(index).radius)

    def _make(self, point: Point) -> Reached:
        """Some rows at a time: temporary arrays would take more memory than what is kept."""
        indptr, distances, first, indices = self._within(point.radius)
        lengths = _row_sums(indptr, distances, point.radius).astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        weights = np.empty(bounds[-1])
        for some in _row_blocks(indptr):
            part = distances[indptr[some.start] : indptr[some.stop]]
            weights[bounds[some.start] : bounds[some.stop]] = point.decay.g(
                part[part <= point.radius]
            )
        return Reached(bounds, weights, first, indices)

    def _within(self, radius: float) -> Reached:
        if self._known is None or (self.n_neighbors is None and radius > self._radius):
            self._radius = radius * (_REACH if self.prior is not None else 1.0)
            self._known = None  # nothing may hold the old rows while there are new ones
            self._graphs.clear()
            self._bytes = 0
            found = self.geometry.near_distances(self._radius, self.n_neighbors)
            self._known = _nearest_first(found.indptr, found.indices, found.weights)
        return self._known


def _nearest_first(indptr: Array, indices: Array, distances: Array) -> Reached:
    """Rows sorted by distance, in place, some at a time."""
    lengths = np.diff(indptr)
    for some in _row_blocks(indptr):
        part = slice(indptr[some.start], indptr[some.stop])
        longest = int(lengths[some].max(initial=0))
        inside = np.arange(longest) < lengths[some, None]
        padded = np.full(inside.shape, np.inf)
        padded[inside] = distances[part]
        order = np.argsort(padded, axis=1, kind="stable")
        rows = np.zeros(inside.shape, dtype=np.int32)
        rows[inside] = indices[part]
        indices[part] = np.take_along_axis(rows, order, axis=1)[inside]
        distances[part] = np.take_along_axis(padded, order, axis=1)[inside]
    indptr = indptr.astype(np.int64)
    return Reached(indptr, distances, indptr[:-1], indices)


def _row_sums(indptr: Array, values: Array, most: float | None = None) -> Array:
    """The sum of every row, or how many of its values are at most `most`; some rows at a time."""
    sums = np.empty(len(indptr) - 1)
    for some in _row_blocks(indptr):
        bounds = indptr[some.start : some.stop + 1]
        part = values[bounds[0] : bounds[-1]]
        running = np.concatenate([[0.0], np.cumsum(part if most is None else part <= most)])
        sums[some] = np.diff(running[bounds - bounds[0]])
    return sums


def _row_blocks(indptr: Array) -> Iterator[slice]:
    """Rows that hold about so many entries together."""
    n = len(indptr) - 1
    step = max(1, _ROWS * n // max(int(indptr[-1]), 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
