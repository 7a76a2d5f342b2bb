"""The Potts model, bound to a problem."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.arrays import make_slots
from onlooker.gibbs.slices import scattered_start_of, start_of
from onlooker.gibbs.state import Nothing, State
from onlooker.gibbs.update import Info, Update
from onlooker.hyper import Prior
from onlooker.partitions.base import Bound, Hyper, Start, refuse_clusters, require_slots
from onlooker.partitions.geometry import Geometry, Similarity
from onlooker.partitions.indicators import draw_indicators, make_conditional
from onlooker.partitions.potts.exchange import Exchange
from onlooker.problem import Layout


class BoundPotts(Bound[Nothing]):
    """Labels that like to be those of their neighbours.

    Parameters
    ----------
    layout
        Nodes and transitions.
    n_clusters
        K.
    graph
        Symmetric similarities.
    beta
        Inverse temperature.
    auxiliary_sweeps
        Length of the auxiliary chains by which β is inferred.
    geometry
        Where the nodes lie, for starts far apart; None: every chain starts with random labels.
    """

    def __init__(
        self,
        layout: Layout,
        n_clusters: int,
        graph: Similarity,
        beta: Hyper,
        auxiliary_sweeps: int = 50,
        geometry: Geometry | None = None,
    ) -> None:
        refuse_clusters(n_clusters, layout.problem.n_actions)
        self.layout = layout
        self.geometry = geometry
        self.scattered = geometry is not None
        self.n_clusters = n_clusters
        self.graph = graph
        self.beta = beta
        self.exchange: Exchange | None = None
        if isinstance(beta, Prior):
            self.exchange = Exchange(graph, n_clusters, beta, auxiliary_sweeps)

    def start(self, rng: np.random.Generator, chain: int) -> Start[Nothing]:
        """Labels are uniform; those of further chains all the same, or by the nearest of K nodes.

        Then again.
        """
        n_nodes, kind, beta = self.layout.n_nodes, 0, start_of(self.beta)
        if self.scattered and chain > 0:
            kind, beta = chain % 3, scattered_start_of(self.beta, rng)
        if kind == 0:
            labels = rng.integers(self.n_clusters, size=n_nodes, dtype=np.int32)
        elif kind == 1:
            labels = np.zeros(n_nodes, dtype=np.int32)
        else:
            assert self.geometry is not None
            centres = rng.choice(n_nodes, min(self.n_clusters, n_nodes), replace=False)
            labels = np.argmin(self.geometry.rows(centres), axis=0).astype(np.int32)
        slots = make_slots(self.n_clusters, self.n_clusters)
        return Start(labels, slots, Nothing(), {"beta": beta})

    def updates(self, collapsed: bool) -> list[Update[Nothing]]:
        """The indicators, then β."""
        updates: list[Update[Nothing]] = [PottsIndicators(self.graph)]
        if self.exchange is not None:
            updates.append(InverseTemperature(self.exchange))
        return updates

    def log_prior(self, state: State[Nothing]) -> float:
        """``β Σ_{i<j} w_ij δ(z_i, z_j)``.

        Without the normaliser, hence not to be compared between different β.
        """
        return state.hyper["beta"] * energy(state.labels, self.graph)

    def check(self, state: State[Nothing]) -> None:
        """K slots."""
        require_slots(state, self.n_clusters)


class PottsIndicators(Update[Nothing]):
    """``p(z_i = k | z_-i) ∝ exp(β Σ_j w_ij δ(k, z_j))``."""

    name = "indicators"

    def __init__(self, graph: Similarity) -> None:
        self._conditional = make_conditional()._replace(
            indptr=graph.indptr, indices=graph.indices, weights=graph.weights, offset=graph.offset
        )

    def __call__(self, state: State[Nothing]) -> Info:
        """Draw every indicator."""
        prior = self._conditional._replace(beta=state.hyper["beta"])
        return {"moved": draw_indicators(state, prior)}


class InverseTemperature(Update[Nothing]):
    """β given the labels, by the exchange algorithm."""

    name = "beta"

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    def __call__(self, state: State[Nothing]) -> Info:
        """Draw β, or leave it, most of the time."""
        beta = state.hyper["beta"]
        state.hyper["beta"] = self.exchange.draw(beta, state.labels, state.rng)
        return {"moved": float(state.hyper["beta"] != beta)}


def energy(labels: Array, graph: Similarity) -> float:
    """``Σ_{i<j} w_ij δ(z_i, z_j)``."""
    row = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    same = labels[row] == labels[graph.indices]
    size = np.bincount(labels)
    return 0.5 * float(graph.weights[same].sum() + graph.offset * np.sum(size * (size - 1)))
