"""The similarities that links follow, by a known decay or by one that is inferred."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.slices import scattered_start_of, start_of
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

    def start(self, elsewhere: np.random.Generator | None) -> tuple[dict[str, float], Graph]:
        """The hyper-parameters of the decay that chains start with, and similarities by them.

        They start at the means of their priors, or, with a generator, at draws.
        """

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

    def start(self, elsewhere: np.random.Generator | None) -> tuple[dict[str, float], Graph]:
        """Nothing is drawn."""
        return {}, self.graph

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

    def start(self, elsewhere: np.random.Generator | None) -> tuple[dict[str, float], Graph]:
        """A drawn scale is no larger than the mean: a wider reach may not fit into memory."""
        decay, scales, index = self.scales.decay, self.scales, 0
        offset = start_of(decay.offset)
        if elsewhere is not None:
            scale = min(scattered_start_of(decay.scale, elsewhere), scales.anchor)
            index = math.ceil(scales.position(scale))  # towards the mean, inside the support
            offset = scattered_start_of(decay.offset, elsewhere)
        hyper = {"scale": scales.scale(index), "offset": min(offset, 0.5)}
        return hyper, as_graph(scales.local(index).graph, 0.0)

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
