"""Samplers of indicators: the finite priors and the Chinese restaurant process."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from onlooker._validation import Array
from onlooker.inference.indicators import (
    COUNTS,
    POTTS,
    WEIGHTS,
    IndicatorPrior,
    Scheme,
    Slots,
    update_indicators,
)
from onlooker.inference.partition import Start, slot_arrays, slots_of
from onlooker.inference.problem import Layout
from onlooker.inference.state import Counts, Data, State
from onlooker.partitions.geometry import Similarity

_NONE_INT = np.zeros(0, dtype=np.int64)
_NONE_INDEX = np.zeros(0, dtype=np.int32)
_NONE = np.zeros(0)


class FiniteIndicators:
    """Indicators of finitely many clusters: uniform, mixing and Potts priors.

    Parameters
    ----------
    layout
        Nodes and transitions.
    n_clusters
        K.
    gamma
        The mixing prior's concentration; None for the other priors.
    collapse_weights
        Mixing prior: integrate the weights ``q`` out rather than draw them.
    graph, beta
        The Potts prior's symmetric similarities and inverse temperature.
    """

    can_block = True

    def __init__(
        self,
        layout: Layout,
        n_clusters: int,
        *,
        gamma: float | None = None,
        collapse_weights: bool = True,
        graph: Similarity | None = None,
        beta: float = 0.0,
    ) -> None:
        self.layout = layout
        self.n_nodes = layout.n_nodes
        self.n_slots = n_clusters
        self.gamma = gamma
        self.draw_weights = gamma is not None and not collapse_weights
        self.graph = graph
        self.beta = beta

    def start(self, rng: np.random.Generator) -> Start:
        """Labels are uniform."""
        labels = rng.integers(self.n_slots, size=self.n_nodes, dtype=np.int32)
        every = np.arange(self.n_slots)
        arrays = slot_arrays(Slots(every, every.copy(), np.array([self.n_slots], dtype=np.int64)))
        if self.draw_weights:
            arrays["weights"] = self._mixing(np.bincount(labels, minlength=self.n_slots), rng)
        return labels, arrays, {}

    def _mixing(self, sizes: Array, rng: np.random.Generator) -> Array:
        """``q ~ Dir(ζ + γ/K)``."""
        assert self.gamma is not None
        return np.asarray(rng.dirichlet(sizes + self.gamma / self.n_slots))

    def _prior(self, state: State) -> IndicatorPrior:
        indptr, indices, weights, offset = _NONE_INT, _NONE_INDEX, _NONE, 0.0
        kind, log_weight, share = WEIGHTS, np.zeros(self.n_slots), 0.0
        if self.graph is not None:
            kind, offset = POTTS, self.graph.offset
            indptr, indices, weights = self.graph.indptr, self.graph.indices, self.graph.weights
        elif self.draw_weights:
            with np.errstate(divide="ignore"):
                log_weight = np.log(state.arrays["weights"])
        elif self.gamma is not None:
            kind, share = COUNTS, self.gamma / self.n_slots
        return IndicatorPrior(
            kind, log_weight, share, 0.0, self.beta, indptr, indices, weights, offset
        )

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every indicator, then the mixing weights."""
        update_indicators(
            0,
            state.labels,
            state.actions,
            state.counts,
            slots_of(state),
            data,
            self._prior(state),
            scheme,
            state.rng,
        )
        if self.draw_weights:
            state.arrays["weights"] = self._mixing(state.counts.size, state.rng)

    def log_prior(self, state: State) -> float:
        """``ln p(z)``: of labels, with mixing weights integrated out."""
        if self.graph is not None:
            return self.beta * potts_energy(state.labels, self.graph)
        if self.gamma is None:
            return -self.n_nodes * float(np.log(self.n_slots))
        share = self.gamma / self.n_slots
        size = state.counts.size
        return float(
            gammaln(self.gamma)
            - gammaln(self.gamma + self.n_nodes)
            + np.sum(gammaln(size + share) - gammaln(share))
        )


def potts_energy(labels: Array, graph: Similarity) -> float:
    """``Σ_{i<j} w_ij δ(z_i, z_j)``."""
    row = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    same = labels[row] == labels[graph.indices]
    size = np.bincount(labels)
    return 0.5 * float(graph.weights[same].sum() + graph.offset * np.sum(size * (size - 1)))


class RestaurantIndicators:
    """Indicators of the Chinese restaurant process: as many clusters as it takes."""

    can_block = True

    def __init__(self, layout: Layout, gamma: float, n_start: int = 8) -> None:
        self.layout = layout
        self.n_nodes = layout.n_nodes
        self.gamma = gamma
        self.n_start = min(n_start, layout.n_nodes)
        self.n_slots = self.n_start + 1

    def start(self, rng: np.random.Generator) -> Start:
        """Labels are uniform over a few clusters."""
        drawn = rng.integers(self.n_start, size=self.n_nodes)
        labels = np.unique(drawn, return_inverse=True)[1]  # no empty cluster is in use
        n_used = int(labels.max()) + 1
        every = np.arange(self.n_slots)
        slots = Slots(every, every.copy(), np.array([n_used], dtype=np.int64))
        return labels.astype(np.int32), slot_arrays(slots), {}

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every indicator; clusters come and go."""
        prior = IndicatorPrior(
            COUNTS, _NONE, 0.0, self.gamma, 0.0, _NONE_INT, _NONE_INDEX, _NONE, 0.0
        )
        node = 0
        while True:
            node = update_indicators(
                node,
                state.labels,
                state.actions,
                state.counts,
                slots_of(state),
                data,
                prior,
                scheme,
                state.rng,
            )
            if node == self.n_nodes:
                return
            scheme = _more_slots(state, scheme)

    def log_prior(self, state: State) -> float:
        """``ln γ^K Π_k (ζ_k - 1)! Γ(γ) / Γ(γ + N)``."""
        size = state.counts.size[state.counts.size > 0]
        return float(
            len(size) * np.log(self.gamma)
            + gammaln(size).sum()
            + gammaln(self.gamma)
            - gammaln(self.gamma + self.n_nodes)
        )


def _more_slots(state: State, scheme: Scheme) -> Scheme:
    """Double the number of slots."""
    n = len(state.counts.size)

    def grown(array: Array) -> Array:
        more = np.zeros((2 * n, *array.shape[1:]), dtype=array.dtype)
        more[:n] = array
        return more

    counts = state.counts
    state.counts = Counts(
        counts.node, grown(counts.cluster), grown(counts.total), grown(counts.size)
    )
    for name in ("slots", "slot_at"):
        state.arrays[name] = np.concatenate([state.arrays[name], np.arange(n, 2 * n)])
    if not scheme.ordinary:
        return scheme
    state.arrays["controllers"] = grown(scheme.controllers)
    return scheme._replace(
        controllers=state.arrays["controllers"], log_controllers=grown(scheme.log_controllers)
    )
