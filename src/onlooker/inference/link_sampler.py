"""Sampler of the ddCRP's links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlooker._validation import Array
from onlooker.hyper import Prior
from onlooker.inference.forest import Forest, make_forest
from onlooker.inference.hyperparameters import (
    log_link_normaliser,
    metropolis_from_prior,
    slice_sample_log,
)
from onlooker.inference.indicators import Scheme
from onlooker.inference.links import Economy, Graph, log_link_weights, update_links
from onlooker.inference.partition import Start, slot_arrays, slots_of
from onlooker.inference.problem import Layout
from onlooker.inference.state import Data, State
from onlooker.partitions.geometry import Similarity

EVERYTHING = Economy(few=128, tries=16, longest=1 << 62, chance=1.0)


@dataclass(frozen=True)
class LinkOptions:
    """How the ddCRP's sampler works, as opposed to what it samples."""

    start: Literal["nearest", "self"] = "nearest"
    nu_step: Literal["slice", "metropolis"] = "slice"
    economy: Economy = EVERYTHING


class LinkSampler:
    """Links of the distance-dependent CRP; clusters are the components of their graph."""

    can_block = False

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
        """Nodes link to their nearest neighbours, or to themselves; ν starts at 1."""
        links = np.arange(self.n_slots)
        if self.options.start == "nearest":
            links = _most_similar(self.similarity)
        forest, labels, slots = make_forest(links)
        arrays = {f"forest.{name}": value for name, value in forest._asdict().items()}
        hyper = {"nu": 1.0 if isinstance(self.nu, Prior) else float(self.nu)}
        return labels, arrays | slot_arrays(slots), hyper

    @staticmethod
    def forest(state: State) -> Forest:
        """The link graph of a state."""
        return Forest(*(state.arrays[f"forest.{name}"] for name in Forest._fields))

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every link, then ν."""
        forest = self.forest(state)
        update_links(
            state.labels,
            forest,
            slots_of(state),
            state.counts,
            data,
            scheme.tables,
            self.graph,
            state.hyper["nu"],
            self.options.economy,
            state.rng,
        )
        if isinstance(self.nu, Prior):
            state.hyper["nu"] = self._draw_nu(state.hyper["nu"], forest.link, self.nu, state.rng)

    def _draw_nu(self, value: float, links: Array, prior: Prior, rng: np.random.Generator) -> float:
        """``p(ν | c) ∝ p(ν) ν^(self-links) / Π_i (ν + Σ_{j≠i} f(d_ij))``."""
        n_self = int(np.count_nonzero(links == np.arange(len(links))))
        row_sums = self.similarity.row_sums

        def log_likelihood(nu: float) -> float:
            return n_self * np.log(nu) - log_link_normaliser(nu, row_sums)

        if self.options.nu_step == "metropolis":
            return metropolis_from_prior(log_likelihood, value, prior, rng)
        return slice_sample_log(lambda nu: log_likelihood(nu) + prior.logpdf(nu), value, rng)

    def log_prior(self, state: State) -> float:
        """``ln p(c | ν)``."""
        nu = state.hyper["nu"]
        weights: float = log_link_weights(state.arrays["forest.link"], self.graph, nu)
        return weights - log_link_normaliser(nu, self.similarity.row_sums)


def _most_similar(graph: Similarity) -> Array:
    """Each node's most similar neighbour; itself where it has none."""
    links = np.arange(graph.n_nodes)
    for i in range(graph.n_nodes):
        row = slice(graph.indptr[i], graph.indptr[i + 1])
        if row.start < row.stop:
            links[i] = graph.indices[row][np.argmax(graph.weights[row])]
    return links
