"""The similarities that links follow, by a known decay or by one that is inferred."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.slices import start_of
from onlooker.gibbs.state import State
from onlooker.hyper import Prior
from onlooker.partitions.geometry import Similarity
from onlooker.partitions.links.arrays import Forest, Graph
from onlooker.partitions.links.kernels import log_link_normaliser, log_link_weights
from onlooker.partitions.links.scales import (
    ScaleGrid,
    ScaleWeights,
    as_graph,
    link_similarities,
    log_links,
)


class Similarities(Protocol):
    """What the updates of links ask for."""

    def start_hyper(self) -> dict[str, float]:
        """The hyper-parameters of the decay that are kept with a state."""

    def start_graph(self) -> Graph:
        """The similarities that chains start by."""

    def at(self, state: State[Forest]) -> tuple[Graph, float]:
        """Similarities and ν, up to a common factor."""

    def row_sums(self, state: State[Forest]) -> Array:
        """``Σ_{j ≠ i} f(d_ij)`` of every node."""

    def log_prior(self, state: State[Forest]) -> float:
        """``ln p(c | ν, decay)``."""


class FixedDecay:
    """The decay is known."""

    def __init__(self, similarity: Similarity) -> None:
        self.similarity = similarity
        self.graph = as_graph(similarity, similarity.offset)

    def start_hyper(self) -> dict[str, float]:
        """Nothing is drawn."""
        return {}

    def start_graph(self) -> Graph:
        """The graph."""
        return self.graph

    def at(self, state: State[Forest]) -> tuple[Graph, float]:
        """The graph and ν as they are."""
        return self.graph, state.hyper["nu"]

    def row_sums(self, state: State[Forest]) -> Array:
        """Computed once."""
        return self.similarity.row_sums

    def log_prior(self, state: State[Forest]) -> float:
        """``ln p(c | ν)``."""
        nu = state.hyper["nu"]
        weights = log_link_weights(state.partition.link, self.graph, nu)
        return float(weights - log_link_normaliser(nu, self.similarity.row_sums))


class InferredDecay:
    """The decay's scale, its offset or both are drawn."""

    def __init__(self, scales: ScaleGrid) -> None:
        self.scales = scales

    @property
    def scale_prior(self) -> Prior | None:
        """The prior of the scale; None if it is fixed."""
        return _prior(self.scales.decay.scale)

    @property
    def offset_prior(self) -> Prior | None:
        """The prior of the offset; None if it is fixed."""
        return _prior(self.scales.decay.offset)

    def start_hyper(self) -> dict[str, float]:
        """The decay starts at the means of its priors."""
        offset = min(start_of(self.scales.decay.offset), 0.5)
        return {"scale": self.scales.anchor, "offset": offset}

    def start_graph(self) -> Graph:
        """By the scale that chains start at."""
        return as_graph(self.scales.local(0).graph, 0.0)

    def local(self, state: State[Forest]) -> ScaleWeights:
        """The decaying part at the state's scale."""
        return self.scales.local(self.scales.index(state.hyper["scale"]))

    def at(self, state: State[Forest]) -> tuple[Graph, float]:
        """All divided by ``1 - ε``: so that no graph changes with ε."""
        offset = state.hyper["offset"]
        rest = offset / (1 - offset)
        graph = self.local(state).graph
        nu = state.hyper["nu"] / (1 - offset)
        if self.scales.n_neighbors is None:
            return as_graph(graph, rest), nu
        return as_graph(graph, 0.0)._replace(weights=graph.weights + rest), nu

    def row_sums(self, state: State[Forest]) -> Array:
        """By the state's decay."""
        local, offset = self.local(state), state.hyper["offset"]
        return (1 - offset) * local.sums + offset * local.n_far

    def near(self, state: State[Forest], local: ScaleWeights) -> Array:
        """``g`` of every link; -1 marks a self-link."""
        links = state.partition.link
        near = np.empty(len(links))
        link_similarities(links, as_graph(local.graph, 0.0), near)
        return near

    def log_prior_by(self, state: State[Forest], local: ScaleWeights) -> float:
        """``ln p(c | ν, σ_f, ε)`` at another scale than the state's."""
        nu, offset = state.hyper["nu"], state.hyper["offset"]
        return float(log_links(nu, offset, self.near(state, local), local.sums, local.n_far))

    def log_prior(self, state: State[Forest]) -> float:
        """``ln p(c | ν, σ_f, ε)``."""
        return self.log_prior_by(state, self.local(state))


def _prior(value: float | Prior) -> Prior | None:
    return value if isinstance(value, Prior) else None
