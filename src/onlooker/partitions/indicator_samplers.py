"""Samplers of indicators: the finite priors and the Chinese restaurant process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from onlooker.checks import Array
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.state import Counts, Data, State
from onlooker.hyper import Prior
from onlooker.partitions.geometry import Similarity
from onlooker.partitions.indicators import (
    COUNTS,
    POTTS,
    WEIGHTS,
    IndicatorPrior,
    Scheme,
    Slots,
    update_indicators,
)
from onlooker.partitions.partition import Start, slot_arrays, slots_of
from onlooker.partitions.potts.exchange import Exchange
from onlooker.problem.problem import Layout

NO_PRIOR = IndicatorPrior(
    kind=WEIGHTS,
    log_weight=np.zeros(0),
    log_count=np.zeros(0),
    new=0.0,
    beta=0.0,
    indptr=np.zeros(0, dtype=np.int64),
    indices=np.zeros(0, dtype=np.int32),
    weights=np.zeros(0),
    offset=0.0,
)
"""Nothing of what the kinds of priors need; each fills in its own."""


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
    graph, beta, auxiliary_sweeps
        The Potts prior's symmetric similarities and inverse temperature, and the length of the
        auxiliary chains by which the latter is inferred.
    """

    def __init__(
        self,
        layout: Layout,
        n_clusters: int,
        *,
        gamma: float | Prior | None = None,
        collapse_weights: bool = True,
        graph: Similarity | None = None,
        beta: float | Prior = 0.0,
        auxiliary_sweeps: int = 50,
    ) -> None:
        self.layout = layout
        self.n_nodes = layout.n_nodes
        self.n_slots = n_clusters
        self.gamma = gamma
        self.draw_weights = gamma is not None and not collapse_weights
        self.graph = graph
        self.beta = beta
        self.exchange: Exchange | None = None
        if graph is not None and isinstance(beta, Prior):
            self.exchange = Exchange(graph, n_clusters, beta, auxiliary_sweeps)

    def start(self, rng: np.random.Generator) -> Start:
        """Labels are uniform."""
        labels = rng.integers(self.n_slots, size=self.n_nodes, dtype=np.int32)
        every = np.arange(self.n_slots)
        arrays = slot_arrays(Slots(every, every.copy(), np.array([self.n_slots], dtype=np.int64)))
        if self.gamma is None:
            return labels, arrays, {} if self.graph is None else {"beta": start_of(self.beta)}
        gamma = start_of(self.gamma)
        if self.draw_weights:
            sizes = np.bincount(labels, minlength=self.n_slots)
            arrays["weights"] = self._mixing(sizes, gamma, rng)
        return labels, arrays, {"gamma": gamma}

    def _mixing(self, sizes: Array, gamma: float, rng: np.random.Generator) -> Array:
        """``q ~ Dir(ζ + γ/K)``."""
        return np.asarray(rng.dirichlet(sizes + gamma / self.n_slots))

    @cached_property
    def _fixed_prior(self) -> IndicatorPrior:
        """What the kernel needs, as far as it is the same in every sweep."""
        if self.graph is not None:
            graph = self.graph
            return NO_PRIOR._replace(
                kind=POTTS,
                beta=start_of(self.beta),
                indptr=graph.indptr,
                indices=graph.indices,
                weights=graph.weights,
                offset=graph.offset,
            )
        if self.gamma is None or self.draw_weights:
            return NO_PRIOR._replace(kind=WEIGHTS, log_weight=np.zeros(self.n_slots))
        return self._counting(start_of(self.gamma))

    def _counting(self, gamma: float) -> IndicatorPrior:
        share = gamma / self.n_slots
        return NO_PRIOR._replace(kind=COUNTS, log_count=np.log(np.arange(self.n_nodes + 1) + share))

    def _prior(self, state: State) -> IndicatorPrior:
        if self.exchange is not None:
            return self._fixed_prior._replace(beta=state.hyper["beta"])
        if self.draw_weights:
            with np.errstate(divide="ignore"):
                return self._fixed_prior._replace(log_weight=np.log(state.arrays["weights"]))
        if isinstance(self.gamma, Prior):
            return self._counting(state.hyper["gamma"])
        return self._fixed_prior

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every indicator, then β or γ, then the mixing weights."""
        update_indicators(
            0,
            state.labels,
            state.counts,
            slots_of(state),
            self._prior(state),
            scheme,
            state.rng,
        )
        if self.exchange is not None:
            beta = state.hyper["beta"]
            state.hyper["beta"] = self.exchange.draw(beta, state.labels, state.rng)
        if isinstance(self.gamma, Prior):
            draw_gamma(state, self.gamma, lambda gamma: self._log_labels(gamma, state))
        if self.draw_weights:
            gamma = state.hyper["gamma"]
            state.arrays["weights"] = self._mixing(state.counts.size, gamma, state.rng)

    def _log_labels(self, gamma: float, state: State) -> float:
        """``ln p(z | γ)``, the mixing weights integrated out."""
        share = gamma / self.n_slots
        size = state.counts.size
        return float(
            gammaln(gamma)
            - gammaln(gamma + self.n_nodes)
            + np.sum(gammaln(size + share) - gammaln(share))
        )

    def log_prior(self, state: State) -> float:
        """``ln p(z)``: of labels, with mixing weights integrated out.

        Potts: without the normaliser, hence not to be compared between different β.
        """
        if self.graph is not None:
            return state.hyper["beta"] * potts_energy(state.labels, self.graph)
        if self.gamma is None:
            return -self.n_nodes * float(np.log(self.n_slots))
        return self._log_labels(state.hyper["gamma"], state)


def draw_gamma(state: State, prior: Prior, log_labels: Callable[[float], float]) -> None:
    """Draw γ given the labels, by slice sampling."""
    state.hyper["gamma"] = slice_sample_log(
        lambda gamma: log_labels(gamma) + prior.logpdf(gamma), state.hyper["gamma"], state.rng
    )


def potts_energy(labels: Array, graph: Similarity) -> float:
    """``Σ_{i<j} w_ij δ(z_i, z_j)``."""
    row = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    same = labels[row] == labels[graph.indices]
    size = np.bincount(labels)
    return 0.5 * float(graph.weights[same].sum() + graph.offset * np.sum(size * (size - 1)))


class RestaurantIndicators:
    """Indicators of the Chinese restaurant process: as many clusters as it takes."""

    def __init__(self, layout: Layout, gamma: float | Prior, n_start: int = 8) -> None:
        self.layout = layout
        self.n_nodes = layout.n_nodes
        self.gamma = gamma
        self.n_start = min(n_start, layout.n_nodes)
        self.n_slots = self.n_start + 1
        with np.errstate(divide="ignore"):
            log_count = np.log(np.arange(layout.n_nodes + 1))
        self._prior = NO_PRIOR._replace(kind=COUNTS, log_count=log_count)

    def start(self, rng: np.random.Generator) -> Start:
        """Labels are uniform over a few clusters."""
        drawn = rng.integers(self.n_start, size=self.n_nodes)
        labels = np.unique(drawn, return_inverse=True)[1]  # no empty cluster is in use
        n_used = int(labels.max()) + 1
        every = np.arange(self.n_slots)
        slots = Slots(every, every.copy(), np.array([n_used], dtype=np.int64))
        return labels.astype(np.int32), slot_arrays(slots), {"gamma": start_of(self.gamma)}

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw every indicator, while clusters come and go; then γ."""
        prior = self._prior._replace(new=state.hyper["gamma"])
        node = 0
        while True:
            node = update_indicators(
                node,
                state.labels,
                state.counts,
                slots_of(state),
                prior,
                scheme,
                state.rng,
            )
            if node == self.n_nodes:
                break
            scheme = _more_slots(state, scheme)
        if isinstance(self.gamma, Prior):
            draw_gamma(state, self.gamma, lambda gamma: self._log_labels(gamma, state))

    def _log_labels(self, gamma: float, state: State) -> float:
        """``ln γ^K Π_k (ζ_k - 1)! Γ(γ) / Γ(γ + N)``."""
        size = state.counts.size[state.counts.size > 0]
        return float(
            len(size) * np.log(gamma)
            + gammaln(size).sum()
            + gammaln(gamma)
            - gammaln(gamma + self.n_nodes)
        )

    def log_prior(self, state: State) -> float:
        """``ln p(z | γ)``."""
        return self._log_labels(state.hyper["gamma"], state)


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
