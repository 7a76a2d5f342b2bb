"""The ddCRP whose decay is unknown: its scale and offset are sampled jointly with the links.

Given the links, they depend on nothing else: ``p(σ_f, ε | c, ν) ∝ p(σ_f) p(ε) Π_i w_i / Z_i`` with
``w_i = ν`` for a self-link, else ``(1-ε) g(d_i,c_i) + ε``, and ``Z_i = ν + Σ_{j≠i} f(d_ij)``.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.slices import start_of
from onlooker.partitions.decay import Decay
from onlooker.partitions.geometry import Geometry, Similarity
from onlooker.partitions.links.arrays import Graph
from onlooker.partitions.links.kernels import link_similarity

_COARSEST = 0.25  # step of the grid of ln scale
_MAX_BYTES = 1 << 28  # bytes of graphs kept
_REACH = 1.5  # how much farther than needed distances are looked up


class ScaleWeights(NamedTuple):
    """The decaying part ``g`` of one scale."""

    graph: Similarity
    sums: Array
    """``Σ_{j≠i} g(d_ij)``."""
    n_far: Array
    """How many other nodes the offset applies to."""


@njit(cache=True, nogil=True, error_model="numpy")
def link_similarities(links: Array, graph: Graph, out: Array) -> None:
    """``g(d_i,c_i)`` of every link; -1 marks a self-link."""
    for i in range(len(links)):
        out[i] = -1.0 if links[i] == i else link_similarity(i, links[i], graph)


@njit(cache=True, nogil=True, error_model="numpy")
def log_links(nu: float, offset: float, near: Array, sums: Array, n_far: Array) -> float:
    """``ln p(c | ν, σ_f, ε)`` from ``g`` of the links, by `link_similarities`, and its row sums.

    Factors are multiplied up to save logarithms.
    """
    total = 0.0
    above = below = 1.0
    rest = 1.0 - offset
    for i in range(len(near)):
        above *= nu if near[i] < 0.0 else rest * near[i] + offset
        below *= nu + rest * sums[i] + offset * n_far[i]
        if above < 1e-150 or not 1e-150 < below < 1e150:
            if above == 0.0:
                return -np.inf
            total += np.log(above) - np.log(below)
            above = below = 1.0
    return total + np.log(above) - np.log(below)


class ScaleGrid:
    """The scales that are tried, ``scale = anchor · e^(k·step)``, with their similarities.

    Given N links the scale is known to about one part in ``2√N``; the grid is as fine as that. So
    the prior of the scale is its discretisation on the grid.
    """

    def __init__(
        self, geometry: Geometry, decay: Decay, n_neighbors: int | None, tolerance: float
    ) -> None:
        self.geometry = geometry
        self.decay = decay
        self.n_neighbors = n_neighbors
        self.tolerance = tolerance
        self.anchor = start_of(decay.scale)
        self.step = min(_COARSEST, 0.5 / math.sqrt(len(geometry.states)))
        self._distances: Similarity | None = None
        self._radius = 0.0
        self._sums: dict[int, tuple[Array, Array]] = {}
        self._graphs: OrderedDict[int, Similarity] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        if n_neighbors is None:
            geometry.require_room(decay.at(self.anchor, 0.0).radius(tolerance))

    def position(self, scale: float) -> float:
        """Where a scale lies, in steps of the grid from its anchor."""
        return math.log(scale / self.anchor) / self.step

    def index(self, scale: float) -> int:
        """The point of the grid at which, or next to which, a scale lies."""
        return round(self.position(scale))

    def scale(self, index: int) -> float:
        """The scale at a point of the grid."""
        return self.anchor * math.exp(index * self.step)

    def local(self, index: int) -> ScaleWeights:
        """Similarities by ``g``; chains in several threads share them."""
        with self._lock:
            graph = self._graphs.pop(index, None)
            if graph is None:
                graph = self._make(self.decay.at(self.scale(index), 0.0))
                self._sums[index] = self._totals(graph)
                self._bytes += _bytes_of(graph)
            self._graphs[index] = graph  # the last used is the last to go
            while len(self._graphs) > 1 and self._bytes > _MAX_BYTES:
                self._bytes -= _bytes_of(self._graphs.popitem(last=False)[1])
            return ScaleWeights(graph, *self._sums[index])

    def _totals(self, graph: Similarity) -> tuple[Array, Array]:
        if self.n_neighbors is not None:
            return graph.row_sums, np.diff(graph.indptr).astype(np.float64)
        return graph.row_sums, np.full(graph.n_nodes, graph.n_nodes - 1.0)

    def _make(self, decay: Decay) -> Similarity:
        near = self._within(decay.radius(self.tolerance))
        if self.n_neighbors is not None:
            return Similarity(near.indptr, near.indices, decay.g(near.weights), 0.0)
        keep = near.weights <= decay.radius(self.tolerance)
        counts = np.concatenate([[0], np.cumsum(keep)])[near.indptr]
        return Similarity(counts, near.indices[keep], decay.g(near.weights[keep]), 0.0)

    def _within(self, radius: float) -> Similarity:
        """Distances to all neighbours within at least `radius`."""
        known = self._distances
        if known is None or (self.n_neighbors is None and radius > self._radius):
            self._radius = radius * _REACH
            known = self.geometry.near_distances(self._radius, self.n_neighbors)
            self._distances = known
        return known


def _bytes_of(graph: Similarity) -> int:
    return int(graph.indices.nbytes + graph.weights.nbytes)


def as_graph(graph: Similarity, offset: float) -> Graph:
    return Graph(graph.indptr, graph.indices, graph.weights, offset)
