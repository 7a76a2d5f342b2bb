"""Samplers of the partition: one for each family of priors, all with the same face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import gammaln

from onlooker._validation import Array
from onlooker.hyper import Prior
from onlooker.inference.forest import Forest, make_forest
from onlooker.inference.hyperparameters import (
    log_link_normaliser,
    metropolis_from_prior,
    slice_sample_log,
)
from onlooker.inference.indicators import (
    COUNTS,
    POTTS,
    WEIGHTS,
    IndicatorPrior,
    Scheme,
    Slots,
    update_indicators,
)
from onlooker.inference.links import Economy, Graph, log_link_weights, update_links
from onlooker.inference.state import Counts, Data, State
from onlooker.partitions.geometry import Similarity

_NONE_INT = np.zeros(0, dtype=np.int64)
_NONE_INDEX = np.zeros(0, dtype=np.int32)
_NONE = np.zeros(0)


class PartitionSampler(Protocol):
    """Draws the partition given actions and controllers."""

    n_slots: int
    """Slots to start with."""
    can_block: bool
    """Whether `update` draws the actions of single-transition nodes along, if asked to."""

    def start(self, rng: np.random.Generator) -> tuple[Array, dict[str, Array], dict[str, float]]:
        """Draw labels to start from, with the arrays and hyper-parameters that go with them."""

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Draw the partition, and the hyper-parameters of its prior, once."""

    def log_prior(self, state: State) -> float:
        """``ln p(z)`` or ``ln p(c)``; the Potts model's without its normaliser."""


class FixedPartition:
    """Every node is its own cluster: the static model."""

    can_block = False

    def __init__(self, n_nodes: int) -> None:
        self.n_slots = n_nodes

    def start(self, rng: np.random.Generator) -> tuple[Array, dict[str, Array], dict[str, float]]:
        """Node i is in cluster i."""
        return np.arange(self.n_slots, dtype=np.int32), {}, {}

    def update(self, state: State, data: Data, scheme: Scheme) -> None:
        """Nothing to draw."""

    def log_prior(self, state: State) -> float:
        """The one partition there is has probability 1."""
        return 0.0


def _slots_of(state: State) -> Slots:
    return Slots(state.arrays["slots"], state.arrays["slot_at"], state.arrays["n_slots"])


def _slot_arrays(slots: Slots) -> dict[str, Array]:
    return {"slots": slots.order, "slot_at": slots.where, "n_slots": slots.n}


def _used(state: State) -> Array:
    """Sizes of the clusters that are not empty."""
    size = state.counts.size
    return size[size > 0]


class FiniteIndicators:
    """Indicators of finitely many clusters: uniform, mixing and Potts priors.

    Parameters
    ----------
    n_nodes, n_clusters
        N and K.
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
        n_nodes: int,
        n_clusters: int,
        *,
        gamma: float | None = None,
        collapse_weights: bool = True,
        graph: Similarity | None = None,
        beta: float = 0.0,
    ) -> None:
        self.n_nodes = n_nodes
        self.n_slots = n_clusters
        self.gamma = gamma
        self.draw_weights = gamma is not None and not collapse_weights
        self.graph = graph
        self.beta = beta

    def start(self, rng: np.random.Generator) -> tuple[Array, dict[str, Array], dict[str, float]]:
        """Labels are uniform."""
        labels = rng.integers(self.n_slots, size=self.n_nodes, dtype=np.int32)
        every = np.arange(self.n_slots)
        arrays = _slot_arrays(Slots(every, every.copy(), np.array([self.n_slots], dtype=np.int64)))
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
            _slots_of(state),
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

    def __init__(self, n_nodes: int, gamma: float, n_start: int = 8) -> None:
        self.n_nodes = n_nodes
        self.gamma = gamma
        self.n_start = min(n_start, n_nodes)
        self.n_slots = self.n_start + 1

    def start(self, rng: np.random.Generator) -> tuple[Array, dict[str, Array], dict[str, float]]:
        """Labels are uniform over a few clusters."""
        drawn = rng.integers(self.n_start, size=self.n_nodes)
        labels = np.unique(drawn, return_inverse=True)[1]  # no empty cluster is in use
        n_used = int(labels.max()) + 1
        every = np.arange(self.n_slots)
        slots = Slots(every, every.copy(), np.array([n_used], dtype=np.int64))
        return labels.astype(np.int32), _slot_arrays(slots), {}

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
                _slots_of(state),
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
        size = _used(state)
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
        graph: Similarity,
        scan: Array,
        nu: float | Prior,
        options: LinkOptions,
    ) -> None:
        self.n_slots = graph.n_nodes
        self.similarity = graph
        self.graph = Graph(graph.indptr, graph.indices, graph.weights, graph.offset, scan)
        self.nu = nu
        self.options = options

    def start(self, rng: np.random.Generator) -> tuple[Array, dict[str, Array], dict[str, float]]:
        """Nodes link to their nearest neighbours, or to themselves; ν starts at 1."""
        links = np.arange(self.n_slots)
        if self.options.start == "nearest":
            links = _most_similar(self.similarity)
        forest, labels, slots = make_forest(links)
        arrays = {f"forest.{name}": value for name, value in forest._asdict().items()}
        hyper = {"nu": 1.0 if isinstance(self.nu, Prior) else float(self.nu)}
        return labels, arrays | _slot_arrays(slots), hyper

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
            _slots_of(state),
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
