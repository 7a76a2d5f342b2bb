"""Sampler of the ddCRP's links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.slices import (
    log_link_normaliser,
    metropolis_from_prior,
    slice_sample_log,
)
from onlooker.gibbs.state import Data, State
from onlooker.hyper import Prior
from onlooker.partitions.geometry import Similarity
from onlooker.partitions.indicators import Scheme
from onlooker.partitions.links.forest import Forest, make_forest
from onlooker.partitions.links.kernels import (
    Economy,
    Graph,
    log_link_weights,
    most_similar,
    update_links,
)
from onlooker.partitions.links.summed import reassign
from onlooker.partitions.partition import Start, slot_arrays, slots_of
from onlooker.problem.problem import Layout


def economy_for(n_nodes: int) -> Economy:
    """What pays at this size: in a large problem, far reads miss the processor's caches."""
    if n_nodes <= 10_000:
        return Economy(few=64, tries=8, longest=256)
    return Economy(few=64, tries=4, longest=32)


@dataclass(frozen=True)
class LinkOptions:
    """How the ddCRP's sampler works, as opposed to what it samples."""

    start: Literal["nearest", "self"] = "nearest"
    nu_step: Literal["slice", "metropolis"] = "slice"
    economy: Economy | None = None
    """None: what pays at the problem's size."""
    reassign: int = 0
    """Passes a sweep in which parts of clusters change sides together with their actions."""


class LinkSampler:
    """Links of the distance-dependent CRP; clusters are the components of their graph."""

    def __init__(
        self,
        layout: Layout,
        graph: Similarity,
        nu: float | Prior,
        options: LinkOptions,
    ) -> None:
        self.layout = layout
        self.n_slots = graph.n_nodes
        self.similarity = graph
        self.graph = Graph(graph.indptr, graph.indices, graph.weights, graph.offset)
        self.nu = nu
        self.options = options

    def start(self, rng: np.random.Generator) -> Start:
        """Nodes link to their nearest neighbours, or to themselves."""
        forest, labels, slots = make_forest(self._start_links())
        arrays = {f"forest.{name}": value for name, value in forest._asdict().items()}
        return labels, arrays | slot_arrays(slots), {"nu": self._start_nu()}

    def _start_nu(self) -> float:
        """1 as in the paper, where the prior allows it."""
        if not isinstance(self.nu, Prior):
            return float(self.nu)
        return 1.0 if np.isfinite(self.nu.logpdf(1.0)) else self.nu.mean

    @property
    def _economy(self) -> Economy:
        return self.options.economy or economy_for(self.n_slots)

    def _start_links(self) -> Array:
        links = np.arange(self.n_slots)
        if self.options.start == "nearest":
            most_similar(links, self._start_graph())
        return links

    def _start_graph(self) -> Graph:
        return self.graph

    @staticmethod
    def forest(state: State) -> Forest:
        """The link graph of a state."""
        return Forest(*(state.arrays[f"forest.{name}"] for name in Forest._fields))

    def weights_at(self, state: State) -> tuple[Graph, float]:
        """Similarities and ν, up to a common factor."""
        return self.graph, state.hyper["nu"]

    def row_sums_at(self, state: State) -> Array:
        """``Σ_{j ≠ i} f(d_ij)`` of every node."""
        return self.similarity.row_sums

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every link, then ν."""
        self._draw_links(state, data, scheme)
        for _ in range(self.options.reassign):
            self._reassign(state, data, scheme)
        if isinstance(self.nu, Prior):
            state.hyper["nu"] = self._draw_nu(state, self.nu)

    def _draw_links(self, state: State, data: Data, scheme: Scheme) -> None:
        graph, nu = self.weights_at(state)
        update_links(
            state.labels,
            self.forest(state),
            slots_of(state),
            state.counts,
            scheme.tables,
            graph,
            nu,
            self._economy,
            state.rng,
        )

    def _reassign(self, state: State, data: Data, scheme: Scheme) -> None:
        reassign(
            state.labels,
            state.actions,
            self.forest(state),
            slots_of(state),
            state.counts,
            scheme.tables,
            data,
            self.weights_at(state)[0],
            self._economy,
            state.rng,
        )

    def _draw_nu(self, state: State, prior: Prior) -> float:
        """``p(ν | c) ∝ p(ν) ν^(self-links) / Π_i (ν + Σ_{j≠i} f(d_ij))``."""
        links, value, rng = state.arrays["forest.link"], state.hyper["nu"], state.rng
        n_self = int(np.count_nonzero(links == np.arange(len(links))))
        row_sums = self.row_sums_at(state)

        def log_likelihood(nu: float) -> float:
            return n_self * np.log(nu) - log_link_normaliser(nu, row_sums)

        if self.options.nu_step == "metropolis":
            return metropolis_from_prior(log_likelihood, value, prior, rng)
        return slice_sample_log(lambda nu: log_likelihood(nu) + prior.logpdf(nu), value, rng)

    def log_prior(self, state: State) -> float:
        """``ln p(c | ν)``."""
        nu = state.hyper["nu"]
        weights = self._log_link_weights(state.arrays["forest.link"], nu)
        return weights - log_link_normaliser(nu, self.row_sums_at(state))

    def _log_link_weights(self, links: Array, nu: float) -> float:
        return log_link_weights(links, self.graph, nu)
