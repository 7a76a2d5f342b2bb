"""The ddCRP whose decay is unknown: its scale and offset are drawn along with the links.

Given the links, they depend on nothing else: ``p(σ_f, ε | c, ν) ∝ p(σ_f) p(ε) Π_i w_i / Z_i`` with
``w_i = ν`` for a self-link, else ``(1-ε) g(d_i,c_i) + ε``, and ``Z_i = ν + Σ_{j≠i} f(d_ij)``.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import Data, State
from onlooker.hyper import Prior
from onlooker.partitions.decay import Decay
from onlooker.partitions.geometry import Geometry, Similarity
from onlooker.partitions.indicators import Scheme
from onlooker.partitions.links.kernels import Graph, link_similarity
from onlooker.partitions.links.sampler import LinkOptions, LinkSampler
from onlooker.partitions.partition import Start
from onlooker.problem.problem import Layout

_COARSEST = 0.25  # step of the grid of ln scale
_TRIES = 4  # of another scale, a sweep
_STRIDES = (1, 2, 4, 8)
_ROOM = 1 << 28  # bytes of graphs kept
_REACH = 1.5  # how much farther than needed distances are looked up


class Local(NamedTuple):
    """The decaying part ``g`` of one scale."""

    graph: Similarity
    sums: Array
    """``Σ_{j≠i} g(d_ij)``."""
    n_far: Array
    """How many other nodes the offset applies to."""


@njit(cache=True, nogil=True, error_model="numpy")
def near_links(links: Array, graph: Graph, out: Array) -> None:
    """``g(d_i,c_i)`` of every link; -1 marks a self-link."""
    for i in range(len(links)):
        out[i] = -1.0 if links[i] == i else link_similarity(i, links[i], graph)


@njit(cache=True, nogil=True, error_model="numpy")
def log_links(nu: float, offset: float, near: Array, sums: Array, n_far: Array) -> float:
    """``ln p(c | ν, σ_f, ε)`` from ``g`` of the links, by `near_links`, and its row sums.

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

    def index(self, scale: float) -> int:
        """Where on the grid a scale lies."""
        return round(math.log(scale / self.anchor) / self.step)

    def scale(self, index: int) -> float:
        """The scale at a point of the grid."""
        return self.anchor * math.exp(index * self.step)

    def local(self, index: int) -> Local:
        """Similarities by ``g``; chains in several threads share them."""
        with self._lock:
            graph = self._graphs.pop(index, None)
            if graph is None:
                graph = self._make(self.decay.at(self.scale(index), 0.0))
                self._sums[index] = self._totals(graph)
                self._bytes += _bytes_of(graph)
            self._graphs[index] = graph  # the last used is the last to go
            while len(self._graphs) > 1 and self._bytes > _ROOM:
                self._bytes -= _bytes_of(self._graphs.popitem(last=False)[1])
            return Local(graph, *self._sums[index])

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


class DecayLinkSampler(LinkSampler):
    """Links of a ddCRP, and the decay that they follow."""

    def __init__(
        self, layout: Layout, scales: ScaleGrid, nu: float | Prior, options: LinkOptions
    ) -> None:
        self.layout = layout
        self.n_slots = layout.n_nodes
        self.scales = scales
        self.decay = scales.decay
        self.nu = nu
        self.options = options

    def start(self, rng: np.random.Generator) -> Start:
        """The decay starts at the means of its priors."""
        labels, arrays, hyper = super().start(rng)
        offset = min(start_of(self.decay.offset), 0.5)
        return labels, arrays, hyper | {"scale": self.scales.anchor, "offset": offset}

    def _start_graph(self) -> Graph:
        return _as_graph(self.scales.local(0).graph, 0.0)

    def _local(self, state: State) -> Local:
        return self.scales.local(self.scales.index(state.hyper["scale"]))

    def row_sums_at(self, state: State) -> Array:
        """``Σ_{j≠i} f(d_ij)`` by the state's decay."""
        local, offset = self._local(state), state.hyper["offset"]
        return (1 - offset) * local.sums + offset * local.n_far

    def weights_at(self, state: State) -> tuple[Graph, float]:
        """Similarities and ν, all divided by ``1 - ε``: so that no graph changes with ε."""
        offset = state.hyper["offset"]
        rest = offset / (1 - offset)
        graph = self._local(state).graph
        nu = state.hyper["nu"] / (1 - offset)
        if self.scales.n_neighbors is None:
            return _as_graph(graph, rest), nu
        return _as_graph(graph, 0.0)._replace(weights=graph.weights + rest), nu

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every link, then ν, the offset and the scale."""
        super().update(state, data, scheme)
        if isinstance(self.decay.offset, Prior):
            self._draw_offset(state, self.decay.offset)
        if isinstance(self.decay.scale, Prior):
            self._draw_scale(state, self.decay.scale)

    def _near(self, state: State, local: Local) -> Array:
        near = np.empty(self.n_slots)
        near_links(state.arrays["forest.link"], _as_graph(local.graph, 0.0), near)
        return near

    def _draw_offset(self, state: State, prior: Prior) -> None:
        local, nu = self._local(state), state.hyper["nu"]
        near = self._near(state, local)

        def log_density(offset: float) -> float:
            if offset >= 1:
                return -math.inf
            return log_links(nu, offset, near, local.sums, local.n_far) + prior.logpdf(offset)

        state.hyper["offset"] = slice_sample_log(log_density, state.hyper["offset"], state.rng)

    def _draw_scale(self, state: State, prior: Prior) -> None:
        """A few Metropolis steps on the grid, where ``p(k) ∝ p(σ) σ``."""
        rng = state.rng

        def log_density(index: int) -> float:
            scale = self.scales.scale(index)
            log_prior = prior.logpdf(scale)
            if not log_prior > -math.inf:
                return -math.inf
            return self._log_links(state, self.scales.local(index)) + log_prior + math.log(scale)

        index = self.scales.index(state.hyper["scale"])
        density = log_density(index)
        for _ in range(_TRIES):
            stride = _STRIDES[int(rng.random() * len(_STRIDES))]
            other = index + (stride if rng.random() < 0.5 else -stride)
            candidate = log_density(other)
            if math.log1p(-rng.random()) < candidate - density:
                index, density = other, candidate
        state.hyper["scale"] = self.scales.scale(index)

    def _log_links(self, state: State, local: Local) -> float:
        nu, offset = state.hyper["nu"], state.hyper["offset"]
        return float(log_links(nu, offset, self._near(state, local), local.sums, local.n_far))

    def log_prior(self, state: State) -> float:
        """``ln p(c | ν, σ_f, ε)``."""
        return self._log_links(state, self._local(state))


def _bytes_of(graph: Similarity) -> int:
    return int(graph.indices.nbytes + graph.weights.nbytes)


def _as_graph(graph: Similarity, offset: float) -> Graph:
    return Graph(graph.indptr, graph.indices, graph.weights, offset)
